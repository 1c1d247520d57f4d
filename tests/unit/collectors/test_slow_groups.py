"""When slow groups run: at their cadence, and quickly at first while readings are unknown."""

from collections.abc import Callable

from nodeproof.collectors.base import Cycle, Group, GroupCollector
from nodeproof.errors import Absence
from nodeproof.host.recorded import ManualClock, recorded_machine


class _All:
    def wants(self, component: str, name: str) -> bool:  # noqa: ARG002 - the protocol's parameters
        return True


def _runs(read: Callable[[Cycle], None], cycles: int, every_s: float = 60.0) -> int:
    """How often a group ran in so many cycles of 1 s."""
    clock = ManualClock()
    ran = 0

    def count(cycle: Cycle) -> None:
        nonlocal ran
        ran += 1
        read(cycle)

    collector = GroupCollector("cpu", [Group(("core_num",), count, every_s)], recorded_machine("/nowhere", clock=clock), _All())
    for _ in range(cycles):
        collector.collect()
        clock.advance(1.0)
    return ran


def test_a_group_with_its_readings_waits_for_its_period() -> None:
    assert _runs(lambda cycle: cycle.add("core_num", 2), 120) == 2


def test_a_group_with_unknown_readings_runs_five_times_at_once_and_then_at_its_period() -> None:
    # cycles 0 to 4, then 60 s after each
    assert _runs(lambda cycle: cycle.miss("core_num", Absence.UNKNOWN, "not yet"), 120) == 6


def test_other_absences_wait_for_the_period() -> None:
    assert _runs(lambda cycle: cycle.miss("core_num", Absence.UNSUPPORTED, "never"), 120) == 2


def test_a_group_without_a_period_runs_each_cycle() -> None:
    assert _runs(lambda cycle: cycle.add("core_num", 2), 7, every_s=0.0) == 7
