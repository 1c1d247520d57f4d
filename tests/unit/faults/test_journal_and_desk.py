"""What stands and what happened survives whatever ends a process, and a bad part costs that part alone."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import RecordError, SnapshotError, UsageError, WriteError
from nodeproof.faults import desk as desk_module
from nodeproof.faults import journal as journal_module
from nodeproof.faults.coalesce import CoalescedEvent
from nodeproof.faults.desk import ORDERS, FaultDesk
from nodeproof.faults.journal import Journal, oldest_sequence, read_journal, segments
from nodeproof.faults.records import ACTIVE_FILE, read_events, read_state
from nodeproof.host.recorded import ManualClock
from nodeproof.model.fault import Change, FaultEvent, Order, OrderKind
from support.kernel_log import event
from support.webhooks import fault_event

_XID = "NVRM: Xid (PCI:0000:{:02x}:00): 79, GPU has fallen off the bus."
Opened = Callable[..., FaultDesk]


def _lost(number: int, sequence: int = 1) -> CoalescedEvent:
    found = event(_XID.format(number))
    assert found is not None
    found = msgspec.structs.replace(found, mono_s=990.0, sequence=sequence)
    return CoalescedEvent(found, 1, 990.0, 990.0)


def _journal(folder: Path, **more: int) -> Journal:
    journal = Journal(str(folder), **more)
    journal.open()
    return journal


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    desks: list[FaultDesk] = []

    def make(*, boot: str = "boot", clock: ManualClock | None = None) -> FaultDesk:
        desk = FaultDesk(str(tmp_path / "faults"), clock or ManualClock(), boot)
        desk.open()
        desks.append(desk)
        return desk

    yield make
    for desk in desks:
        desk.close()


def test_the_log_gives_back_what_it_was_given(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    events = [fault_event(number) for number in range(1, 11)]
    journal.append(events[:4])
    journal.append([])
    journal.append(events[4:])
    journal.close()
    assert list(read_journal(str(tmp_path))) == events
    assert list(read_journal(str(tmp_path), 7)) == events[7:]
    assert read_events(str(tmp_path), limit=2, wanted=lambda one: one.sequence % 2 == 0) == [events[7], events[9]]
    assert _journal(tmp_path).open() == events


def test_segments_are_bounded_and_the_oldest_goes(tmp_path: Path) -> None:
    journal = _journal(tmp_path, segment_bytes=3000, total_bytes=12_000)
    for number in range(1, 201):
        journal.append([fault_event(number)])
    total = sum(os.stat(path).st_size for _, path in segments(str(tmp_path)))
    assert total <= 12_000
    kept = [one.sequence for one in read_journal(str(tmp_path))]
    assert kept == list(range(oldest_sequence(str(tmp_path)), 201))
    assert oldest_sequence(str(tmp_path)) > 100


def test_the_newest_entries_are_read_from_as_few_segments_as_need_be(tmp_path: Path) -> None:
    journal = _journal(tmp_path, segment_bytes=2000)
    for number in range(1, 31):
        journal.append([fault_event(number)])
    paths = [path for _, path in segments(str(tmp_path))]
    assert len(paths) > 4
    os.unlink(paths[0])
    os.mkdir(paths[0])
    assert [one.sequence for one in read_events(str(tmp_path), limit=7)] == list(range(24, 31))
    assert [one.sequence for one in read_events(str(tmp_path), limit=100, after=25)] == list(range(26, 31))
    assert [one.sequence for one in read_events(str(tmp_path), limit=3, wanted=lambda one: one.sequence < 12)] == [9, 10, 11]
    assert read_events(str(tmp_path), limit=0) == []
    assert len(read_events(str(tmp_path), limit=100)) < 30


def test_a_torn_line_is_cut_and_a_bad_one_set_aside(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.append([fault_event(1), fault_event(2), fault_event(3)])
    journal.close()
    ((_, path),) = segments(str(tmp_path))
    lines = Path(path).read_bytes().split(b"\n")
    lines[1] = lines[1][:40] + b"\xff" + lines[1][41:]
    Path(path).write_bytes(b"\n".join(lines) + b'{"event_id": "torn')
    assert [one.sequence for one in read_journal(str(tmp_path))] == [1, 3]
    again = Journal(str(tmp_path))
    assert [one.sequence for one in again.open()] == [1, 3]
    assert again.bad_lines == 1
    assert b"\xff" in Path(f"{path}.bad").read_bytes()
    again.append([fault_event(4)])
    assert [one.sequence for one in read_journal(str(tmp_path))] == [1, 3, 4]


@given(st.lists(st.one_of(st.binary(max_size=60), st.just(b"x" * 70_000)), max_size=8))
def test_rubbish_in_the_log_costs_itself_alone(rubbish: list[bytes]) -> None:
    import tempfile  # noqa: PLC0415 - hypothesis wants a folder an example

    with tempfile.TemporaryDirectory() as folder:
        journal = _journal(Path(folder))
        journal.append([fault_event(1)])
        journal.close()
        ((_, path),) = segments(folder)
        with open(path, "ab") as file:
            file.write(b"\n".join(rubbish) + b"\n")
        journal = Journal(folder)
        journal.open()
        journal.append([fault_event(2)])
        journal.close()
        assert [one.sequence for one in read_journal(folder)] == [1, 2]


def test_a_log_whose_file_was_taken_away_goes_on_in_another(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    journal.append([fault_event(1)])
    os.unlink(segments(str(tmp_path))[0][1])
    journal.append([fault_event(2)])
    assert [one.sequence for one in read_journal(str(tmp_path))] == [2]


def test_no_log_is_an_empty_one(tmp_path: Path) -> None:
    assert segments(str(tmp_path / "nothing")) == []
    assert list(read_journal(str(tmp_path / "nothing"))) == []
    assert oldest_sequence(str(tmp_path)) == 1
    assert read_state(str(tmp_path)) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"schema": "x"}', b"[" * 5000, b"\xff\xfe"])
def test_a_state_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ACTIVE_FILE).write_bytes(content)
    with pytest.raises(RecordError, match=r"active\.json cannot be read"):
        read_state(str(tmp_path))


def test_a_state_that_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkdir(tmp_path / ACTIVE_FILE)
    with pytest.raises(RecordError, match="Is a directory"):
        read_state(str(tmp_path))
    os.rmdir(tmp_path / ACTIVE_FILE)
    os.symlink("/etc/passwd", tmp_path / ACTIVE_FILE)
    with pytest.raises(RecordError):
        read_state(str(tmp_path))


def test_faults_survive_a_restart_with_their_numbers(opened: Opened) -> None:
    desk = opened()
    desk.hear([_lost(5, sequence=17)])
    assert desk.keep(1, 5.0)
    desk.close()
    again = opened()
    assert [fault.fault_id for fault in again.active()] == ["f1"]
    assert again.place.sequence == 17
    again.hear([_lost(6, sequence=18)])
    assert [fault.fault_id for fault in again.active()] == ["f1", "f2"]


def test_what_is_only_in_the_log_is_taken_over(opened: Opened, tmp_path: Path) -> None:
    """Killed between the entry and the state."""
    desk = opened()
    desk.hear([_lost(5)])
    desk.close()
    before = (tmp_path / "faults" / ACTIVE_FILE).read_bytes()
    desk = opened()
    desk.hear([_lost(6)])
    desk.obey(Order(OrderKind.CLEAR, "f1", "ops"))
    desk.close()
    (tmp_path / "faults" / ACTIVE_FILE).write_bytes(before)
    again = opened()
    assert [fault.device for fault in again.active()] == ["0000:06:00"]
    assert again.sequence == 3


def test_a_bad_state_is_set_aside_and_made_anew_from_the_log(
    opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = opened()
    desk.hear([_lost(5)])
    desk.close()
    path = tmp_path / "faults" / ACTIVE_FILE
    path.write_bytes(b"\0" * 100)
    again = opened()
    assert [fault.device for fault in again.active()] == ["0000:05:00"]
    assert path.with_suffix(".json.bad").read_bytes() == b"\0" * 100
    assert "set aside" in caplog.text


def test_another_boot_ends_what_a_boot_ends(opened: Opened, tmp_path: Path) -> None:
    desk = opened()
    desk.hear([_lost(5, sequence=99)])
    desk.close()
    again = opened(boot="another")
    assert again.active() == []
    assert again.place.sequence == -1
    again.close()
    events = read_events(str(tmp_path / "faults"), limit=10)
    assert [(one.change, one.detail.get("cleared_by", "")) for one in events] == [
        (Change.SET, ""),
        (Change.CLEARED, "the machine was booted"),
    ]


def test_two_daemons_cannot_share_a_directory(opened: Opened, tmp_path: Path) -> None:
    opened()
    with pytest.raises(SnapshotError, match="is in use by process"):
        FaultDesk(str(tmp_path / "faults"), ManualClock(), "boot").open()


def test_a_disk_that_takes_nothing_costs_the_memory_over_a_restart_alone(
    opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = opened()
    folder = tmp_path / "faults"
    (folder / "events-000000000001.jsonl").mkdir()
    for number in range(1, 6):
        desk.hear([_lost(number, sequence=number)])
        _until(lambda: "events-000000000001.jsonl" in desk.problem or "is a directory" in desk.problem.lower())
    assert len(desk.active()) == 5
    assert caplog.text.count("faults are not kept on disk") == 1
    assert not desk.keep(5, 0.05)
    (folder / "events-000000000001.jsonl").rmdir()
    desk.hear([_lost(6, sequence=6)])
    assert desk.keep(6, 5.0)
    assert desk.problem == ""
    assert [one.sequence for one in read_journal(str(folder))][-1] == 6


def test_a_directory_that_cannot_be_made_keeps_no_daemon_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="ascii")
    desk = FaultDesk(str(tmp_path / "file" / "faults"), ManualClock(), "boot")
    desk.open()
    assert "is no directory" in desk.problem or "Not a directory" in desk.problem
    desk.hear([_lost(5)])
    assert [fault.device for fault in desk.active()] == ["0000:05:00"]
    assert not desk.keep(1, 0.05)
    desk.close()


def test_what_waits_for_the_disk_is_bounded(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = opened()
    monkeypatch.setattr(desk_module, "_MOST_PENDING", 3)

    def full(_events: object) -> None:
        raise WriteError("events", "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(desk._journal, "append", full)
        for number in range(1, 6):
            desk.hear([_lost(number, sequence=number)])
            _until(lambda: desk._writer is None)
    assert len(desk.active()) == 5
    assert desk.problem == "events: No space left on device"
    desk.hear([_lost(6, sequence=6)])
    assert desk.keep(6, 5.0)
    assert [one.sequence for one in read_journal(desk.directory)] == [4, 5, 6]


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5.0
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_findings_are_made_again_only_when_something_changed(opened: Opened) -> None:
    clock = ManualClock()
    desk = opened(clock=clock)
    assert desk.findings() == []
    desk.hear([_lost(5)])
    (finding,) = first = desk.findings()
    assert (finding.rule, finding.severity, finding.component, finding.source) == ("xid.79", "critical", "gpu", "/dev/kmsg")
    assert finding.message == "The GPU has left the PCIe bus. (0000:05:00)"
    assert finding.drill is msgspec.UNSET
    assert desk.findings() is first
    desk.obey(Order(OrderKind.INJECT, "disk.raid_failed", "ops"))
    drill = desk.findings()[1]
    assert (drill.drill, drill.source, drill.severity) == (True, "a drill by ops", "warning")
    clock.advance(61.0)
    desk.judge([], lambda _rule, _same: None, log_readable=True)
    assert [one.rule for one in desk.findings()] == ["xid.79"]


def test_orders_are_taken_from_their_folder_and_answered(opened: Opened, tmp_path: Path) -> None:
    desk = opened()
    desk.take_orders()
    desk.hear([_lost(5)])
    folder = tmp_path / "faults" / ORDERS
    folder.mkdir()
    orders = {
        "a": msgspec.json.encode(Order(OrderKind.ACKNOWLEDGE, "f1", "ops", "seen")),
        "b": msgspec.json.encode(Order(OrderKind.CLEAR, "f9", "ops")),
        "c": b'{"kind": "reboot"}',
        "d": b"\xff" * 30_000,
    }
    for name, content in orders.items():
        (folder / f"{name}.json").write_bytes(content)
    (folder / "e.json").symlink_to("/etc/passwd")
    (folder / "note.txt").write_text("not ours", encoding="ascii")
    desk.take_orders()
    answers = {path.stem: msgspec.json.decode(path.read_bytes()) for path in folder.glob("*.answer")}
    assert answers["a"]["fault"]["acknowledged"]["note"] == "seen"
    assert answers["b"] == {"error": "no fault 'f9' stands; nodeproof faults active lists those that do"}
    assert all(answers[name]["error"].startswith("an order that cannot be read") for name in "cde")
    assert sorted(path.name for path in folder.iterdir()) == [
        "a.answer",
        "b.answer",
        "c.answer",
        "d.answer",
        "e.answer",
        "note.txt",
    ]


def test_an_event_handed_in_is_told_with_its_level(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk = opened()
    heard: list[int] = []
    desk.listeners.append(lambda: heard.append(desk.written))
    taken: FaultEvent = desk.record(fault_event(0, change=Change.EVENT))
    assert taken.sequence == 1
    assert desk.keep(1, 5.0)
    _until(lambda: 1 in heard)
    with pytest.raises(UsageError):
        desk.obey(Order(OrderKind.HOLD, "f1", "ops"))
    assert [one.levelname for one in caplog.records if "card_drop" in one.getMessage()] == ["WARNING"]


def test_a_log_that_cannot_be_read_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = _journal(tmp_path)
    journal.append([fault_event(1)])
    journal.close()

    def broken(_path: str) -> Iterator[bytes]:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal_module, "_lines", broken)
    with pytest.raises(WriteError, match="Input/output error"):
        Journal(str(tmp_path)).open()
    desk = FaultDesk(str(tmp_path), ManualClock(), "boot")
    desk.open()
    assert "Input/output error" in desk.problem
    desk.hear([_lost(5)])
    assert [fault.device for fault in desk.active()] == ["0000:05:00"]
    desk.close()


def test_a_card_that_is_known_is_named(opened: Opened) -> None:
    desk = opened()
    desk.know({("gpu", "0"): {"gpu_id": "0", "pci_bus_id": "00000000:05:00.0"}})
    desk.hear([_lost(5)])
    assert [fault.labels for fault in desk.active()] == [{"gpu_id": "0", "pci_bus_id": "00000000:05:00.0"}]
