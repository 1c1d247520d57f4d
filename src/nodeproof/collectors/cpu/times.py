"""Processor times, shares and event rates from ``/proc/stat``, load from ``/proc/loadavg``: the hot path of component cpu.

On a host of 256 processors this makes 3,300 readings a cycle, so metrics are made directly, in integer arithmetic, and labels are
kept. Only the newest reading is remembered: a processor that goes offline leaves nothing behind and starts anew when it is back.
"""

from collections.abc import Callable

from nodeproof.collectors.base import Cycle
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels, Metric
from nodeproof.sources import proc_loadavg, proc_stat
from nodeproof.sources.proc_stat import CpuTimes, Stat

__all__ = ["LOAD", "STAT", "Load", "Times", "counter_rate"]

_TIMES = tuple(f"{field}_time" for field in CpuTimes._fields)
_TOTAL_SHARES = ("irq_util", "softirq_util", "steal_util")
"""Shares that are given for all processors together only."""
_SHARES = ("usage", "user_util", "system_util", "idle_util", "iowait_util")
_RATES: tuple[tuple[str, Callable[[Stat], int | None]], ...] = (
    ("context_switches", lambda stat: stat.context_switches),
    ("interrupts", lambda stat: stat.interrupts),
    ("softirqs", lambda stat: stat.softirqs),
    ("forks", lambda stat: stat.forks),
)

STAT = (*_SHARES, *_TOTAL_SHARES, *_TIMES, *(name for name, _ in _RATES), "procs_blocked")
"""Metrics of :class:`Times`."""
LOAD = ("load_average", "process_count")
"""Metrics of :class:`Load`."""

_LOAD_LABELS: tuple[Labels, ...] = ({"interval": "1m"}, {"interval": "5m"}, {"interval": "15m"})
_RUNNING: Labels = {"type": "running"}
_TOTAL: Labels = {"type": "total"}


class Load:
    """Averages and counts of ``/proc/loadavg``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        """Read the one line."""
        load = proc_loadavg.parse(self._files.read_kept("/proc/loadavg"))
        for labels, value in zip(_LOAD_LABELS, load[:3], strict=True):
            cycle.add("load_average", value, labels)
        cycle.add("process_count", load.running, _RUNNING)
        cycle.add("process_count", load.total, _TOTAL)


class Times:
    """Counters of ``/proc/stat`` and the shares of time between two readings of it."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._before: dict[str, CpuTimes] = {}
        self._stat_before: tuple[Stat, float] | None = None
        self._labels: dict[str, Labels] = {}

    def read(self, cycle: Cycle) -> None:
        """Read the whole file once."""
        before, self._before = self._before, {}
        stat_before, self._stat_before = self._stat_before, None
        stat = proc_stat.parse(self._files.read_kept("/proc/stat"))
        if self._labels.keys() != stat.cpus.keys():
            self._labels = {core: self._labels.get(core) or {"core": core} for core in stat.cpus}
        self._before, self._stat_before = stat.cpus, (stat, cycle.at.mono_s)
        self._times(cycle, stat)
        self._shares(cycle, before, stat)
        _rates(cycle, stat_before, stat)
        if stat.procs_blocked is None:
            cycle.miss("procs_blocked", Absence.UNSUPPORTED, "/proc/stat has no line procs_blocked")
        else:
            cycle.add("procs_blocked", stat.procs_blocked)

    def _times(self, cycle: Cycle, stat: Stat) -> None:
        wanted = [(name, field) for field, name in enumerate(_TIMES) if cycle.wants(name)]
        timestamp = cycle.timestamp
        for core, times in stat.cpus.items():
            labels = self._labels[core]
            cycle.metrics += [Metric("cpu", name, times[field], "jiffies", labels, timestamp) for name, field in wanted]

    def _shares(self, cycle: Cycle, before: dict[str, CpuTimes], stat: Stat) -> None:
        wanted = [cycle.wants(name) for name in _SHARES]
        wanted_of_total = [name for name in _TOTAL_SHARES if cycle.wants(name)]
        if not any(wanted) and not wanted_of_total:
            return
        slots = [(slot, name) for slot, name in enumerate(_SHARES) if wanted[slot]]
        without: dict[str, list[str]] = {}
        timestamp = cycle.timestamp
        for core, now in stat.cpus.items():
            earlier = before.get(core)
            ticks = _elapsed_ticks(earlier, now)
            total = sum(ticks)
            if total == 0:
                without.setdefault(_why_without(earlier, ticks), []).append(core)
                continue
            shares = _hundredths(ticks, total)
            labels = self._labels[core]
            cycle.metrics += [Metric("cpu", name, shares[slot] / 100, "%", labels, timestamp) for slot, name in slots]
            if core == "total":
                for name, elapsed in zip(_TOTAL_SHARES, ticks[5:], strict=True):
                    cycle.add(name, (10_000 * elapsed + total // 2) // total / 100, labels)
        for reason, cores in without.items():
            _miss_shares(cycle, reason, cores, of_all=len(cores) == len(stat.cpus))


def _elapsed_ticks(before: CpuTimes | None, now: CpuTimes) -> tuple[int, ...]:
    """Ticks of each kind since ``before``; nothing when there is no earlier reading or the processor's counters began anew.

    idle and iowait are reckoned by the kernel from several clocks and may step back a little (proc_stat(5)): then they count 0.
    """
    if before is None:
        return ()
    user, nice, system, idle, iowait, irq, softirq, steal = now
    user_0, nice_0, system_0, idle_0, iowait_0, irq_0, softirq_0, steal_0 = before
    if user < user_0 or nice < nice_0 or system < system_0 or irq < irq_0 or softirq < softirq_0 or steal < steal_0:
        return ()
    return (
        user - user_0,
        nice - nice_0,
        system - system_0,
        idle - idle_0 if idle > idle_0 else 0,
        iowait - iowait_0 if iowait > iowait_0 else 0,
        irq - irq_0,
        softirq - softirq_0,
        steal - steal_0,
    )


def _hundredths(ticks: tuple[int, ...], total: int) -> tuple[int, int, int, int, int]:
    """The shares of ``_SHARES`` in hundredths of a percent, rounded half up; whole numbers keep this quick and exact."""
    half = total // 2
    idle = 10_000 * ticks[3]
    return (
        (10_000 * total - idle + half) // total,
        (10_000 * (ticks[0] + ticks[1]) + half) // total,
        (10_000 * ticks[2] + half) // total,
        (idle + half) // total,
        (10_000 * ticks[4] + half) // total,
    )


def _why_without(before: CpuTimes | None, ticks: tuple[int, ...]) -> str:
    if before is None:
        return "needs a second reading of /proc/stat"
    return "no time was counted since the last reading" if ticks else "the counters began anew"


_CORES_NAMED = 8


def _miss_shares(cycle: Cycle, reason: str, cores: list[str], *, of_all: bool) -> None:
    """One entry a metric, however many processors it stands for."""
    if of_all:
        text = reason
    else:
        shown = ", ".join(cores[:_CORES_NAMED]) + (f" and {len(cores) - _CORES_NAMED} more" if len(cores) > _CORES_NAMED else "")
        text = f"core {shown}: {reason}"
    names = _SHARES + (_TOTAL_SHARES if "total" in cores else ())
    for name in names:
        cycle.miss(name, Absence.UNKNOWN, text)


def _rates(cycle: Cycle, before: tuple[Stat, float] | None, stat: Stat) -> None:
    for name, pick in _RATES:
        count = pick(stat)
        if count is None:
            cycle.miss(name, Absence.UNSUPPORTED, "/proc/stat has no line for it")
            continue
        earlier = None if before is None else pick(before[0])
        rate = counter_rate(earlier, count, cycle.at.mono_s - before[1] if before is not None else 0.0)
        if rate is None:
            cycle.miss(name, Absence.UNKNOWN, "needs two readings of /proc/stat, the later one not smaller")
        else:
            cycle.add(name, round(rate, 2))


def counter_rate(before: float | None, now: float, elapsed_s: float) -> float | None:
    """Increase a second of a counter; None without an earlier reading, without time between them, or when it began anew."""
    if before is None or now < before or elapsed_s <= 0:
        return None
    return (now - before) / elapsed_s
