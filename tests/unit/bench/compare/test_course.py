"""A pinned reference moves only when somebody says so; a level that changed since is found, and where."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.compare.change_point import change_point, outlier_score
from nodeproof.bench.compare.course import course_exit_code, course_of
from nodeproof.bench.compare.pair import Word
from nodeproof.bench.compare.references import PAYLOAD_TYPE, ReferenceStore
from nodeproof.errors import RecordError
from nodeproof.host.signing_key import SigningKey
from nodeproof.model.run import RunRecord
from support.gate import NOW, leaves, record

# Pettitt's statistic worked out by hand: five values, then five higher ones, none equal. After the fifth each of the first five
# is below five and stands at 0 against its own: U = -25, so p = 2 exp(-6 * 625 / (1000 + 100)) = 0.0661.
STEP = [1.0, 2.0, 3.0, 4.0, 5.0, 11.0, 12.0, 13.0, 14.0, 15.0]


def test_a_step_of_five_is_not_enough_and_one_of_ten_is() -> None:
    assert change_point(STEP) is None
    found = change_point([*range(1, 11), *range(101, 111)])
    assert found is not None
    # U = -100, p = 2 exp(-6 * 10000 / (8000 + 400)) = 0.00158
    assert (found.place, found.before, found.after) == (10, 5.5, 105.5)
    assert found.p == pytest.approx(0.00158, abs=1e-5)
    assert found.change == pytest.approx(105.5 / 5.5 - 1)


def test_short_and_flat_rows_have_no_change() -> None:
    assert change_point([1.0] * 7) is None
    assert change_point([1.0] * 100) is None


def test_a_slow_decay_is_seen_though_no_step_is_large() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    row = [100.0 - 0.4 * n + chance.gauss(0, 0.5) for n in range(30)]
    found = change_point(row)
    assert found is not None
    assert found.change is not None
    assert found.change < -0.03


def test_chance_alone_is_seldom_taken_for_a_change() -> None:
    chance = random.Random(5)  # noqa: S311 - no secret
    seen = sum(change_point([chance.gauss(100, 1) for _ in range(30)]) is not None for _ in range(200))
    assert seen <= 4


@given(st.lists(st.floats(-1e6, 1e6), max_size=60))
def test_any_row(values: list[float]) -> None:
    found = change_point(values)
    if found is not None:
        assert 0 < found.place < len(values)
        assert found.p <= 0.01


def test_how_far_off_a_value_is() -> None:
    assert outlier_score(5.0, [1.0, 2.0]) is None
    # median 2, deviations 1 0 1: 1 * 1.4826
    assert outlier_score(5.0, [1.0, 2.0, 3.0]) == pytest.approx(3 / 1.4826)
    assert outlier_score(2.0, [2.0, 2.0, 2.0]) == 0.0
    assert outlier_score(3.0, [2.0, 2.0, 2.0]) == float("inf")


def run(number: int, value: float, **more: Any) -> RunRecord:
    made = record(recorded_at=NOW + number, metrics={"output_tok_s": value}, **more)
    return msgspec.structs.replace(made, run_id=f"run-{number}")


@pytest.fixture
def references(tmp_path: Path) -> ReferenceStore:
    return ReferenceStore(str(tmp_path), SigningKey(str(tmp_path)))


def test_a_pin_is_kept_with_what_it_replaced(references: ReferenceStore) -> None:
    assert references.read(run(1, 1.0)) is None
    references.pin(run(1, 100.0), "aa", "first", NOW)
    references.pin(run(2, 120.0), "bb", "", NOW + 5)
    found = references.read(run(3, 1.0))
    assert found is not None
    assert (found.run_id, found.metrics, found.manifest_sha256, found.box) == ("run-2", {"output_tok_s": 120.0}, "bb", "h200")
    assert [(one.run_id, one.note, one.pinned_at) for one in found.before] == [("run-1", "first", NOW)]
    assert references.read(run(1, 1.0, target_model="n")) is None
    assert references.read(run(1, 1.0, box="h100@x")) is None
    assert references.read(run(1, 1.0, params={})) is None
    assert references.all() == ([found], [])


def test_any_changed_value_of_a_reference_is_named(references: ReferenceStore, tmp_path: Path) -> None:
    one = run(1, 100.0)
    references.pin(one, "aa", "note", NOW)
    path = Path(references.path(one))
    envelope = json.loads(path.read_bytes())
    payload = json.loads(base64.b64decode(envelope["payload"]))
    for leaf in leaves(payload):
        forged = json.loads(json.dumps(payload))
        holder = forged
        for step in leaf[:-1]:
            holder = holder[step]
        holder[leaf[-1]] = "x" if isinstance(holder[leaf[-1]], str) else 7
        path.write_bytes(msgspec.json.encode(envelope | {"payload": base64.b64encode(msgspec.json.encode(forged)).decode()}))
        with pytest.raises(RecordError, match=r"is not to be believed: .* was changed"):
            references.read(one)
    path.write_bytes(b"{}")
    with pytest.raises(RecordError, match="is not to be believed"):
        references.pin(one, "aa", "", NOW)
    assert references.all()[1][0].startswith(f"the reference {path} is not to be believed")
    stranger = ReferenceStore(str(tmp_path / "other"), SigningKey(str(tmp_path / "other")))
    stranger.pin(one, "aa", "", NOW)
    path.write_bytes(Path(stranger.path(one)).read_bytes())
    with pytest.raises(RecordError, match="is not trusted here"):
        references.read(one)


def test_a_reference_of_another_instrument_in_its_place_is_named(references: ReferenceStore) -> None:
    one, other = run(1, 1.0), run(2, 1.0, params={})
    references.pin(one, "aa", "", NOW)
    Path(references.path(other)).write_bytes(Path(references.path(one)).read_bytes())
    with pytest.raises(RecordError, match="is the reference of another instrument"):
        references.read(other)


def test_signed_things_that_are_no_reference_are_refused(references: ReferenceStore, tmp_path: Path) -> None:
    one = run(1, 1.0)
    references.pin(one, "aa", "", NOW)
    key = SigningKey(str(tmp_path))
    body = b'{"schema":1}'
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(body).decode(),
        "signatures": [{"keyid": key.public.key_id, "sig": base64.b64encode(key.sign(PAYLOAD_TYPE, body)).decode()}],
    }
    Path(references.path(one)).write_bytes(msgspec.json.encode(envelope))
    with pytest.raises(RecordError, match="cannot be understood"):
        references.read(one)


def judged(references: ReferenceStore, values: list[float], key: str = "output_tok_s") -> tuple[Word, int, str]:
    """The last of ``values`` against a reference of 100 and the ones before it."""
    rows = [msgspec.structs.replace(run(n, 1.0), frame=record(metrics={key: value}).frame) for n, value in enumerate(values, 2)]
    base = msgspec.structs.replace(run(1, 1.0), frame=record(metrics={key: 100.0}).frame)
    reference = references.pin(base, "aa", "", NOW)
    report = course_of(rows[-1], reference, rows[:-1])
    (one,) = report.metrics
    return one.word, int(course_exit_code(report)), one.changed_at or one.reason


def test_what_a_run_says_against_its_reference(references: ReferenceStore) -> None:
    scatter = [99.5, 100.0, 100.5, 100.2]
    assert judged(references, [*scatter, 100.1])[:2] == (Word.SAME, 0)
    assert judged(references, [*scatter, 90.0])[:2] == (Word.WORSE, 2)
    assert judged(references, [*scatter, 110.0])[:2] == (Word.BETTER, 0)
    assert judged(references, [*scatter, 110.0], "samples")[:2] == (Word.DIFFERENT, 0)
    assert judged(references, [100.0])[:2] == (Word.SAME, 0)
    word, code, reason = judged(references, [101.0])
    assert (word, code) == (Word.UNKNOWN, 3)
    assert reason == "how far equal runs differ is not known: 3 runs tell the scatter, 8 a change"


def test_a_level_that_changed_is_found_though_the_newest_is_within_the_scatter(references: ReferenceStore) -> None:
    chance = random.Random(3)  # noqa: S311 - no secret
    row = [100 + chance.gauss(0, 1) for _ in range(12)] + [97 + chance.gauss(0, 1) for _ in range(12)]
    word, code, since = judged(references, row)
    assert (word, code) == (Word.WORSE, 2)
    assert abs(int(since.removeprefix("run-")) - 14) <= 2


def test_later_runs_say_nothing_about_an_earlier_one(references: ReferenceStore) -> None:
    reference = references.pin(run(1, 100.0), "aa", "", NOW)
    report = course_of(run(2, 100.0), reference, [run(3, 50.0), run(1, 100.0)])
    assert report.runs == ["run-1", "run-2"]
