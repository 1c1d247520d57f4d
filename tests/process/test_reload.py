"""SIGHUP: the new configuration in effect, or the old one still in force, and no reader who sees an end in between."""

import signal
import socket
import threading
import time
from collections.abc import Callable

import pytest

from nodeproof.model.snapshot import DaemonVerdict
from nodeproof.sinks.last_verdict import last_verdict
from nodeproof.sinks.snapshot_reader import read_state
from support.daemon import Daemon, free_port, until


def test_cadence_port_and_features_take_effect(daemon: Daemon) -> None:
    daemon.start()
    old, daemon.port = daemon.port, free_port()
    daemon.configure(features=["web"], collection={"interval_from": "features"}, exporter={"address": f"127.0.0.1:{daemon.port}"})
    daemon.send(signal.SIGHUP)
    daemon.until_logged("reloaded from")
    until(lambda: daemon.whole().intervals_ms["cpu"] == 3000, "the cadence of feature web")
    until(daemon.answers, "the new port answers")
    with pytest.raises(ConnectionRefusedError):
        daemon.scrape(port=old)
    assert daemon.whole().pid == daemon.pid
    assert daemon.state().evidence.lock_pid == daemon.pid


def test_a_collector_that_is_switched_off_takes_its_file_along(daemon: Daemon) -> None:
    daemon.start()
    until((daemon.snapshots / "snapshot_memory.json").exists, "memory is observed")
    daemon.configure(collectors={"memory": {"enabled": False}})
    daemon.send(signal.SIGHUP)
    daemon.until_logged("reloaded from")
    until(lambda: not (daemon.snapshots / "snapshot_memory.json").exists(), "its file is gone")
    until(lambda: not {one.name: one.enabled for one in daemon.whole().collectors}["memory"], "snapshot.json says so")


def test_another_directory(daemon: Daemon) -> None:
    daemon.start()
    old = daemon.snapshots
    daemon.snapshots = daemon.folder / "elsewhere"
    daemon.configure()
    daemon.send(signal.SIGHUP)
    daemon.until_running()
    assert read_state(str(old)).verdict is DaemonVerdict.STOPPED


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("snapshot:\n  dirr: /tmp\n", ":2: snapshot.dirr: unknown key (did you mean dir?)"),
        ("collectors:\n  cpu:\n    interval: -1s\n", ":3: collectors.cpu.interval: -1s is not within"),
        ("collectors: [\n", ":2: not YAML"),
        ("collectors:\n  cpuu: {}\n", "collectors.cpuu: no such collector is installed (did you mean cpu?)"),
    ],
)
def test_a_bad_configuration_leaves_the_old_one_in_force(daemon: Daemon, text: str, told: str) -> None:
    daemon.start()
    good = daemon.config.read_text()
    sequence = daemon.whole().sequence
    daemon.config.write_text(text)
    daemon.send(signal.SIGHUP)
    daemon.until_logged("not reloaded, the old configuration stays in force")
    assert told in daemon.log()
    until(lambda: daemon.whole().sequence > sequence + 3, "it goes on")
    assert daemon.answers()
    daemon.config.write_text(good)
    daemon.send(signal.SIGHUP)
    daemon.until_logged("reloaded from")


def test_a_configuration_that_is_gone(daemon: Daemon) -> None:
    daemon.start()
    daemon.config.unlink()
    daemon.send(signal.SIGHUP)
    daemon.until_logged(f"{daemon.config}: No such file or directory")
    assert daemon.state().verdict is DaemonVerdict.RUNNING


def test_a_port_that_is_taken_puts_the_old_configuration_back(daemon: Daemon) -> None:
    daemon.start()
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        daemon.configure(exporter={"address": f"127.0.0.1:{taken}"}, collectors={"memory": {"enabled": False}})
        daemon.send(signal.SIGHUP)
        daemon.until_logged("the new configuration cannot be started, the old one is put back")
    assert f"127.0.0.1:{taken} is already in use by" in daemon.log()
    until(daemon.answers, "the old port answers again")
    daemon.until_running()
    until((daemon.snapshots / "snapshot_memory.json").exists, "memory is observed again")


def test_a_storm_of_signals_is_survived_and_no_reader_sees_an_end(daemon: Daemon) -> None:
    daemon.start()
    seen: dict[str, str] = {}
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            state = read_state(str(daemon.snapshots))
            seen[state.verdict] = state.reason

    reader = threading.Thread(target=look)
    reader.start()
    before = daemon.figures()
    try:
        for _ in range(150):
            daemon.send(signal.SIGHUP)
            over.wait(0.01)
        until(lambda: daemon.log().count("reloaded from") >= 3, "several reloads")
        daemon.until_check(0, 1, 2)
    finally:
        over.set()
        reader.join()
    assert seen.keys() == {DaemonVerdict.RUNNING}, seen

    def settled() -> bool:
        after = daemon.figures()
        return all(after[name] <= before[name] + 2 for name in ("descriptors", "threads", "children"))

    until(settled, f"nothing piles up: {before} became {daemon.figures()}")
    assert "Traceback" not in daemon.log()


def _verdicts_during(daemon: Daemon, act: Callable[[], object]) -> list[str]:
    """Words of every answer from ``act`` on, for three seconds."""
    act()
    words = []
    until_s = time.monotonic() + 3.0
    while time.monotonic() < until_s:
        answer = last_verdict(str(daemon.snapshots))
        words.append(answer.word if answer is not None else "none")
        time.sleep(0.05)
    return words


@pytest.mark.parametrize("changed", [False, True], ids=["the same is observed", "something else is observed"])
def test_nobody_becomes_unknown_by_a_reload(daemon: Daemon, *, changed: bool) -> None:
    daemon.start()
    daemon.until_check(0, 1, 2)
    sequence, session = daemon.whole().sequence, daemon.whole().session_id
    if changed:
        daemon.configure(features=["web", "health"])
    words = _verdicts_during(daemon, lambda: daemon.send(signal.SIGHUP))
    daemon.until_logged("reloaded from")
    assert set(words) <= {"sound", "warning", "critical"}, words
    until(lambda: daemon.whole().sequence > sequence, "it writes again")
    assert daemon.whole().session_id == session


def test_histories_and_rates_go_on_and_absences_are_not_told_again(daemon: Daemon) -> None:
    daemon.start()
    until(lambda: len(daemon.part("cpu").history.get("cpu_usage", [])) >= 4, "a history")

    def told() -> list[str]:
        lines = [line for file in daemon.data.glob("missing_*.jsonl") for line in file.read_text().splitlines()]
        return [line for line in lines if "since the last reading" not in line]  # an idle disk's latencies come and go

    until(told, "absences are written")
    time.sleep(3.0)  # the daemon's young age, in which some come and go
    points, cycles, before = len(daemon.part("cpu").history["cpu_usage"]), daemon.part("cpu").sequence, len(told())
    daemon.configure(exporter={"enabled": False})
    daemon.send(signal.SIGHUP)
    daemon.until_logged("reloaded from")
    until(lambda: daemon.part("cpu").sequence > cycles + 2, "it goes on")
    assert len(daemon.part("cpu").history["cpu_usage"]) >= points + 2
    assert None not in [value for _, value in daemon.part("cpu").history_series["cpu_usage"].points[1:]]
    assert told()[before:] == []
    assert not daemon.answers()


def test_a_daemon_that_was_stopped_for_long_is_not_unknown_when_it_goes_on(daemon: Daemon) -> None:
    """As after a sleep of the machine: what it knew is stale, and the first thing it writes must be what it reads then."""
    daemon.start()
    daemon.until_check(0, 1, 2)
    daemon.send(signal.SIGSTOP)
    time.sleep(6.0)
    assert daemon.check().code == 3
    words = _verdicts_during(daemon, lambda: daemon.send(signal.SIGCONT))
    assert set(words) <= {"sound", "warning", "critical"}, words


def test_what_a_rule_remembers_outlives_a_reload(daemon: Daemon) -> None:
    """Otherwise a sick node would be healthy again by a signal."""
    daemon.install("fans", "class Theirs(Frame):\n    def readings(self, cycle):\n        raise OSError('no fan answers')\n")
    daemon.start()

    def since() -> set[str]:
        return {one.since for one in daemon.whole().health.findings if one.rule == "daemon.collector_failing"}

    before = until(since, "the finding", 12.0)
    daemon.send(signal.SIGHUP)
    daemon.until_logged("reloaded from")
    sequence = daemon.whole().sequence
    until(lambda: daemon.whole().sequence < sequence + 2 or since(), "it is judged again")
    assert since() == before
