"""What is not there, cannot be read or cannot be kept: an error that names it, and a result that claims nothing."""

from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RunError
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.job import (
    BenchmarkResult,
    Correctness,
    Execution,
    ExecutionProfile,
    Outcome,
    Performance,
    Status,
)
from nodeproof.model.process import Ended, EndKind
from nodeproof.stress import availability
from nodeproof.stress.adapters.base import DescribeError, ItemRequest, LaunchError
from nodeproof.stress.adapters.native import NativeAdapter
from nodeproof.stress.adapters.script import ScriptAdapter
from nodeproof.stress.benchmarks import BUILT_IN_DESCRIPTORS
from nodeproof.stress.item import Confinement, ItemBenchmark
from nodeproof.stress.judging import judge_output
from nodeproof.stress.problems import SelectionError
from nodeproof.stress.runner import place
from nodeproof.stress.selection import select_names, select_timeouts
from nodeproof.stress.settings import ItemSettings, NativePrograms, StressSettings
from nodeproof.stress.sizing import Plan
from nodeproof.stress.verdict import Judged, performance_of
from support.items import ProgramAdapter
from support.stress import ENVIRON, STREAM_GOOD, answer, make_manager, make_settings, make_tools, write_dispatcher


def _native(folder: Path, name: str, **programs: object) -> NativeAdapter:
    native = msgspec.convert(programs, NativePrograms)
    settings = make_settings(folder, "", names=(name,))
    items = {name: ItemSettings(enabled=True, adapter="native", native=native)}
    return NativeAdapter(msgspec.structs.replace(settings, benchmarks=items), ENVIRON, make_tools(settings).machine)


def test_a_box_whose_memory_cannot_be_read_is_not_sized(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(make_settings(tmp_path, "", names=("hpl",)))
    adapter = NativeAdapter(settings, ENVIRON, recorded_machine(str(tmp_path)))
    with pytest.raises(DescribeError, match="the memory of this box cannot be read"):
        adapter.describe(ItemRequest("hpl"))
    with pytest.raises(LaunchError, match="the memory of this box cannot be read"):
        adapter.launch(ItemRequest("hpl"))


def test_native_programs_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeproof.host.commands.HostCommands.find", lambda _self, _program: None)
    adapter = _native(tmp_path, "hpl")
    message = adapter.describe(ItemRequest("hpl")).preflight.message
    assert "no xhpl was found; install it, or name it by its variable" in message
    assert "the launcher (mpirun)" in message
    with pytest.raises(LaunchError, match="no program for hpl was found"):
        adapter.launch(ItemRequest("hpl"))


def test_a_result_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    program = tmp_path / "xhpcg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    adapter = _native(tmp_path, "hpcg", executable=str(program), launcher="/bin/true", workdir=str(tmp_path / "none"))
    with pytest.raises(LaunchError, match=r"/none: No such file or directory"):
        adapter.launch(ItemRequest("hpcg"))
    assert "is no directory" in adapter.describe(ItemRequest("hpcg")).preflight.message


def _script(folder: Path, path: str, *, result_dir: str = "") -> ScriptAdapter:
    settings = make_settings(folder, path, names=("stream", "hpcg"))
    items = {name: msgspec.structs.replace(item, result_dir=result_dir) for name, item in settings.benchmarks.items()}
    return ScriptAdapter(msgspec.structs.replace(settings, benchmarks=items), ENVIRON, make_tools(settings).machine)


def test_a_dispatcher_that_is_not_there(tmp_path: Path) -> None:
    adapter = _script(tmp_path, str(tmp_path / "none"))
    assert adapter.stamp(ItemRequest("stream")) is None
    with pytest.raises(DescribeError, match="/none: No such file or directory"):
        adapter.describe(ItemRequest("stream"))
    with pytest.raises(LaunchError, match="/none: No such file or directory"):
        adapter.launch(ItemRequest("stream"))


def test_a_dispatcher_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DescribeError, match="/dev/null is no regular file"):
        _script(tmp_path, "/dev/null").describe(ItemRequest("stream"))


def test_a_dispatcher_that_takes_itself_away(tmp_path: Path) -> None:
    path = tmp_path / "check.sh"
    told = msgspec.json.encode(answer("stream")).decode()
    write_dispatcher(path, describe=f"rm -- '{path}'; echo '{told}'")
    with pytest.raises(DescribeError, match=r"check\.sh: No such file or directory"):
        _script(tmp_path, str(path)).describe(ItemRequest("stream"))


def test_a_state_directory_that_cannot_be_had_is_told_with_what_it_was_for(tmp_path: Path) -> None:
    adapter = _script(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(DescribeError, match=r"describe stream: .*state"):
        adapter.describe(ItemRequest("stream"))


def test_results_of_a_dispatcher_that_cannot_be_looked_for(tmp_path: Path) -> None:
    adapter = _script(tmp_path, write_dispatcher(tmp_path / "check.sh"), result_dir=str(tmp_path / "gone"))
    with pytest.raises(LaunchError, match="/gone: No such file or directory"):
        adapter.launch(ItemRequest("hpcg"))


def test_what_cannot_be_chosen(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "/bin/true")
    off = {name: msgspec.structs.replace(item, enabled=False) for name, item in settings.benchmarks.items()}
    with pytest.raises(SelectionError, match="no stress item is configured and enabled"):
        select_names(msgspec.structs.replace(settings, benchmarks=off), [])
    with pytest.raises(SelectionError, match=r"no item was named and stress\.default_benchmarks is empty"):
        select_names(msgspec.structs.replace(settings, default_benchmarks=()), [" "])
    with pytest.raises(SelectionError, match="'x' is no stress item; there are stream, hpl"):
        select_names(settings, ["x"])
    with pytest.raises(SelectionError, match="a limit of -1 s is none"):
        select_timeouts(settings, ["stream"], -1.0)


def _availability(settings: StressSettings, name: str, profile: ExecutionProfile | None = None) -> availability.Availability:
    def describe() -> ExecutionProfile:
        assert profile is not None
        return profile

    return availability.check(settings, name, describe)


def test_why_an_item_is_not_available(tmp_path: Path) -> None:
    path = write_dispatcher(tmp_path / "check.sh")
    settings = make_settings(tmp_path, path, names=("stream", "hpcg", "own"))
    assert _availability(settings, "own").message == "own is no stress item"
    none = msgspec.structs.replace(settings.benchmarks["hpcg"], result_dir="")
    bare = msgspec.structs.replace(settings, benchmarks={"hpcg": none})
    assert _availability(bare, "hpcg").message.startswith("stress.benchmarks.hpcg.result_dir is not set")
    lost = msgspec.structs.replace(settings.benchmarks["hpcg"], result_dir=str(tmp_path / "lost"))
    assert _availability(msgspec.structs.replace(settings, benchmarks={"hpcg": lost}), "hpcg").message.endswith("is no directory")
    bad = answer(
        mpi={"required": True, "implementation": "x", "executable_abi": "y", "status": "fail", "message": "two families"},
        preflight={"status": "fail", "message": "1 of 1 checks failed: two families (use one)"},
    )
    found = _availability(settings, "stream", msgspec.convert(bad, ExecutionProfile))
    assert found.message == "MPI: two families; 1 of 1 checks failed: two families (use one)"
    with pytest.raises(DescribeError, match="result_dir is not set"):
        make_manager(bare).describe("hpcg")
    with pytest.raises(DescribeError, match="gpu_burn is not enabled here"):
        make_manager(bare).describe("gpu_burn")


def test_a_runner_whose_folder_may_not_be_looked_into_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "DEFAULT_SOCKET", str(tmp_path / "runner.sock"))
    assert place.may_own("") is False
    (tmp_path / "runner.sock").touch()
    assert place.may_own("") is True

    def forbidden(_path: str) -> None:
        raise PermissionError

    monkeypatch.setattr("os.stat", forbidden)
    assert place.may_own("") is True
    assert (place.may_own("none"), place.may_own("/x.sock")) == (False, True)


# An item that was not run through its life


def _item(adapter: object = None) -> ItemBenchmark:
    descriptor = next(one for one in BUILT_IN_DESCRIPTORS if one.id == "cpu-sdc")
    return ItemBenchmark(lambda: descriptor, "cpu_sdc", adapter or ProgramAdapter(""), Confinement(), 10.0)  # type: ignore[arg-type]  # a test's own


def test_an_item_out_of_its_order_says_what_is_missing() -> None:
    item = _item()
    with pytest.raises(RunError, match="the item was not loaded"):
        item.next()
    with pytest.raises(RunError, match="the item was not started"):
        item._running()
    assert item._judgement() is None
    assert (item.ended, item.output_path) == (None, None)
    item.kill()
    item.cleanup()


_ENDED = Ended(kind=EndKind.EXITED, reason="", exit_code=0, duration_s=1.0, empty=True)


@pytest.mark.parametrize(
    ("ended", "execution", "reason", "cause"),
    [
        (_ENDED, Execution.FINISHED, "it ended by itself", ""),
        (
            msgspec.structs.replace(_ENDED, leftovers=2),
            Execution.FINISHED,
            "it ended by itself; 2 processes outlived it and were ended",
            "",
        ),
        (msgspec.structs.replace(_ENDED, kind=EndKind.OOM, reason="no memory"), Execution.CRASHED, "no memory", "out_of_memory"),
        (msgspec.structs.replace(_ENDED, kind=EndKind.KEEPER_LOST, reason="x"), Execution.CRASHED, "x", "keeper_lost"),
        (
            msgspec.structs.replace(_ENDED, exit_code=3, reason="it ended with 3"),
            Execution.CRASHED,
            "it ended with 3",
            "exit_status",
        ),
    ],
)
def test_how_an_end_is_called(ended: Ended, execution: Execution, reason: str, cause: str) -> None:
    assert _item()._execution(ended) == (execution, reason, cause)


class _Heard:
    """A handle that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, text: str) -> None:
        self.said.append(text)

    warn = info


def test_an_end_that_is_not_proven_empty_or_whole_is_warned_of() -> None:
    item, heard = _item(), _Heard()
    item.load(heard)  # type: ignore[arg-type]  # all that is asked of it here
    bad = msgspec.structs.replace(
        _ENDED,
        kind=EndKind.CANCELLED,
        reason="cancelled",
        empty=False,
        output_bytes=900,
        output_kept_bytes=100,
        output_error="No space left on device",
    )
    item._tell_end(bad)
    assert heard.said == [
        "process tree ended (cancelled: cancelled), and it is not proven that nothing of it is left",
        "900 bytes were printed, 100 of them are kept",
        "output could not be kept: No space left on device",
    ]


# A number that is not held against its past


def _judged(plan: str = "standard", **details: object) -> Judged:
    outcome = Outcome(
        execution=Execution.FINISHED,
        correctness=Correctness.VALIDATED,
        performance=Performance.NOT_JUDGED,
        progress=True,
    )
    result = BenchmarkResult(name="stream", status=Status.HEALTHY, message="", duration_ms=1, details=details, outcome=outcome)
    judgement = judge_output("stream", STREAM_GOOD.encode())
    return Judged(result, judgement, msgspec.convert(answer(), ExecutionProfile), plan, 1.0)


@pytest.mark.parametrize(
    ("plan", "details", "performance", "reason"),
    [
        (
            "soak",
            {"soak": {"rate_sank": True, "rate": "-9 %"}},
            Performance.DEGRADED,
            "its rate sank while it ran: -9 %",
        ),
        (
            "standard",
            {"hardware": {"validity": "invalid"}},
            Performance.NOT_JUDGED,
            "the box was not fit while the number was taken",
        ),
        (
            Plan.SOAK,
            {"hardware": {"validity": "valid", "concerns": ["throttled", "swapped"]}},
            Performance.NOT_JUDGED,
            "the box was not fit for a speed: throttled; swapped",
        ),
    ],
)
def test_a_number_of_an_unfit_box_is_no_past(
    tmp_path: Path, plan: str, details: dict[str, object], performance: Performance, reason: str
) -> None:
    store = make_tools(make_settings(tmp_path, "")).baselines
    judged = performance_of(_judged(plan, **details), store, str)
    assert judged.outcome is not None
    assert (judged.outcome.performance, judged.outcome.reasons["performance"]) == (performance, reason)
    assert not (tmp_path / "state/baselines").exists()


def test_an_item_without_an_outcome_has_no_speed(tmp_path: Path) -> None:
    store = make_tools(make_settings(tmp_path, "")).baselines
    judged = _judged(soak={"rate_sank": True})
    bare = judged._replace(result=msgspec.structs.replace(judged.result, outcome=None))
    assert performance_of(bare, store, str) == bare.result
