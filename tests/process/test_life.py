"""A real daemon from its first snapshot to its end, by every road, as seen through its directory and `nodeproof check`."""

import os
import signal
import socket
import time

import pytest

from nodeproof.model.snapshot import DaemonVerdict
from support.daemon import Daemon, nodeproof, until
from support.strict_reader import read_directory


def test_the_first_snapshot_and_verdict_come_within_seconds(daemon: Daemon) -> None:
    daemon.start()
    first = daemon.whole()
    assert first.sequence <= 20
    assert first.pid == daemon.pid
    until(lambda: b"nodeproof_build_info" in daemon.scrape().body, "the exporter has readings")
    until(lambda: daemon.whole().health.coverage > 0.5, "rates are there, and the verdict rests on them", 6.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_stop(daemon: Daemon, number: signal.Signals) -> None:
    daemon.start()
    assert daemon.stop(number) == 0
    assert daemon.whole().stopped
    state = daemon.state()
    assert (state.verdict, state.evidence.lock_held) == (DaemonVerdict.STOPPED, False)
    assert [path.name for path in daemon.snapshots.iterdir() if path.name.startswith(".")] == []
    assert daemon.family() == []
    with socket.socket() as again:
        again.bind(("127.0.0.1", daemon.port))
    assert f"ending: {number.name}" in daemon.log()
    done = daemon.check()
    assert done.code == 3
    assert done.out == f"UNKNOWN: daemon stopped: process {daemon.pid} was stopped in good order\n"


def test_a_stop_while_it_starts(daemon: Daemon) -> None:
    """A signal that comes before the first cycle is not lost."""
    daemon.start(ready=False)
    until((daemon.snapshots / "daemon.lock").exists, "it has begun")
    assert daemon.stop() == 0


def test_check_tells_a_running_daemon_from_a_killed_one(daemon: Daemon) -> None:
    daemon.start()
    daemon.until_check(0, 1, 2)
    daemon.send(signal.SIGKILL)
    daemon.wait()
    done = daemon.check()
    assert done.code == 3
    assert done.out == f"UNKNOWN: daemon dead: process {daemon.pid} is gone and did not say so: killed, or crashed\n"


def test_check_tells_a_frozen_daemon(daemon: Daemon) -> None:
    daemon.start()
    daemon.until_check(0, 1, 2)
    daemon.send(signal.SIGSTOP)
    os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
    done = daemon.until_check(3)
    assert "daemon frozen" in done.out
    assert "stopped by a signal (SIGCONT lets it go on)" in done.out
    daemon.send(signal.SIGCONT)
    daemon.until_check(0, 1, 2)


def test_check_where_no_daemon_ever_ran(daemon: Daemon) -> None:
    done = daemon.check()
    assert done.code == 3
    assert done.out == f"UNKNOWN: daemon absent: no daemon has written to {daemon.snapshots}\n"


def test_a_daemon_killed_leaves_nothing_that_hinders_the_next(daemon: Daemon) -> None:
    daemon.start()
    killed = daemon.pid
    daemon.send(signal.SIGKILL)
    daemon.wait()
    left = [path.name for path in daemon.snapshots.iterdir() if path.name.startswith(".")]
    assert left, "a killed daemon leaves the spare files of its snapshots"
    daemon.start()
    until(lambda: "nobody writes it any more" in daemon.log(), "the log tells of what was removed")
    assert not {path.name for path in daemon.snapshots.iterdir()} & set(left)
    assert daemon.whole().pid != killed


def test_a_second_daemon_is_refused_by_name(daemon: Daemon) -> None:
    daemon.start()
    second = nodeproof("daemon", "-c", str(daemon.config))
    assert second.code == 1
    assert f"{daemon.snapshots} is in use by process {daemon.pid}" in second.err
    assert "set snapshot.dir of this one to another directory" in second.err
    assert second.err.count("\n") == 1, "one line, no traceback"
    assert daemon.state().verdict is DaemonVerdict.RUNNING


def test_a_taken_port_is_an_error_that_names_its_holder(daemon: Daemon) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", daemon.port))
        holder.listen()
        done = nodeproof("daemon", "-c", str(daemon.config))
    assert done.code == 1
    assert f"127.0.0.1:{daemon.port} is already in use by" in done.err
    assert f"(pid {os.getpid()})" in done.err
    assert "set exporter.address to another one" in done.err
    assert daemon.state().verdict is not DaemonVerdict.RUNNING
    assert daemon.state().evidence.lock_held is False


def test_every_file_is_what_a_strict_reader_expects(daemon: Daemon) -> None:
    daemon.start()
    first = daemon.whole().sequence
    looks = 0
    while looks < 20 or daemon.whole().sequence < first + 8:
        found = read_directory(daemon.snapshots, also={"system", "daemon"})
        assert 0 <= found.overall.health.score <= 100
        looks += 1
        time.sleep(0.05)
    assert {"cpu", "memory", "disk", "network"} <= found.components.keys()
