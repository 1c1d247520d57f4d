"""Real daemons for tests: started as processes, watched through what they write, ended by their number alone."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from nodeproof.model.metric import Missing
from nodeproof.model.snapshot import CompSnapshot, DaemonState, DaemonVerdict, GlobalSnapshot
from nodeproof.sinks.snapshot_reader import read_comp, read_global, read_state
from support.http_client import Answer, Client

__all__ = ["SOURCES", "Daemon", "Finished", "Plugin", "free_port", "nodeproof", "until"]

SOURCES = Path(__file__).parents[2] / "src"
_MARK = "NODEPROOF_TEST_MARK"
_T = TypeVar("_T")

QUICK: Mapping[str, str] = {"cpu": "200ms", "memory": "200ms", "network": "200ms", "system": "1s", "disk": "500ms"}
"""Cadences that let a test see several cycles within a second."""


def free_port() -> int:
    """A loopback port that nobody has at this moment, and that the kernel gives to no connection of a test beside this one."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", random.randint(20_000, 32_000)))  # noqa: S311 - no secret
            return int(probe.getsockname()[1])


def until(true: Callable[[], _T | None], what: str, limit_s: float = 10.0) -> _T:
    """The first answer of ``true`` that is true; fails with ``what`` after ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while True:
        answer = true()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {limit_s:g} s: {what}")
        time.sleep(0.02)


class Finished(msgspec.Struct):
    """A command that has ended."""

    code: int
    out: str
    err: str


def environment(more: Mapping[str, str] | None = None, *, without: Sequence[str] = ()) -> dict[str, str]:
    """This process's environment with our sources on the module path."""
    found = {**os.environ, "PYTHONPATH": str(SOURCES), **(more or {})}
    return {name: value for name, value in found.items() if name not in without}


def nodeproof(
    *argv: str,
    env: Mapping[str, str] | None = None,
    limit_s: float = 20.0,
    command: Sequence[str] = (),
    python: str = sys.executable,
    **options: Any,
) -> Finished:
    """Run one command to its end, by way of ``command`` if given."""
    done = subprocess.run(
        [*command, python, "-m", "nodeproof", *argv],
        env=dict(env) if env is not None else environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=limit_s,
        check=False,
        **options,
    )
    return Finished(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


class Plugin:
    """A distribution with one collector, as somebody else would install it: a module, and a folder that names it."""

    def __init__(self, folder: Path, name: str, body: str, *, target: str = "") -> None:
        """``body``: lines of the module after the imports; it defines ``collect(self) -> Batch`` of class ``Theirs``."""
        self.folder = folder
        self.name = name
        metadata = folder / f"{name}_plugin-1.0.dist-info"
        metadata.mkdir(parents=True, exist_ok=True)
        target = target or f"{name}_plugin:create"
        (metadata / "entry_points.txt").write_text(f"[nodeproof.collectors]\n{name} = {target}\n", encoding="utf-8")
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n", encoding="utf-8")
        self.module = folder / f"{name}_plugin.py"
        self.module.write_text(_PLUGIN.format(name=name) + body, encoding="utf-8")


_PLUGIN = """
import math, os, sys, time
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.errors import Absence


def create(machine, selection):
    return Theirs()


class Frame:
    name = component = "{name}"
    default_interval_s = 0.2
    cycles = 0

    def forget(self):
        pass

    def collect(self):
        self.cycles += 1
        return Batch("{name}", "", 0.0, self.readings(self.cycles), [])


def reading(value, **labels):
    return Metric("{name}", "speed", value, "RPM", labels or None)


"""


class Daemon:
    """One daemon with a folder of its own for configuration, snapshots, data and log."""

    def __init__(self, folder: Path, *, env: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.snapshots = folder / "snapshot"
        self.data = folder / "data"
        self.config = folder / "nodeproof.yaml"
        self.log_file = folder / "log"
        self.port = free_port()
        self.mark = uuid.uuid4().hex
        self.env = environment({**(env or {}), _MARK: self.mark})
        self.process: subprocess.Popen[bytes] | None = None
        self.configure()

    def install(self, name: str, body: str, *, target: str = "") -> Plugin:
        """Put a third party's collector on its module path."""
        plugin = Plugin(self.folder / "site", name, body, target=target)
        self.env["PYTHONPATH"] = os.pathsep.join([str(SOURCES), str(plugin.folder)])
        return plugin

    def configure(self, **sections: Any) -> None:
        """Write the configuration: quick cadences, everything on, in this folder; ``sections`` replace keys of it."""
        plain: dict[str, Any] = {
            "collection": {"interval_from": "collectors"},
            "collectors": {name: {"interval": interval} for name, interval in QUICK.items()},
            "snapshot": {"dir": str(self.snapshots)},
            "storage": {"data_dir": str(self.data), "interval": "1s"},
            "exporter": {"address": f"127.0.0.1:{self.port}"},
        }
        for name, section in sections.items():
            plain[name] = {**plain.get(name, {}), **section} if isinstance(section, dict) else section
        self.config.write_text(yaml.safe_dump(plain), encoding="utf-8")

    @property
    def pid(self) -> int:
        """Its process number."""
        assert self.process is not None, "it was never started"
        return self.process.pid

    def start(self, *argv: str, command: Sequence[str] = (), ready: bool = True, **options: Any) -> "Daemon":
        """Start it, ``command`` before the interpreter if given; with ``ready``, return once its first snapshot is there."""
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [*command, sys.executable, "-m", "nodeproof", "daemon", "-c", str(self.config), *argv],
                **{"env": self.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": log, **options},
            )
        if ready:
            self.until_running()
        return self

    def until_running(self, limit_s: float = 10.0) -> DaemonState:
        """Wait until readers see this very process alive."""

        def running() -> DaemonState | None:
            assert self.process is not None
            assert self.process.poll() is None, f"it ended with {self.process.poll()}:\n{self.log()}"
            state = self.state()
            return state if state.verdict is DaemonVerdict.RUNNING and state.evidence.snapshot_pid == self.pid else None

        return until(running, f"the daemon runs; its log:\n{self.log()}", limit_s)

    def state(self) -> DaemonState:
        """What a reader of its directory can tell."""
        return read_state(str(self.snapshots))

    def whole(self) -> GlobalSnapshot:
        """The newest ``snapshot.json``."""
        return read_global(str(self.snapshots / "snapshot.json"))

    def part(self, component: str) -> CompSnapshot:
        """The newest snapshot of ``component``."""
        return read_comp(str(self.snapshots / f"snapshot_{component}.json"))

    def own(self, name: str, collector: str = "") -> float | None:
        """The newest reading of the daemon about itself; None when there is none."""
        with contextlib.suppress(Exception):
            for metric in self.part("daemon").metrics:
                if metric.name == name and (metric.labels or {}).get("collector", "") == collector:
                    return metric.value
        return None

    def missing(self, component: str) -> list[Missing]:
        """Absences in the newest snapshot of ``component``; empty when there is no such file yet."""
        try:
            return self.part(component).missing
        except Exception:  # noqa: BLE001 - there is no such file yet
            return []

    def scrape(self, path: str = "/metrics", port: int = 0) -> Answer:
        """One page of its exporter."""
        client = Client(("127.0.0.1", port or self.port))
        try:
            return client.get(path)
        finally:
            client.close()

    def answers(self) -> bool:
        """Whether its exporter gives the page of readings now."""
        try:
            return self.scrape().status == 200
        except OSError:
            return False

    def log(self) -> str:
        """Everything it has logged."""
        return self.log_file.read_text(encoding="utf-8", errors="replace") if self.log_file.exists() else ""

    def until_logged(self, text: str, limit_s: float = 10.0) -> None:
        """Wait for a line of its log."""
        until(lambda: text in self.log(), f"{text!r} in the log:\n{self.log()}", limit_s)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self, limit_s: float = 15.0) -> int:
        """Its exit code."""
        assert self.process is not None
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end; its log:\n{self.log()}") from None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end; its exit code."""
        self.send(number)
        return self.wait()

    def check(self, *argv: str) -> Finished:
        """``nodeproof check`` on its directory."""
        return nodeproof("check", "-c", str(self.config), *argv)

    def until_check(self, *codes: int, limit_s: float = 10.0) -> Finished:
        """Wait until ``nodeproof check`` gives one of ``codes``."""

        def given() -> Finished | None:
            found = self.check()
            return found if found.code in codes else None

        return until(given, f"check gives one of {codes}", limit_s)

    def family(self) -> list[int]:
        """Every process that was started by it, or by what it started, and lives."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != self.pid:
                with contextlib.suppress(OSError):
                    marked = f"{_MARK}={self.mark}".encode() in Path("/proc", name, "environ").read_bytes().split(b"\0")
                    if marked and not _is_dead(int(name)):
                        found.append(int(name))
        return found

    def figures(self) -> dict[str, int]:
        """Descriptors, threads, children and resident bytes, as the kernel has them."""
        proc = Path("/proc", str(self.pid))
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
        return {
            "descriptors": len(os.listdir(proc / "fd")),
            "threads": int(status["Threads"]),
            "children": len(self.family()),
            "resident": int(status["VmRSS"].split()[0]) * 1024,
        }

    def cpu_s(self) -> float:
        """CPU seconds it has used, ended children included (proc_pid_stat(5): utime, stime, cutime, cstime)."""
        fields = Path("/proc", str(self.pid), "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def own_cpu_s(self) -> float:
        """CPU seconds of the process itself, ended threads included, to the nanosecond (clock_getcpuclockid(3))."""
        return time.clock_gettime(~self.pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED), linux/posix-timers.h

    def clean_up(self) -> None:
        """End it whatever its state, and all that it left; show its log, which pytest prints when the test has failed."""
        if self.process is not None:
            family = self.family()
            if self.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGCONT)
                self.process.kill()
            self.process.wait()
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        print(f"log of the daemon in {self.folder}:\n{self.log()}")  # noqa: T201 - shown with a failed test only


def _is_dead(pid: int) -> bool:
    return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
