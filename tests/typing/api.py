"""What others build on, as a type checker sees it: checked by mypy, never run.

A change that breaks somebody's typed collector, reader or test shows here first.
"""

from typing import assert_type

from nodeproof.clock import Clock, Instant, SystemClock
from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.daemon.snapshot_facade import collect_hw_specs, read_comp, read_global, read_state
from nodeproof.errors import Absence, NoData
from nodeproof.health import Evaluator, Readings, verdict
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.catalogue import CATALOGUE, MetricSpec
from nodeproof.model.health import Finding, Grade, HealthScore, Verdict
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.model.snapshot import CompSnapshot, DaemonState, DaemonVerdict, GlobalSnapshot


class _Loads:
    """A third party's collector."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        if not cycle.wants("load_average"):
            return
        text = assert_type(self._files.read_text("/proc/loadavg"), str)
        cycle.add("load_average", float(text.split()[0]), {"interval": "1m"})
        cycle.miss("process_count", Absence.UNSUPPORTED, "not told", remedy="none")


def create(machine: Machine, selection: Selection) -> Collector:
    """What an entry point of ``nodeproof.collectors`` names."""
    return GroupCollector("cpu", [Group(("load_average", "process_count"), _Loads(machine).read, 5.0)], machine, selection)


class _Everything:
    def wants(self, component: str, name: str) -> bool:
        return bool(component and name)


def observe(clock: Clock) -> HealthScore:
    """From a machine to a verdict."""
    machine = recorded_machine("/fixtures/host", {"lspci -D": b""}, ManualClock())
    batch = assert_type(create(machine, _Everything()).collect(), Batch)
    assert_type(batch.metrics, list[Metric])
    assert_type(batch.missing, list[Missing])
    assert_type(batch.metrics[0].labels, dict[str, str] | None)
    now = assert_type(clock.now(), Instant)
    return assert_type(Evaluator("0.3.5").evaluate(Readings({"cpu": batch}), now), HealthScore)


def read_along(directory: str) -> None:
    """A reader of the snapshot directory."""
    overall = assert_type(read_global(f"{directory}/snapshot.json"), GlobalSnapshot)
    assert_type(overall.health.findings, list[Finding])
    assert_type(overall.health.grade, Grade)
    assert_type(read_comp(f"{directory}/snapshot_cpu.json"), CompSnapshot)
    state = assert_type(read_state(directory), DaemonState)
    assert_type(state.verdict, DaemonVerdict)
    assert_type(state.fresh, bool)


def judge(score: HealthScore | None) -> int:
    """What ``check`` makes of a score."""
    told = assert_type(verdict(score, problem=""), Verdict)
    return assert_type(told.exit_code, int)


def look_up() -> MetricSpec | None:
    """A row of the catalogue, and an absence."""
    absence = NoData(Absence.NO_PERMISSION, "may not", remedy="run as root")
    assert_type(absence.state, Absence)
    collect_hw_specs(Machine.here())
    assert_type(SystemClock().now().mono_s, float)
    return CATALOGUE.get(("cpu", "usage"))
