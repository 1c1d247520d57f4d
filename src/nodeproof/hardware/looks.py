"""One look at the box: every source that is due, each on its own lane, none waited for longer than the look may take.

Files of ``/proc`` that the kernel answers out of its own memory are read by the looking thread itself. Sources that this machine
does not have are asked again only at full looks, those before and after a run.
"""

import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from nodeproof.clock import Instant
from nodeproof.collectors.services.kernel_log import KernelCounts, KernelLog
from nodeproof.errors import Absence, NoData, NodeproofError
from nodeproof.hardware.lanes import Lane
from nodeproof.hardware.providers import Accelerators, Survey
from nodeproof.hardware.readers import memory
from nodeproof.hardware.readers.errors import Aer, Edac, Errors
from nodeproof.hardware.readers.memory import MemoryNow, Stalls
from nodeproof.hardware.readers.processes import OwnPids, Processes, ProcessUse
from nodeproof.hardware.readers.processors import Clocks, Governors, Processors, Throttle, ThrottlePair
from nodeproof.hardware.readers.temperatures import Temperature, Temperatures
from nodeproof.host.machine import Machine
from nodeproof.host.own_process import thread_cpu_s
from nodeproof.sources.proc_stat import CpuTimes

__all__ = ["Look", "Looker", "Reading", "busy_cpus", "busy_ticks"]

_T = TypeVar("_T")
Reading: TypeAlias = _T | NoData | None
"""A value, why there is none, or None when the source was not due."""

_MEMORY_EVERY_S = 2.0
"""No rule asks for it during a run: it is for people who watch."""
_BUSY = 0.5
"""A processor counts as busy when it worked at least this share of the interval."""


class Look(NamedTuple):
    """What was seen at one moment."""

    at: Instant
    suspended_s: float
    times: Reading[dict[int, CpuTimes]]
    memory: Reading[MemoryNow]
    vmstat: Reading[dict[str, int]]
    stalls: Reading[Stalls]
    processes: Reading[ProcessUse] = None
    throttle: Reading[dict[str, ThrottlePair | None]] = None
    clocks: Reading[dict[int, float]] = None
    """MHz of the processors that were busy since the last look."""
    governors: Reading[dict[int, str]] = None
    temperatures: Reading[list[Temperature]] = None
    edac: Reading[dict[str, Errors]] = None
    aer: Reading[dict[str, Errors]] = None
    log: Reading[KernelCounts] = None
    surveys: tuple[tuple[str, Survey | NoData], ...] | None = None
    """By provider; None when not due, empty when there is no provider."""

    def sources(self) -> list[tuple[str, object]]:
        """Every source that was due, by name."""
        named = [(name, value) for name, value in zip(self._fields[2:-1], self[2:-1], strict=True) if value is not None]
        return [*named, *(self.surveys or ())]


def busy_ticks(times: CpuTimes) -> int:
    """Ticks of programs and of the kernel's work for them: interrupts and stolen time are nobody's."""
    return times.user + times.nice + times.system


def busy_cpus(before: dict[int, CpuTimes], now: dict[int, CpuTimes]) -> tuple[int, ...]:
    """Processors that were busy between two readings."""
    busy: list[int] = []
    for cpu, times in now.items():
        then = before.get(cpu)
        if then is None:
            continue
        passed = sum(times) - sum(then)
        if passed > 0 and busy_ticks(times) - busy_ticks(then) >= _BUSY * passed:
            busy.append(cpu)
    return tuple(busy)


class _Source(Generic[_T]):
    """One lane, how often it is due, and whether this machine has what it reads."""

    def __init__(self, name: str, call: Callable[[], _T], every_s: float = 0.0) -> None:
        self.lane = Lane(name, call)
        self._every_s = every_s
        self._asked_s = float("-inf")
        self._lacking: NoData | None = None
        self._running = False

    def start(self, now_s: float, *, full: bool) -> None:
        """Ask, when due."""
        self._running = full or (self._lacking is None and now_s - self._asked_s >= self._every_s)
        if self._running:
            self._asked_s = now_s
            self.lane.start()

    def finish(self, deadline_s: float) -> Reading[_T]:
        """The answer, waited for until ``deadline_s`` (time.monotonic); None when it was not due."""
        if not self._running:
            return self._lacking
        answer = self.lane.finish(deadline_s - time.monotonic())
        self._lacking = answer if isinstance(answer, NoData) and answer.state is Absence.NOT_APPLICABLE else None
        return answer


class Looker:
    """Looks at one machine for one run. ``look`` is for one thread at a time."""

    def __init__(
        self,
        machine: Machine,
        accelerators: Accelerators,
        *,
        roots: Sequence[int],
        own_pids: OwnPids | None,
        suspended_s: Callable[[], float],
    ) -> None:
        self._machine = machine
        self._suspended_s = suspended_s
        self.accelerators = accelerators
        self.processors = Processors(machine)
        self.governors = Governors(machine, self.processors.allowed)
        self._times: dict[int, CpuTimes] = {}
        self._busy: tuple[int, ...] = ()
        allowed = frozenset(self.processors.allowed) if self.processors.restricted() else None
        self.processes = Processes(machine, roots, own_pids, allowed)
        clocks = Clocks(machine)
        self._process_source = _Source("processes", lambda: self.processes.read(machine.clock.now()))
        self._throttle = _Source("thermal throttle counters", Throttle(machine, self.processors.allowed).read)
        self._clocks = _Source("clocks", lambda: clocks.read(self._busy))
        self._governors = _Source("governors", self.governors.read, float("inf"))
        self._temperatures = _Source("temperatures", Temperatures(machine).read, 2.0)
        self._edac = _Source("memory error counters", Edac(machine).read)
        self._aer = _Source("PCIe error counters", Aer(machine).read, 10.0)
        self._log = _Source("kernel log", lambda: machine.shared(KernelLog).counts())
        self._surveys = [(provider.name, _Source(provider.name, provider.read)) for provider in accelerators.providers]
        self._cpu_s = 0.0
        self._memory_s = float("-inf")

    @property
    def cpu_s(self) -> float:
        """CPU time that looking has cost, on all threads."""
        return self._cpu_s + sum(source.lane.cpu_s for source in self._sources())

    def look(self, timeout_s: float, *, full: bool) -> Look:
        """Ask every source that is due, all of them when ``full``. Never raises; takes about ``timeout_s`` at most."""
        began_s = thread_cpu_s()
        deadline_s = time.monotonic() + timeout_s
        at = self._machine.clock.now()
        times = self._read_times()
        for source in self._sources():
            source.start(at.mono_s, full=full)
        files = self._machine.files
        meminfo: Reading[MemoryNow] = None
        if full or at.mono_s - self._memory_s >= _MEMORY_EVERY_S:
            meminfo, self._memory_s = _told(lambda: memory.meminfo(files)), at.mono_s
        vmstat, stalls = _told(lambda: memory.vmstat(files)), _told(lambda: memory.stalls(files))
        # All lanes work at the same time: once the deadline has passed, only answers that are there already count.
        processes = self._process_source.finish(deadline_s)
        throttle, clocks = self._throttle.finish(deadline_s), self._clocks.finish(deadline_s)
        governors, temperatures = self._governors.finish(deadline_s), self._temperatures.finish(deadline_s)
        edac, aer, log = self._edac.finish(deadline_s), self._aer.finish(deadline_s), self._log.finish(deadline_s)
        surveys = self._surveyed(deadline_s)
        look = Look(
            at,
            self._suspended_s(),
            times,
            meminfo,
            vmstat,
            stalls,
            processes,
            throttle,
            clocks,
            governors,
            temperatures,
            edac,
            aer,
            log,
            surveys,
        )
        self._cpu_s += thread_cpu_s() - began_s
        return look

    def close(self) -> None:
        """Let the lanes end."""
        for source in self._sources():
            source.lane.close()

    def _sources(self) -> list[_Source[object]]:
        own: list[object] = [
            self._process_source,
            self._throttle,
            self._clocks,
            self._governors,
            self._temperatures,
            self._edac,
            self._aer,
            self._log,
        ]
        return cast("list[_Source[object]]", own + [source for _, source in self._surveys])

    def _surveyed(self, deadline_s: float) -> tuple[tuple[str, Survey | NoData], ...]:
        answers = ((name, source.finish(deadline_s)) for name, source in self._surveys)
        return tuple((name, self._owned(answer)) for name, answer in answers if answer is not None)

    def _owned(self, survey: Survey | NoData) -> Survey | NoData:
        """With the run's own processes told from foreign ones; those on devices that the run does not use concern nobody."""
        if isinstance(survey, NoData) or survey.apps is None:
            return survey
        self.accelerators.learn(app.device for app in survey.apps if self.processes.is_own(app.pid))
        apps = tuple(
            msgspec.structs.replace(app, foreign=not self.processes.is_own(app.pid) and self.accelerators.mine(app.device))
            for app in survey.apps
        )
        return survey._replace(apps=apps)

    def _read_times(self) -> Reading[dict[int, CpuTimes]]:
        times = _told(self.processors.times)
        if not isinstance(times, NoData):
            self._busy = busy_cpus(self._times, times)
            self._times = times
        return times


def _told(read: Callable[[], _T]) -> _T | NoData:
    try:
        return read()
    except NoData as absence:
        return absence
    except NodeproofError as error:
        return NoData(Absence.READ_ERROR, str(error))
    except Exception as error:  # noqa: BLE001 - a failed reading is unknown, never the end of a run
        return NoData(Absence.READ_ERROR, f"{type(error).__name__}: {error}")
