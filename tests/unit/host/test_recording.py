"""What is asked of a machine is noted, a look at a time, and told again as it was."""

import os
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nodeproof.errors import Absence, CommandError, CommandFailure, NoData, RecordError, WriteError
from nodeproof.host import recording, replay
from nodeproof.host.commands import CommandResult
from nodeproof.host.kmsg import KmsgChannel
from nodeproof.host.machine import Machine
from nodeproof.host.nvml import NvmlCard
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.host.recording import KMSG, RecordingMachine
from nodeproof.host.replay import ReplayMachine, pack_looks
from nodeproof.host.shared_lock import SharedLock


class Nvml:
    """One card that gets warmer, and none at all when asked deeply."""

    def __init__(self) -> None:
        self.asked = 0

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:
        if deep:
            raise NoData(Absence.UNSUPPORTED, "no driver", remedy="install it")
        self.asked += 1
        return [NvmlCard(addresses[0], 0, values=[(("temperature",), 40.0 + self.asked)])]

    def close(self) -> None:
        """Nothing runs."""


class Files(RecordedFiles):
    """With sockets and a clock of the kernel."""

    def tcp_sockets(self, family: int) -> bytes:
        if family == 10:
            raise NoData(Absence.NO_PERMISSION, "may not")
        message = bytearray(72)
        struct.pack_into("=IH", message, 0, 72, 20)
        message[17] = 1
        message[40:44] = bytes([10, 1, 2, 3])
        return bytes(message) + struct.pack("=IH", 3, 0)

    def adjtimex(self) -> bytes:
        return b"offset 12\n"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Files of a machine."""
    root = tmp_path / "host"
    for path, text in {
        "/proc/stat": "cpu 1\n",
        "/proc/1/stat": "1 (init) S\n",
        "/proc/self/mountinfo": "1 1 8:1 / / rw - ext4 /dev/vda rw\n",
        "/sys/a/b": "7\n",
        "/dev/kmsg": "6,1,10,-;first\n SUBSYSTEM=x\n6,2,20,-;second\n",
        "/statvfs.json": '{"/": [4096, 10, 5, 4, 3, 2]}',
    }.items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (root / path.lstrip("/")).write_text(text)
    (root / "sys/link").symlink_to("../a/b")
    return root


@pytest.fixture
def machine(host: Path) -> Iterator[RecordingMachine]:
    """A machine that is being recorded."""
    commands = RecordedCommands({"tool -x": b"out\xff\n", "broken": CommandError("broken", CommandFailure.TIMED_OUT, "late")})
    inner = Machine(Files(str(host)), commands, ManualClock(), Nvml())
    made = RecordingMachine(inner)
    yield made
    made.close()


def _replayed(machine: RecordingMachine, folder: Path) -> ReplayMachine:
    for name, content in pack_looks(machine.looks):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return ReplayMachine(str(folder))


def test_within_a_look_the_same_question_has_the_same_answer(machine: RecordingMachine, host: Path) -> None:
    first = machine.files.read("/proc/stat")
    (host / "proc/stat").write_text("cpu 2\n")
    began = machine.clock.now()

    assert machine.files.read("/proc/stat") == machine.files.read_kept("/proc/stat") == first
    assert machine.clock.now() == began
    machine.clock.sleep(1.0)
    assert machine.files.read("/proc/stat") == b"cpu 2\n"
    assert machine.clock.now().mono_s == began.mono_s + 1.0


def test_everything_is_told_again_look_by_look(machine: RecordingMachine, host: Path, tmp_path: Path) -> None:
    def ask(one: Machine) -> list[object]:
        def of(call: object, *args: object, **more: object) -> object:
            try:
                return call(*args, **more)  # type: ignore[operator]
            except NoData as error:
                return (error.state, error.reason, error.remedy)
            except CommandError as error:
                return (error.failure, error.detail)

        files, commands, nvml = one.files, one.commands, one.nvml
        assert nvml is not None
        return [
            of(files.read, "/proc/stat"),
            of(files.read, "/proc/gone"),
            of(files.read_int, "/sys/a/b"),
            of(files.read_text, "/sys/a/b"),
            of(files.names, "/proc"),
            of(files.names, "/nowhere"),
            of(files.link_target, "/sys/link"),
            of(files.link_target, "/sys/a/b"),
            of(files.exists, "/sys/a"),
            of(files.exists, "/proc/1"),
            of(files.can_read, "/proc/stat"),
            of(files.can_read, "/proc/gone"),
            of(files.statvfs, "/"),
            of(files.statvfs, "/other"),
            of(files.adjtimex),
            of(files.tcp_sockets, 2),
            of(files.tcp_sockets, 10),
            of(commands.find, "tool"),
            of(commands.find, "absent"),
            of(commands.run, ["broken"], deadline_s=1.0),
            of(commands.run, ["absent", "--now"], deadline_s=1.0),
            of(nvml.look, ["0000:01:00.0"], deep=False),
            of(nvml.look, ["0000:01:00.0"], deep=True),
            one.clock.now(),
        ]

    told = [ask(machine)]
    machine.clock.sleep(1.0)
    (host / "proc/stat").write_text("cpu 9\n")
    (host / "proc/1/stat").unlink()
    (host / "proc/1").rmdir()
    (host / "sys/a/b").unlink()
    told.append(ask(machine))
    machine.clock.sleep(1.0)
    told.append(ask(machine))

    again = _replayed(machine, tmp_path / "recorded")
    for expected in told:
        assert ask(again) == expected
        again.clock.sleep(0.0)
    assert ask(again) == told[-1], "after the last look it stays the last"
    assert told[0][4] != told[1][4]
    assert (told[0][9], told[1][9]) == (True, False)


def test_outputs_of_programs_lose_only_what_no_parser_reads(machine: RecordingMachine, tmp_path: Path) -> None:
    assert machine.commands.run(["tool", "-x"], deadline_s=1.0).stdout == b"out\xff\n"

    again = _replayed(machine, tmp_path / "recorded").commands.run(["tool", "-x"], deadline_s=1.0)

    assert (again.exit_code, again.stdout) == (0, "out\ufffd\n".encode())


def test_of_sockets_only_states_are_kept(machine: RecordingMachine) -> None:
    raw = machine.files.tcp_sockets(2)

    assert len(raw) == 78
    assert raw[17] == 1
    assert set(raw[18:72]) == {0}


def test_the_kernel_log_is_a_text_that_ends(machine: RecordingMachine, host: Path) -> None:
    channel = KmsgChannel(machine.files.real(KMSG), KMSG, opener=machine.files.opener)
    channel.open()
    drained = channel.drain(100)
    channel.close()

    assert not channel.is_device
    assert drained.records == [b"6,1,10,-;first\n SUBSYSTEM=x", b"6,2,20,-;second"]
    fd = machine.files.opener(str(host / "proc/stat"))
    assert os.read(fd, 100) == b"cpu 1\n"
    os.close(fd)


def test_of_a_long_kernel_log_the_newest_records_are_kept(
    machine: RecordingMachine, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_MAX_FILE_BYTES", 40)
    (host / "dev/kmsg").write_text("".join(f"6,{number},10,-;text\n" for number in range(10)))
    fd = machine.files.opener(machine.files.real(KMSG))
    with open(fd, "rb") as file:
        assert file.read() == b"6,8,10,-;text\n6,9,10,-;text\n"


def test_a_kernel_log_that_may_not_be_read_is_noted_as_that(machine: RecordingMachine, host: Path, tmp_path: Path) -> None:
    (host / "dev/kmsg").unlink()

    with pytest.raises(FileNotFoundError):
        machine.files.opener(machine.files.real(KMSG))
    assert machine.looks[0].answers["read", KMSG].state is Absence.NO_PERMISSION  # type: ignore[attr-defined]


@pytest.mark.parametrize(("limit", "reason"), [("_MAX_FILE_BYTES", "6 bytes, more than 3"), ("_MAX_TOTAL_BYTES", "is full: 3")])
def test_what_is_too_much_is_read_and_not_kept_and_named(
    limit: str, reason: str, host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, limit, 3)
    machine = RecordingMachine(Machine(Files(str(host)), RecordedCommands({}), ManualClock()))

    assert machine.files.read("/proc/stat") == b"cpu 1\n"
    assert reason in machine.left_out["/proc/stat"]
    assert ("read", "/proc/stat") not in machine.looks[0].answers
    machine.close()


def test_a_collector_below_a_moved_root_finds_its_mounts(machine: RecordingMachine, tmp_path: Path) -> None:
    own = machine.files.read("/proc/self/mountinfo")

    assert _replayed(machine, tmp_path / "recorded").files.read("/proc/1/mountinfo") == own


def test_slow_sources_run_between_looks(machine: RecordingMachine) -> None:
    ran = threading.Event()

    def call() -> int:
        ran.set()
        return 7

    source = machine.background("slow", call, interval_s=60.0, deadline_s=1.0)
    with pytest.raises(NoData, match="has not answered yet"):
        source.latest()
    assert not ran.is_set()
    machine.settle(5.0)
    assert ran.is_set()
    machine.clock.sleep(1.0)
    assert source.latest().value == 7


def test_a_slow_source_that_waits_when_all_is_over_is_let_go(machine: RecordingMachine) -> None:
    source = machine.background("slow", lambda: 7, interval_s=60.0, deadline_s=1.0)
    with pytest.raises(NoData):
        source.latest()

    machine.close()

    assert source.wait(5.0)
    with pytest.raises(NoData, match="was asked in the last look"):
        source.latest()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "recorded.json"),
        (b'{"schema": 7, "wall_s": 1, "mono_s": 1}', "schema 7; this nodeproof reads 1"),
        (None, "expected the folder"),
    ],
)
def test_what_is_no_recording_is_refused(content: bytes | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "recorded.json").write_bytes(content)

    with pytest.raises(RecordError, match=reason):
        ReplayMachine(str(tmp_path))


def test_a_recording_beyond_its_limits_is_refused(
    machine: RecordingMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        machine.clock.sleep(1.0)
    _replayed(machine, tmp_path / "recorded")
    monkeypatch.setattr(replay, "_MAX_LOOKS", 2)
    with pytest.raises(RecordError, match="at most 2 looks"):
        ReplayMachine(str(tmp_path / "recorded"))
    monkeypatch.setattr(replay, "_MAX_BYTES", 5)
    with pytest.raises(RecordError, match="more than 5 bytes"):
        ReplayMachine(str(tmp_path / "recorded"))


def test_what_nobody_asked_is_absent(machine: RecordingMachine, tmp_path: Path) -> None:
    again = _replayed(machine, tmp_path / "recorded")

    assert again.nvml is None
    for ask in (again.files.adjtimex, lambda: again.files.tcp_sockets(2), lambda: again.files.statvfs("/")):
        with pytest.raises(NoData, match="recorded"):
            ask()
    with pytest.raises(NoData):
        again.files.link_target("/x")
    assert again.commands.find("tool") is None
    assert not machine.commands.lent("tool")
    assert machine.commands.started_total == 0
    with pytest.raises(CommandError):
        again.commands.run(["tool"], deadline_s=1.0)


def test_a_lock_is_shared_or_held_alone(tmp_path: Path) -> None:
    one, other = SharedLock(str(tmp_path / "a" / "lock")), SharedLock(str(tmp_path / "a" / "lock"))
    assert one.take(alone=False, timeout_s=0.0)
    assert other.take(alone=False, timeout_s=0.0)
    assert not other.take(alone=True, timeout_s=0.02)
    one.close()
    assert other.take(alone=True, timeout_s=0.0)
    assert other.holders() == [], "this process apart"
    other.close()
    other.close()
    (tmp_path / "plain").write_text("")
    with pytest.raises(WriteError, match="plain"):
        SharedLock(str(tmp_path / "plain" / "lock"))


def test_a_result_without_a_record_is_no_answer() -> None:
    assert replay._ran(object()).failure is CommandFailure.NOT_FOUND
    assert replay._ran(CommandResult(("x",), 3, b"o", b"e", 0.1, truncated=True)).exit_code == 3
