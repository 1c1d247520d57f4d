"""Descriptors, metadata and the loop (bench.md 1.1 to 1.3, 8.1 E1 and E2)."""

import re
from collections.abc import Callable

import msgspec
import pytest

from nodeproof.errors import RunError
from nodeproof.model.run import Frame, RunStatus
from nodeproof.runs.benchmark import PluginMetadata, drive
from support.runs import Scripted, script


def loaded(steps: int, **acts: Callable[[Scripted], object]) -> tuple[Scripted, list[str]]:
    calls: list[str] = []
    descriptor = script(calls, acts=acts)
    benchmark = Scripted(lambda: descriptor, calls, acts)
    benchmark.steps = steps
    return benchmark, calls


def test_three_running_steps_and_a_terminal_one_are_four_frames() -> None:
    """E1."""
    benchmark, calls = loaded(3)
    statuses = [item.status for item in drive(benchmark) if isinstance(item, Frame)]
    assert statuses == [RunStatus.RUNNING] * 3 + [RunStatus.COMPLETED]
    assert calls == ["next"] * 4


def test_error_at_the_second_step_is_the_second_item_and_the_last() -> None:
    """E2."""

    def step(bench: Scripted) -> None:
        if len(calls) == 2:
            raise RunError("step 2 of 9")

    benchmark, calls = loaded(9, next=step)
    items = list(drive(benchmark))
    assert len(items) == 2
    assert isinstance(items[1], RunError)
    assert str(items[1]) == "step 2 of 9"
    assert calls == ["next"] * 2


def test_what_is_no_frame_is_an_error_item() -> None:
    benchmark, _ = loaded(9, next=lambda _: "frame")
    (item,) = drive(benchmark)
    assert str(item) == "next() returned a str where a Frame was expected"


def test_an_interrupt_is_no_item() -> None:
    def interrupt(_: Scripted) -> None:
        raise KeyboardInterrupt

    benchmark, _ = loaded(9, next=interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(drive(benchmark))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": ""}, "benchmark id ''"),
        ({"id": "Upper"}, "benchmark id 'Upper'"),
        ({"id": "a/b"}, "benchmark id 'a/b'"),
        ({"id": "a" * 65}, "expected 1 to 64"),
        ({"aliases": ("ok", "not ok")}, "benchmark id 'not ok'"),
        ({"name": ""}, "must say something"),
        ({"summary": ""}, "must say something"),
        ({"detail": ""}, "must say something"),
        ({"duration_hint": ""}, "must say something"),
        ({"expected_secs": 0}, "expected_secs 0 is no estimate"),
        ({"expected_secs": -1}, "expected_secs -1 is no estimate"),
        ({"updated": "2026-13-01"}, "updated is '2026-13-01', expected a date like"),
        ({"updated": "yesterday"}, "expected a date like"),
    ],
)
def test_unsound_descriptors_are_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(RunError, match=re.escape(problem)):
        msgspec.structs.replace(script([]), **change)


def test_only_what_cannot_run_may_expect_no_time() -> None:
    descriptor = msgspec.structs.replace(script([]), expected_secs=0, duration_hint="unrunnable: the data set is not published")
    assert descriptor.expected_secs == 0


def test_metadata_rows_leave_out_what_was_not_said() -> None:
    metadata = PluginMetadata.third_party("d", "1", author="A", license="MIT", repository="https://example.org/r")
    assert metadata.rows() == [("Author", "A"), ("Repository", "https://example.org/r"), ("License", "MIT")]
    assert not metadata.official
    assert PluginMetadata("d", "1", official=True).rows() == []
