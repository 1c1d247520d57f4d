"""The end of a contained program, as others read it."""

import msgspec

from nodeproof.model.process import Ended, EndKind, ProcessSight, Progress

END = Ended(
    kind=EndKind.OOM,
    reason="why",
    signal=9,
    duration_s=2.5,
    survivors=(ProcessSight(1, 2, "a", "D", note="stuck"),),
    evidence=("one", "two"),
    output_bytes=10,
    output_kept_bytes=9,
    progress=Progress(1.0, 2.0, 10, 1, 1, 4096, {"S": 1}, 5, 6, 7, 8),
)


def test_there_and_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(END), type=Ended) == END


def test_truncated() -> None:
    assert END.truncated
    assert not msgspec.structs.replace(END, output_bytes=9).truncated


def test_succeeded() -> None:
    assert not END.succeeded
    exited = msgspec.structs.replace(END, kind=EndKind.EXITED)
    assert not exited.succeeded
    assert not msgspec.structs.replace(exited, exit_code=1).succeeded
    assert msgspec.structs.replace(exited, exit_code=0).succeeded
    assert not msgspec.structs.replace(END, kind=EndKind.CANCELLED, exit_code=0).succeeded
