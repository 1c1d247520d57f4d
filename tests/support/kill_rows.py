"""The kill matrix: a stress job ended in a phase, by a road, with a program that is hard to end; and what is left of it.

:class:`Matrix` runs rows side by side, each with a whole ``nodeproof stress`` in a directory of its own, and :attr:`Seen.faults`
says of each what was not as it must be: a process that bears the job's mark, a lock that the next job cannot have, a report that
is not final, a run without a record, another end than that of the road.
"""

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from nodeproof.model.job import Report
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.store import RunStore
from nodeproof.stress.interrupted import interrupted_report
from nodeproof.stress.report_files import ReportFiles
from nodeproof.stress.requests import CancelRequests
from support.patients import patient
from support.stress import write_dispatcher
from support.survivors import gone_within

__all__ = ["BEFORE", "BEYOND", "PHASES", "ROADS", "WORKLOADS", "Matrix", "Row", "Seen", "all_rows", "memory_groups"]

BEFORE = ("precheck", "load", "configure")
BEYOND = ("after", "cleanup", "write")
PHASES = (*BEFORE, "run", *BEYOND)
ROADS = ("end", "limit", "cancel", "ctrl_c", "ctrl_c_twice", "term", "kill_owner", "kill_worker", "out_of_memory")
WORKLOADS = ("builtin", "double_fork", "setsid", "ignores_term")
_MEMORY = Path("/sys/fs/cgroup/memory")
_MEMORY_BYTES = 160 << 20
_SHARED_BYTES = 640 << 20
"""Of owner, keeper, a built-in workload that takes nine tenths of what it finds, and a neighbour that then takes 250 MiB."""
_HUNGRY = "b = []\nwhile True: b.append(bytearray(b'x' * 1048576))"
_NEIGHBOUR = "import time\nb = [bytearray(b'x' * 1048576) for _ in range(250)]\ntime.sleep(60)"
_PATIENCE_S = 40.0
_OVER = frozenset({"finished", "cancelled"})
_ENDS: dict[str, frozenset[str]] = {
    "end": frozenset({"finished"}),
    "limit": frozenset({"planned_stop", "hung"}),
    "cancel": frozenset({"cancelled"}),
    "ctrl_c": frozenset({"cancelled"}),
    "ctrl_c_twice": frozenset({"cancelled"}),
    "term": frozenset({"cancelled"}),
    "kill_owner": frozenset({"interrupted"}),
    "kill_worker": frozenset({"crashed"}),
    "out_of_memory": frozenset({"crashed"}),
}
"""What the record says of a job that was ended while its program ran."""


class Row(NamedTuple):
    """One of the matrix."""

    phase: str
    road: str
    workload: str

    @property
    def ends(self) -> frozenset[str]:
        """Every execution that may stand in the report."""
        if self.phase == "run":
            return _ENDS[self.road]
        if self.road in {"kill_owner", "out_of_memory"}:  # the owner is the only process to be killed then
            return frozenset({"interrupted"}) | (frozenset() if self.phase in BEFORE else _OVER)
        if self.road in {"end", "limit"}:  # a built-in workload cannot end within a second
            return frozenset({"finished", "planned_stop"}) if self.road == "limit" else frozenset({"finished"})
        return frozenset({"cancelled"}) | (frozenset() if self.phase in BEFORE else _OVER)


class Seen(NamedTuple):
    """What came of a row."""

    row: Row
    execution: str
    code: int
    ending_s: float
    """From the blow to the proof that nothing is left."""
    faults: tuple[str, ...]


def all_rows(*, with_memory: bool) -> list[Row]:
    """Every row that can be: a worker is there to be killed only while it runs."""
    rows = [Row(phase, road, workload) for phase in PHASES for road in ROADS for workload in WORKLOADS]
    sensible = [row for row in rows if row.phase == "run" or row.road != "kill_worker"]
    return [row for row in sensible if with_memory or row.road != "out_of_memory"]


def memory_groups() -> bool:
    """Whether memory can be made scarce here."""
    return os.access(_MEMORY, os.W_OK) and (_MEMORY / "cgroup.procs").exists()


class Matrix:
    """Runs rows below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._zygote = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("stress_victims.py"))],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lock = threading.Lock()
        self._count = 0
        self._told: dict[tuple[str, str], queue.Queue[int]] = {}
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.close()
        self._zygote.wait(60)
        self._listener.join(10)
        self._zygote.stdout.close()

    def run(self, row: Row) -> Seen:
        """One row, from its start to the look at what is left."""
        with self._lock:
            self._count += 1
            number = str(self._count)
        folder = self._folder / f"{number}-{'-'.join(row)}"
        folder.mkdir(parents=True)
        memory = self._group(row, number)
        try:
            return _Case(self, row, folder, number, memory).run()
        finally:
            if memory is not None:
                _remove(memory)

    def start(self, spec: dict[str, str]) -> int:
        """The process number of a new victim."""
        with self._lock:
            assert self._zygote.stdin is not None
            self._zygote.stdin.write(json.dumps(spec) + "\n")
            self._zygote.stdin.flush()
        return self._news("began", spec["number"]).get(timeout=_PATIENCE_S)

    def code(self, number: str) -> int:
        """How the victim ended."""
        return self._news("ended", number).get(timeout=_PATIENCE_S)

    def _news(self, what: str, number: str) -> "queue.Queue[int]":
        with self._lock:
            return self._told.setdefault((what, number), queue.Queue())

    def _listen(self) -> None:
        assert self._zygote.stdout is not None
        for line in self._zygote.stdout:
            what, number, value = line.split()
            self._news(what, number).put(int(value))

    def _group(self, row: Row, number: str) -> Path | None:
        if row.road != "out_of_memory":
            return None
        group = _MEMORY / f"nodeproof-matrix-{os.getpid()}-{number}"
        group.mkdir()
        limit = _SHARED_BYTES if shares_memory(row) else _MEMORY_BYTES
        (group / "memory.limit_in_bytes").write_text(str(limit), encoding="ascii")
        return group


def shares_memory(row: Row) -> bool:
    """Whether the built-in workload is to be the one that the kernel kills."""
    return (row.phase, row.road, row.workload) == ("run", "out_of_memory", "builtin")


class _Case:
    """A row on its way."""

    def __init__(self, matrix: Matrix, row: Row, folder: Path, number: str, memory: Path | None) -> None:
        self._matrix, self._row, self._folder, self._number, self._memory = matrix, row, folder, number, memory
        self._home = folder / "state" / "nodeproof"
        self._report_path = str(folder / "reports" / "stress-latest.json")
        self._owner = 0
        self._neighbour: subprocess.Popen[bytes] | None = None

    def run(self) -> Seen:
        self._prepare()
        in_owner = self._memory if self._memory is not None and self._row.phase != "run" else None
        limit = ["--timeout", "1s"] if self._row.road == "limit" else []
        name = "cpu_sdc" if self._row.workload == "builtin" else "stream"
        if shares_memory(self._row):
            name = "memory_pattern"
        spec = {
            "number": self._number,
            "folder": str(self._folder),
            "phase": self._row.phase,
            "memory": str(in_owner or ""),
            "group": str(self._memory) if shares_memory(self._row) else "",
            "arguments": json.dumps(["-b", name, "--plan", "quick", "-o", "json", *limit, *self._seconds()]),
        }
        self._owner = self._matrix.start(spec)
        self._await(self._arrived, f"phase {self._row.phase}")
        began_s = time.monotonic()
        self._strike()
        code = self._matrix.code(self._number)
        if self._neighbour is not None:
            self._neighbour.kill()
            self._neighbour.wait()
        faults = self._faults()
        took_s = time.monotonic() - began_s
        report = self._final_report()
        told = report.benchmarks[0].outcome
        execution = str(told.execution) if told is not None else "(none)"
        if execution not in self._row.ends:
            message = report.benchmarks[0].message
            faults.append(f"it ended as {execution}, expected {' or '.join(sorted(self._row.ends))}: {message}")
        return Seen(self._row, execution, code, took_s, (*faults, *self._next_may_come()))

    def _seconds(self) -> list[str]:
        """A built-in workload that is to end soon, or to go on until its neighbour has taken its memory."""
        if shares_memory(self._row):
            return ["--seconds", "25"]
        return ["--seconds", "1"] if self._row.workload == "builtin" and not self._lives_long() else []

    def _lives_long(self) -> bool:
        return self._row.phase == "run" and self._row.road != "end"

    def _prepare(self) -> None:
        row, folder = self._row, self._folder
        life_s = 30.0 if self._lives_long() else 0.1
        command = shlex.join(patient(row.workload, life_s)) if row.workload != "builtin" else "true"
        if self._memory is not None and row.phase == "run":
            eat = f"exec {sys.executable} -S -E -c {shlex.quote(_HUNGRY)}"
            command = f"{command} &\nsleep 0.3; echo $$ > {self._memory}/cgroup.procs; {eat}"
        script = write_dispatcher(folder / "check.sh", run=command)
        head = f"stress:\n  enabled: true\n  report_path: {self._report_path}\n"
        if row.workload != "builtin":
            head += f"  script_path: {script}\n"
        head += "  benchmarks:\n"
        head += "".join(f"    {name}: {{enabled: true, timeout: 1m}}\n" for name in ("stream", "cpu_sdc", "memory_pattern"))
        (folder / "nodeproof.yaml").write_text(head, encoding="utf-8")

    def _await(self, holds: Callable[[], object], what: str) -> None:
        ends = time.monotonic() + _PATIENCE_S
        while not holds():
            if time.monotonic() > ends:
                printed = (self._folder / "printed").read_text(encoding="utf-8", errors="replace")
                raise AssertionError(f"{self._row}: {what} did not come: {printed[-500:]}")
            time.sleep(0.01)

    def _arrived(self) -> bool:
        if self._row.phase != "run":
            return (self._folder / "at").exists()
        word = b'"phase":"address-1"' if shares_memory(self._row) else b"nodeproof-heartbeat"
        word = word if self._row.workload == "builtin" else b"ready"
        return any(word in path.read_bytes() for path in self._home.glob("runs/.open/*/files/output.log"))

    def _strike(self) -> None:
        """Take the road, then let the phase go on."""
        match self._row.road:
            case "cancel":
                CancelRequests(str(Path(self._report_path).parent)).ask(self._report().job_id, "cancelled by a test")
                time.sleep(0.25)
            case "ctrl_c":
                os.kill(self._owner, signal.SIGINT)
                time.sleep(0.05)
            case "ctrl_c_twice":
                os.kill(self._owner, signal.SIGINT)
                time.sleep(0.1)
                self._kill_if_there(signal.SIGINT)
            case "term":
                os.kill(self._owner, signal.SIGTERM)
                time.sleep(0.05)
            case "kill_owner":
                os.kill(self._owner, signal.SIGKILL)
            case "kill_worker":
                os.kill(self._worker(), signal.SIGKILL)
            case "out_of_memory" if shares_memory(self._row):
                self._neighbour = subprocess.Popen(
                    [
                        *("/bin/sh", "-c", f'echo 0 > {self._memory}/cgroup.procs; exec "$@"', "sh"),
                        *(sys.executable, "-S", "-E", "-c", _NEIGHBOUR),
                    ]
                )
        (self._folder / "go").touch()

    def _kill_if_there(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._owner, number)

    def _worker(self) -> int:
        """The program: the only child of the keeper, which is the only child of the owner that leads a session of its own."""
        (keeper,) = children(self._owner)
        return children(keeper)[0]

    def _report(self) -> Report:
        return msgspec.json.decode(Path(self._report_path).read_bytes(), type=Report)

    def _faults(self) -> list[str]:
        """Processes that are left, asked of ``/proc`` itself."""
        return [f"left behind: {one}" for one in gone_within(15.0, self._report().job_id)]

    def _final_report(self) -> Report:
        """As anybody reads it."""
        report = ReportFiles(self._report_path).latest()
        assert report is not None
        return report if report.status.is_final else interrupted_report(report, "2026-12-01T00:00:00Z")

    def _next_may_come(self) -> list[str]:
        """The lock is free, and each run has its record."""
        locks = JobLocks(str(self._home), self._report_path)
        ends = time.monotonic() + 10
        while (holder := locks.acquire("ab" * 8)) is not None:
            if time.monotonic() > ends:
                return [f"the next job cannot begin: {holder.detail}"]
            time.sleep(0.05)
        store = RunStore(str(self._home))
        store.recover()
        locks.release()
        faults = [f"a run is still open: {path.name}" for path in self._home.glob("runs/.open/*")]
        runs = store.history()
        if len(runs) != 1:
            faults.append(f"{len(runs)} records where one belongs")
        return faults + [problem for run in runs for problem in store.inspect(run.run_id).problems]


def children(pid: int) -> list[int]:
    """Its children, by the kernel's list."""
    return [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]


def _remove(group: Path) -> None:
    ends = time.monotonic() + 10
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)
        else:
            return
