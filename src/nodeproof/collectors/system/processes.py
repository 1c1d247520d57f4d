"""Component system: processes by state, and the tables they fill."""

from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle, Group
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_file_nr, proc_loadavg, proc_pid_stat, proc_pid_status

__all__ = ["groups"]

_EVERY_S = 15.0
_EARLY_S = 0.5
_A_CYCLE = 400
"""Processes read in one cycle (about 10 us each): 5,000 of them are looked through in 13 cycles, not in one of 50 ms."""
_STATES = tuple(dict.fromkeys(proc_pid_stat.STATES.values()))
_STATE_LABELS: dict[str, Labels] = {state: {"state": state} for state in (*_STATES, "other")}
_SHOWN = ("running", "sleeping", "disk_sleep", "idle", "stopped", "traced", "zombie")
"""States told even when no process is in them."""
_SCAN = ("processes", "threads", "disk_sleep_longest", "disk_sleep_task")


def groups(machine: Machine) -> tuple[Group, ...]:
    """Process groups of the component."""
    tables = _Tables(machine)
    return (
        Group(_SCAN, _Scan(machine).read),
        Group(("file_handles", "file_handles_usage"), tables.read_files, every_s=_EVERY_S),
        Group(("pid_usage",), tables.read_pids, every_s=_EVERY_S),
    )


def _hidden() -> NoData:
    """A count of our own processes only would look like a quiet machine."""
    return NoData(
        Absence.NO_PERMISSION,
        "/proc hides processes of other users",
        remedy="run as root, or mount /proc with gid= of a group of this user beside hidepid=",
    )


class _Sleep(NamedTuple):
    """One sleep of one process. Whoever reads or writes a lot is in state D nearly always, and wakes up in between."""

    pid: str
    start_ticks: int
    switches: int
    """Context switches until now; -1 where the kernel does not tell."""


class _Look:
    """One walk through all processes."""

    def __init__(self, began: Instant, pids: list[str]) -> None:
        self.began = began
        self.waiting = pids
        self.states: dict[str, int] = dict.fromkeys(_SHOWN, 0)
        self.threads = 0
        self.asleep: dict[_Sleep, str] = {}
        """Name of each process in state D."""
        self.read = 0

    def add(self, pid: str, stat: proc_pid_stat.ProcessStat, switches: int) -> None:
        state = proc_pid_stat.STATES.get(stat.state, "other")
        self.states[state] = self.states.get(state, 0) + 1
        self.threads += stat.threads
        self.read += 1
        if stat.state == "D":
            self.asleep[_Sleep(pid, stat.start_ticks, switches)] = stat.name


class _Scan:
    """``/proc/*/stat`` a piece at a time; numbers are told when a whole look is done."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._look: _Look | None = None
        self._done: _Look | None = None
        self._told: Cycle | None = None
        """What the newest whole look brought, with the time it began: made once a look."""
        self._asleep_since: dict[_Sleep, float] = {}

    def read(self, cycle: Cycle) -> None:
        if self._look is None and (self._done is None or cycle.at.mono_s - self._done.began.mono_s >= _EVERY_S - _EARLY_S):
            self._look = _Look(cycle.at, self._pids())
        if self._look is not None:
            # The first look is finished at once, so that a command that reads only once has it.
            self._go_on(self._look, _A_CYCLE if self._done is not None else len(self._look.waiting))
            if not self._look.waiting:
                self._finish(self._look, cycle)
        if self._told is None:
            raise NoData(Absence.UNKNOWN, "the first look through /proc is not done yet")
        cycle.take(self._told)

    def _pids(self) -> list[str]:
        pids = [name for name in self._files.names("/proc") if name.isdigit()]
        if not pids:
            raise NoData(Absence.UNSUPPORTED, "/proc lists no process")
        if "1" not in pids:
            raise _hidden()
        return pids

    def _go_on(self, look: _Look, most: int) -> None:
        piece, look.waiting = look.waiting[:most], look.waiting[most:]
        for pid in piece:
            try:
                stat = proc_pid_stat.parse(self._files.read(f"/proc/{pid}/stat"))
                look.add(pid, stat, self._switches(pid) if stat.state == "D" else 0)
            except ParseError:
                continue
            except NoData as absence:
                if absence.state is Absence.NO_PERMISSION:
                    self._look = None
                    raise _hidden() from None
                # It ended between the listing and now.
        if not look.waiting and not look.read:
            self._look = None
            raise NoData(Absence.READ_ERROR, "no /proc/PID/stat could be read")

    def _switches(self, pid: str) -> int:
        try:
            return proc_pid_status.parse_switches(self._files.read(f"/proc/{pid}/status"))
        except (NoData, ParseError):
            return -1

    def _finish(self, look: _Look, cycle: Cycle) -> None:
        began_s = look.began.mono_s
        self._asleep_since = {key: self._asleep_since.get(key, began_s) for key in look.asleep}
        self._look, self._done, self._told = None, look, cycle.as_of(look.began)
        for state, count in look.states.items():
            self._told.add("processes", count, _STATE_LABELS[state])
        self._told.add("threads", look.threads)
        longest = min(self._asleep_since.items(), key=lambda item: item[1], default=None)
        slept_s = 0.0 if longest is None else began_s - longest[1]
        self._told.add("disk_sleep_longest", round(slept_s, 1))
        if longest is not None and slept_s > 0:
            self._told.add("disk_sleep_task", 1.0, {"pid": longest[0].pid, "command": look.asleep[longest[0]]})


class _Tables:
    """Tables of the kernel that can fill up."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read_files(self, cycle: Cycle) -> None:
        handles = proc_file_nr.parse(self._files.read("/proc/sys/fs/file-nr"))
        cycle.add("file_handles", handles.used)
        cycle.add("file_handles_usage", round(100.0 * handles.used / handles.most, 2))

    def read_pids(self, cycle: Cycle) -> None:
        most = min(self._files.read_int("/proc/sys/kernel/pid_max"), self._files.read_int("/proc/sys/kernel/threads-max"))
        if most <= 0:
            raise NoData(Absence.READ_ERROR, f"{most} is no limit of processes")
        load = proc_loadavg.parse(self._files.read_kept("/proc/loadavg"))
        cycle.add("pid_usage", round(100.0 * load.total / most, 2))
