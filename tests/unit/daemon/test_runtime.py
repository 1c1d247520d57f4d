"""One life of the daemon without its threads: what a tick does when something is wrong."""

import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeproof.config.resolve import build
from nodeproof.daemon.fault_watch import FaultWatch, narrowed
from nodeproof.daemon.runtime import Runtime
from nodeproof.errors import AddressInUseError, UsageError
from nodeproof.faults.desk import FaultDesk
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.model.health import Grade
from nodeproof.model.snapshot import GlobalSnapshot
from nodeproof.sinks.snapshot_reader import read_global
from support.hosts import write_host


class Life:
    """A daemon of a made-up host, whose collectors run when the test says so."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: object) -> None:
        self.clock = ManualClock()
        root = write_host("vm-2cpu", str(folder / "root"))
        self.machine = Machine(RecordedFiles(root), RecordedCommands({}), self.clock)
        self.folder = folder
        plain: dict[str, object] = {
            "storage": {"data_dir": str(folder / "data")},
            "snapshot": {"dir": str(folder / "snapshot")},
            "exporter": {"enabled": False},
        }
        self.runtime = Runtime(build({**plain, **settings}, "a test", (), {}), lambda: self.machine)
        self.scheduler = self.runtime.observing.scheduler
        monkeypatch.setattr(self.scheduler, "start", lambda: None)
        monkeypatch.setattr(self.scheduler, "stop", lambda _timeout_s: [])

    def cycle(self) -> None:
        """Each collector once, and a tick."""
        for loop in self.scheduler.loops:
            loop.run()
        self.runtime.tick()

    def written(self) -> GlobalSnapshot:
        """The newest ``snapshot.json``."""
        return read_global(str(self.folder / "snapshot/snapshot.json"))


Lives = Callable[..., Life]


@pytest.fixture
def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lives]:
    made: list[Life] = []

    def begin(**settings: Any) -> Life:
        made.append(Life(tmp_path / str(len(made)), monkeypatch, **settings))
        return made[-1]

    yield begin
    for life in made:
        life.runtime.stop()


def test_a_rule_that_raises_makes_the_node_unknown_until_it_is_well(
    lives: Lives, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    life = lives()
    life.runtime.start()
    for _ in range(2):  # rates need a second reading
        life.cycle()
        life.clock.advance(6.0)
    assert life.written().health.grade is not Grade.UNKNOWN

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug of a rule")

    with monkeypatch.context() as patch:
        patch.setattr(life.runtime.observing.evaluator, "evaluate", broken)
        life.clock.advance(6.0)
        life.cycle()
    health = life.written().health
    assert (health.grade, health.score, health.coverage) == (Grade.UNKNOWN, 0, 0.0)
    assert health.unknown[0].reason == "could not be judged: ZeroDivisionError: a bug of a rule"
    assert "a bug of a rule" in caplog.text
    life.clock.advance(6.0)
    life.cycle()
    assert life.written().health.grade is not Grade.UNKNOWN


def test_after_a_sleep_nothing_is_said_before_something_was_read_anew(lives: Lives) -> None:
    life = lives()
    life.runtime.start()
    for _ in range(2):
        life.cycle()
        life.clock.advance(1.0)
    before = life.written().sequence
    life.clock.advance(3600.0)
    life.runtime.tick()
    assert life.written().sequence == before, "what was read an hour ago is not of now"
    life.cycle()
    assert life.written().sequence == before + 1


def test_after_a_sleep_that_leaves_a_collector_silent_it_is_said_all_the_same(lives: Lives) -> None:
    life = lives()
    life.runtime.start()
    life.cycle()
    before = life.written().sequence
    life.clock.advance(3600.0)
    life.runtime.tick()
    life.clock.advance(3.5)
    life.runtime.tick()
    assert life.written().sequence == before + 1


def test_a_collector_that_hangs_is_told_of_once_and_once_when_it_is_back(
    lives: Lives, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    life = lives()
    life.runtime.start()
    caplog.set_level(logging.WARNING)
    for hung in ({"cpu"}, {"cpu"}, set(), set()):
        monkeypatch.setattr(life.scheduler, "overrun", lambda hung=hung: hung)
        life.cycle()
    said = [record.message for record in caplog.records if record.message.startswith("collector cpu")]
    assert said == ["collector cpu hangs: its cycle has overrun the deadline; the others go on", "collector cpu is back"]


def test_files_for_slow_node_detectors_are_written_where_they_are_wanted(lives: Lives) -> None:
    assert "kpi" in _sinks(lives(straggler_output={"enabled": True}))
    assert "kpi" not in _sinks(lives(straggler_output={"enabled": False}))


def _sinks(life: Life) -> set[str]:
    life.runtime.start()
    names = {status.name for status in life.runtime._sinks.statuses()}
    life.runtime.stop()
    return names


def test_a_taken_port_of_the_interface_is_told_and_leaves_the_faults_to_others(lives: Lives) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        life = lives(faultsub={"enabled": True, "rest_addr": f"127.0.0.1:{taken.getsockname()[1]}"})
        with pytest.raises(AddressInUseError, match=r"faultsub\.rest_addr"):
            life.runtime.start()
    desk = FaultDesk(str(life.folder / "data/faults"), life.clock, "boot")
    desk.open()
    assert desk.problem == ""
    desk.close()


def test_an_operator_that_this_machine_has_not_keeps_the_daemon_from_starting(lives: Lives) -> None:
    with pytest.raises(UsageError, match=r"faultsub\.operators: 'nobody-of-this-name'"):
        lives(faultsub={"enabled": True, "rest_addr": "127.0.0.1:0", "operators": ["nobody-of-this-name"]}).runtime.start()


@pytest.mark.parametrize(
    ("address", "narrow"),
    [
        ("127.0.0.1:19321", "127.0.0.1:19321"),
        ("[::1]:19321", "[::1]:19321"),
        ("unix:/run/faults.sock", "unix:/run/faults.sock"),
        ("0.0.0.0:19321", "127.0.0.1:19321"),
        (":19321", "127.0.0.1:19321"),
        ("192.0.2.7:80", "127.0.0.1:80"),
    ],
)
def test_the_interface_of_faults_listens_on_this_machine_alone(
    address: str, narrow: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert narrowed(address) == narrow
    assert ("is narrowed to" in caplog.text) is (narrow != address)


def test_a_machine_that_does_not_tell_its_boot_is_observed(lives: Lives) -> None:
    life = lives()
    path = life.folder / "root/proc/sys/kernel/random/boot_id"
    assert FaultWatch(life.runtime.config, life.machine)._boot_id == path.read_text("ascii").strip()
    path.unlink()
    assert FaultWatch(life.runtime.config, life.machine)._boot_id == ""
