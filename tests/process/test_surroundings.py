"""A real daemon started in odd surroundings: it starts, observes, stops; or says in one line why it does not."""

import os
import pwd
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.daemon import Daemon, environment, nodeproof, until
from support.strict_reader import read_directory


def works(daemon: Daemon) -> None:
    """Observes, is read, answers, and ends in good order."""
    until(daemon.answers, "the exporter answers")
    read_directory(daemon.snapshots, also={"system", "daemon"})
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log()


@pytest.mark.parametrize(
    "odd",
    [
        {"LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.GB18030", "LANGUAGE": "zh", "TZ": "Asia/Kathmandu"},
        {
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONIOENCODING": "ascii:strict",
            "TZ": ":/no/such/zone",
        },
        {"TZ": "<-1130>+11:30", "PYTHONDONTWRITEBYTECODE": "", "PYTHONDEVMODE": "1"},
        {"PATH": "", "SHELL": "", "TMPDIR": "/no/such/folder"},
    ],
    ids=["chinese", "plain ascii", "development mode", "no path"],
)
def test_a_hostile_environment(daemon: Daemon, odd: dict[str, str]) -> None:
    daemon.env |= odd
    daemon.start()
    works(daemon)


def _ignore_and_block() -> None:
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP, signal.SIGALRM})


def _few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (20, 64))


def _strict_umask() -> None:
    os.umask(0o777)


@pytest.mark.parametrize("before", [_ignore_and_block, _few_files, _strict_umask])
def test_what_was_inherited(daemon: Daemon, before: Callable[[], None]) -> None:
    daemon.start(preexec_fn=before)
    assert (daemon.snapshots / "snapshot.json").stat().st_mode & 0o777 == 0o640
    works(daemon)


def test_closed_standard_streams(daemon: Daemon) -> None:
    """Their numbers must not go to the first files that are opened: what is printed would end in them."""
    daemon.start(command=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
    links = {os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in (0, 1, 2)}
    assert links == {os.devnull}
    works(daemon)


def test_without_a_home_its_user_has_one() -> None:
    """The default directories are those of the user in the password database, not somebody else's."""
    env = environment(without=("HOME", "XDG_STATE_HOME", "NODEPROOF_DATA_DIR", "CATMONITOR_DATA_DIR"))
    shown = nodeproof("config", "show", "-c", "/dev/null", env=env)
    assert f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state/nodeproof/snapshot" in shown.out


@pytest.mark.parametrize("kind", ["pipe", "directory", "nothing"])
def test_a_configuration_that_is_no_file(daemon: Daemon, kind: str) -> None:
    daemon.config.unlink()
    if kind == "pipe":
        os.mkfifo(daemon.config)
    elif kind == "directory":
        daemon.config.mkdir()
    done = nodeproof("daemon", "-c", str(daemon.config), env=daemon.env, limit_s=10)
    assert done.code == 2
    assert str(daemon.config) in done.err
    assert done.err.count("\n") == 1


def test_an_empty_configuration(daemon: Daemon) -> None:
    """/dev/null: everything by default, in the directories of the environment."""
    daemon.env["NODEPROOF_DATA_DIR"] = str(daemon.data)
    daemon.snapshots = daemon.data / "snapshot"
    daemon.config = Path(os.devnull)
    try:
        daemon.start(ready=False)
        until(lambda: daemon.state().fresh or daemon.process is None or daemon.process.poll() is not None, "it runs, or says why")
        if daemon.process is not None and daemon.process.poll() is not None:
            assert "127.0.0.1:19320 is already in use by" in daemon.log()
        else:
            assert daemon.stop() == 0
    finally:
        daemon.config = daemon.folder / "nodeproof.yaml"


def test_a_moved_wall_clock_changes_no_verdict(daemon: Daemon) -> None:
    """Years ahead or back: a running daemon runs, a killed one is dead, whatever the clock on the wall says."""
    daemon.start()
    daemon.until_check(0, 1, 2)

    def check(shift_s: float) -> subprocess.CompletedProcess[bytes]:
        code = (
            "import sys, time\n"
            f"wall = time.time\ntime.time = lambda: wall() + {shift_s}\n"
            "from nodeproof.cli.main import main\n"
            f"sys.exit(main(['check', '-c', {str(daemon.config)!r}]))"
        )
        return subprocess.run([sys.executable, "-c", code], env=daemon.env, capture_output=True, check=False, timeout=20)

    assert {check(shift_s).returncode for shift_s in (-1e8, 1e8)} <= {0, 1, 2}
    daemon.send(signal.SIGKILL)
    daemon.wait()
    for shift_s in (-1e8, 1e8):
        done = check(shift_s)
        assert done.returncode == 3
        assert b"daemon dead" in done.stdout


def test_a_wall_clock_that_jumps_under_a_running_daemon(daemon: Daemon) -> None:
    """The daemon's own wall clock is set back by three years and forth again: it goes on, fresh all the time."""
    jump = daemon.folder / "jump"
    jump.write_text("0")
    (daemon.folder / "site").mkdir()
    (daemon.folder / "site" / "sitecustomize.py").write_text(
        f"import time\nwall = time.time\ntime.time = lambda: wall() + float(open({str(jump)!r}).read() or 0)\n"
    )
    daemon.env["PYTHONPATH"] += f":{daemon.folder / 'site'}"
    daemon.start()
    for shift_s in ("-1e8", "1e8", "0"):
        jump.write_text(shift_s)
        sequence = daemon.whole().sequence
        until(lambda before=sequence: daemon.whole().sequence > before + 3, "it goes on")  # type: ignore[misc]  # bound at once
        assert daemon.state().fresh
    works(daemon)
