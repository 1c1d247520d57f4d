"""Real programs that misbehave: each must cost its own call only and leave nothing behind."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeproof.errors import Absence, CommandError, CommandFailure
from nodeproof.host import commands as module
from nodeproof.host.commands import CommandResult, HostCommands, absence_of_command
from support.children import children


class _Bin:
    """A folder of made-up programs, and the only search path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands = HostCommands(f"{folder}:/usr/bin:/bin", max_output_bytes=100_000)

    def add(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, *argv: str, deadline_s: float = 10.0, subject: str = "") -> CommandResult:
        return self.commands.run(argv, deadline_s=deadline_s, subject=subject)

    def fails(self, *argv: str, deadline_s: float = 10.0, subject: str = "") -> CommandError:
        with pytest.raises(CommandError) as caught:
            self.run(*argv, deadline_s=deadline_s, subject=subject)
        return caught.value

    def pids(self, name: str) -> list[int]:
        """Process numbers that a script wrote down."""
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.fixture
def tools(tmp_path: Path) -> _Bin:
    return _Bin(tmp_path)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def _eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 8
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_output_status_and_environment(tools: _Bin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/x")
    tools.add("tool", 'echo "$1 $LC_ALL $LANGUAGE$NOTIFY_SOCKET"; echo >&2; echo "  sorry" >&2; cat; exit 5')
    result = tools.run("tool", "a b")
    assert (result.argv, result.exit_code, result.stdout) == (("tool", "a b"), 5, b"a b C \n")
    assert result.first_error_line() == "  sorry"
    assert not result.truncated
    assert tools.commands.started_total == 1


def test_a_program_that_a_signal_ended(tools: _Bin) -> None:
    tools.add("tool", "kill -SEGV $$")
    assert tools.run("tool").exit_code == -signal.SIGSEGV


def test_a_program_that_is_not_there(tools: _Bin) -> None:
    error = tools.fails("nothing-of-the-sort")
    assert error.failure is CommandFailure.NOT_FOUND
    assert tools.commands.find("nothing-of-the-sort") is None
    assert tools.commands.find("sh") in {"/usr/bin/sh", "/bin/sh"}
    assert tools.commands.started_total == 0


def test_the_default_search_path_knows_the_tools_of_root() -> None:
    assert "/usr/sbin" in HostCommands()._search_path.split(":")


def test_a_file_that_is_no_program(tools: _Bin) -> None:
    (tools.folder / "broken").write_bytes(b"\x7fELF not really")
    (tools.folder / "broken").chmod(0o755)
    assert tools.fails("broken").failure is CommandFailure.START_FAILED


def test_no_right_to_start(tools: _Bin, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    tools.add("tool", "exit 0")
    monkeypatch.setattr(subprocess, "Popen", refuse)
    error = tools.fails("tool")
    assert error.failure is CommandFailure.NO_PERMISSION
    assert str(error).startswith(f"tool: {tools.folder}/tool")


def test_a_program_that_sleeps_is_ended(tools: _Bin) -> None:
    tools.add("tool", f"echo $$ > {tools.folder}/pids; sleep 300")
    error = tools.fails("tool", deadline_s=0.3)
    assert error.failure is CommandFailure.TIMED_OUT
    assert "0.3 s" in error.detail
    assert not any(map(_alive, tools.pids("pids")))


def test_a_program_that_ignores_the_polite_signal_is_killed_with_its_children(
    tools: _Bin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TERM_GRACE_S", 0.1)
    note = f"echo $$ >> {tools.folder}/pids"
    tools.add("child", f"trap '' TERM; {note}; sleep 300")
    tools.add("tool", f"trap '' TERM; {tools.folder}/child & {note}; wait; sleep 300")
    assert tools.fails("tool", deadline_s=0.5).failure is CommandFailure.TIMED_OUT
    pids = tools.pids("pids")
    assert len(pids) == 2
    assert _eventually(lambda: not any(map(_alive, pids)))


def test_a_flood_is_cut_and_its_source_ended(tools: _Bin) -> None:
    tools.add("tool", f"echo $$ > {tools.folder}/pids; exec yes flood")
    result = tools.run("tool")
    assert result.truncated
    assert len(result.stdout) == 100_000
    assert result.stdout.startswith(b"flood\nflood\n")
    assert not any(map(_alive, tools.pids("pids")))


def test_a_flood_of_errors_is_cut_as_well(tools: _Bin) -> None:
    tools.add("tool", "exec yes flood >&2")
    result = tools.run("tool")
    assert (result.stdout, len(result.stderr), result.truncated) == (b"", 100_000, True)


def test_a_child_that_keeps_the_pipe_open_delays_nothing_and_is_gone(tools: _Bin) -> None:
    tools.add("tool", f"sleep 300 & echo $! > {tools.folder}/pids; echo done")
    result = tools.run("tool", deadline_s=60)
    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert result.duration_s < 30
    assert _eventually(lambda: not any(map(_alive, tools.pids("pids"))))


def test_a_child_that_keeps_the_pipe_open_until_the_deadline_does_not_make_it_late(
    tools: _Bin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIPE_GRACE_S", 60.0)
    tools.add("tool", "sleep 300 & echo done")
    assert tools.run("tool", deadline_s=0.4).stdout == b"done\n"


def test_a_program_that_closes_its_output_and_stays_is_ended(tools: _Bin) -> None:
    tools.add("tool", "exec >&- 2>&-; sleep 300")
    assert tools.fails("tool", deadline_s=0.3).failure is CommandFailure.TIMED_OUT


def test_nothing_is_left_open(tools: _Bin) -> None:
    tools.add("tool", "echo x")
    tools.run("tool")
    before = sorted(os.listdir("/proc/self/fd"))
    ours = children()
    for _ in range(5):
        tools.run("tool")
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert children() <= ours  # no zombie either


def test_a_stuck_program_is_not_started_again_for_that_device_until_it_is_gone(
    tools: _Bin, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.add("tool", f"echo $$ >> {tools.folder}/pids; case $1 in bad) sleep 300;; esac; echo fine")
    monkeypatch.setattr(module, "_TERM_GRACE_S", 0.05)
    monkeypatch.setattr(module, "_KILL_GRACE_S", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_signal_group", lambda *_: None)
        assert tools.fails("tool", "bad", deadline_s=0.3, subject="sda").failure is CommandFailure.STUCK
    (pid,) = tools.pids("pids")
    again = tools.fails("tool", "good", subject="sda")
    assert again.failure is CommandFailure.STUCK
    assert str(pid) in again.detail
    assert tools.run("tool", "good", subject="sdb").stdout == b"fine\n"
    assert tools.commands.started_total == 2
    os.killpg(pid, signal.SIGKILL)
    assert _eventually(lambda: not _alive(pid))
    assert tools.run("tool", "good", subject="sda").stdout == b"fine\n"


def test_closing_ends_what_runs_and_starts_nothing_more(tools: _Bin) -> None:
    tools.add("tool", f"echo $$ > {tools.folder}/pids; exec sleep 300")
    results: list[CommandResult] = []
    thread = threading.Thread(target=lambda: results.append(tools.run("tool", deadline_s=60)))
    thread.start()
    assert _eventually(lambda: bool(tools.pids("pids")))
    tools.commands.close()
    thread.join(10)
    assert [result.exit_code for result in results] == [-signal.SIGKILL]
    assert not any(map(_alive, tools.pids("pids")))
    assert tools.fails("tool").failure is CommandFailure.START_FAILED


def test_children_reaped_by_the_kernel_do_no_harm(tools: _Bin) -> None:
    tools.add("tool", "echo x")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert tools.run("tool").stdout == b"x\n"
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize(
    ("failure", "state", "remedy"),
    [
        (CommandFailure.NOT_FOUND, Absence.UNSUPPORTED, "install tools"),
        (CommandFailure.NO_PERMISSION, Absence.NO_PERMISSION, "let this user execute tool, or run as root"),
        (CommandFailure.TIMED_OUT, Absence.READ_ERROR, ""),
        (CommandFailure.STUCK, Absence.READ_ERROR, ""),
        (CommandFailure.START_FAILED, Absence.READ_ERROR, ""),
    ],
)
def test_failures_as_absences(failure: CommandFailure, state: Absence, remedy: str) -> None:
    absence = absence_of_command(CommandError("tool", failure, "details"), package="tools")
    assert (absence.state, absence.remedy) == (state, remedy)
