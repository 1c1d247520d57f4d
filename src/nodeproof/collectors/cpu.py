"""Component cpu."""

from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels, Metric
from nodeproof.sources import proc_loadavg, proc_stat
from nodeproof.sources.proc_stat import CpuTimes

__all__ = ["create"]

_TIMES = tuple(f"{field}_time" for field in CpuTimes._fields)
_UTILS = ("user_util", "system_util", "idle_util", "iowait_util")
_LOAD_LABELS: tuple[Labels, ...] = ({"interval": "1m"}, {"interval": "5m"}, {"interval": "15m"})
_RUNNING: Labels = {"type": "running"}
_TOTAL: Labels = {"type": "total"}


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    times = _Times(machine)
    load = _Load(machine)
    groups = (
        Group(("usage", *_TIMES, *_UTILS, "context_switches"), times.read),
        Group(("load_average", "process_count"), load.read),
    )
    return GroupCollector("cpu", groups, machine, selection)


class _Load:
    """Averages and counts of ``/proc/loadavg``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        load = proc_loadavg.parse(self._files.read_kept("/proc/loadavg"))
        for labels, value in zip(_LOAD_LABELS, load[:3], strict=True):
            cycle.add("load_average", value, labels)
        cycle.add("process_count", load.running, _RUNNING)
        cycle.add("process_count", load.total, _TOTAL)


class _Times:
    """Counters of ``/proc/stat`` and the shares of time between two readings of it."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._before: dict[str, CpuTimes] = {}
        self._switches_before: tuple[int, float] | None = None
        self._labels: dict[str, Labels] = {}

    def read(self, cycle: Cycle) -> None:
        stat = proc_stat.parse(self._files.read_kept("/proc/stat"))
        wanted_times = [(name, field) for field, name in enumerate(_TIMES) if cycle.wants(name)]
        wants_shares = cycle.wants("usage") or any(map(cycle.wants, _UTILS))
        for core, times in stat.cpus.items():
            labels = self._labels.setdefault(core, {"core": core})
            cycle.metrics += [
                Metric("cpu", name, times[field], "jiffies", labels, cycle.timestamp) for name, field in wanted_times
            ]
            if wants_shares:
                self._shares(cycle, labels, self._before.get(core), times)
        self._before = stat.cpus
        self._switches(cycle, stat.context_switches)

    @staticmethod
    def _shares(cycle: Cycle, labels: Labels, before: CpuTimes | None, now: CpuTimes) -> None:
        if before is None:
            cycle.miss("usage", Absence.UNKNOWN, "needs a second reading of /proc/stat", labels)
            return
        # Each field is clamped alone: iowait may step back (proc_stat(5)), and a core that was offline starts anew.
        user, nice, system, idle, iowait, irq, softirq, steal = (max(0, b - a) for a, b in zip(before, now, strict=True))
        total = user + nice + system + idle + iowait + irq + softirq + steal
        if total == 0:
            cycle.miss("usage", Absence.UNKNOWN, "no time was counted since the last reading", labels)
            return
        percent = 100.0 / total
        cycle.add("usage", round((total - idle) * percent, 2), labels)
        cycle.add("user_util", round((user + nice) * percent, 2), labels)
        cycle.add("system_util", round(system * percent, 2), labels)
        cycle.add("idle_util", round(idle * percent, 2), labels)
        cycle.add("iowait_util", round(iowait * percent, 2), labels)

    def _switches(self, cycle: Cycle, count: int | None) -> None:
        before, self._switches_before = self._switches_before, None if count is None else (count, cycle.at.mono_s)
        if count is None or before is None or count < before[0] or cycle.at.mono_s <= before[1]:
            cycle.miss("context_switches", Absence.UNKNOWN, "needs two readings of ctxt in /proc/stat")
            return
        cycle.add("context_switches", round((count - before[0]) / (cycle.at.mono_s - before[1]), 2))
