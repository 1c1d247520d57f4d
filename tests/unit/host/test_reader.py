"""The privileged reader: what is on its list, who may ask, and what the daemon gets by it."""

import array
import errno
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.collectors.services import hccn, ipmi, npu_smi, smbios
from nodeproof.errors import CommandError, CommandFailure, UsageError
from nodeproof.host.commands import HostCommands
from nodeproof.host.files import FileTree
from nodeproof.host.kmsg import KmsgChannel
from nodeproof.host.machine import Machine
from nodeproof.host.reader import client, rights, server, wire
from nodeproof.host.reader.client import LentCommands, ReaderClient, own_or_lent
from nodeproof.host.reader.server import ReaderServer, listening_socket
from nodeproof.sources import dmidecode
from support.users import ENVIRONMENT, nobody


class Reader:
    """One that serves below a test's folder."""

    def __init__(self, folder: Path, users: tuple[int, ...] = ()) -> None:
        self.path = str(folder / "reader.sock")
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.server = ReaderServer(listening_socket(self.path, {}), users, HostCommands(str(self.programs)))
        threading.Thread(target=self.server.serve, daemon=True).start()

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.server.close()


@pytest.mark.parametrize(
    "path",
    [
        "/dev/kmsg",
        "/sys/firmware/dmi/tables/DMI",
        "/sys/class/dmi/id/product_serial",
        "/sys/class/powercap/intel-rapl:0:1/energy_uj",
    ],
)
def test_files_on_the_list(path: str) -> None:
    assert rights.may_open(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/shadow",
        "/dev/kmsg\n",
        "/dev/kmsg/../mem",
        "/dev/mem",
        "/sys/class/powercap/../../../etc/shadow",
        "/sys/class/powercap/a/../energy_uj",
        "/sys/devices/virtual/powercap/../../../../etc/energy_uj",
        "dev/kmsg",
        " /dev/kmsg",
    ],
)
def test_files_that_are_not(path: str) -> None:
    assert not rights.may_open(path)


@pytest.mark.parametrize(
    "argv",
    [
        ["smartctl", "--json=c", "-n", "standby", "-x", "/dev/sda"],
        ["smartctl", "-n", "standby", "-H", "-A", "/dev/nvme0n1"],
        ["ipmitool", "sensor"],
        ["ipmitool", "sel", "elist", "last", "512"],
        ["ipmitool", "sdr", "type", "Power Supply"],
        ["dmidecode", "--type", dmidecode.TYPES],
        ["npu-smi", "info"],
        ["npu-smi", "info", "-m"],
        ["npu-smi", "info", "-t", "topo"],
        ["npu-smi", "info", "-t", "hccs-bw", "-i", "7", "-c", "1", "-time", "50"],
    ],
)
def test_commands_on_the_list(argv: list[str]) -> None:
    assert rights.may_run(argv)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["sh", "-c", "id"],
        ["/usr/sbin/smartctl", "-n", "standby", "-H", "-A", "/dev/sda"],
        ["smartctl", "-t", "long", "/dev/sda"],
        ["smartctl", "--json=c", "-n", "standby", "-x", "/dev/sda", "-s", "on"],
        ["smartctl", "--json=c", "-n", "standby", "-x", "/dev/mem"],
        ["smartctl", "--json=c", "-n", "standby", "-x", "/dev/../etc/shadow"],
        ["ipmitool", "chassis", "power", "off"],
        ["ipmitool", "sel", "clear"],
        ["ipmitool", "-H", "elsewhere", "sensor"],
        ["ipmitool", "raw", "0x06"],
        ["dmidecode", "--dump-bin", "/etc/passwd"],
        ["npu-smi", "set", "-t", "reset", "-i", "0", "-c", "0"],
        ["npu-smi", "info", "-t", "health", "-i", "0;id"],
        ["npu-smi", "upgrade", "-t", "mcu", "-i", "0", "-f", "/etc/x"],
        ["hccn_tool", "-i", "0", "-ip", "-s", "address", "10.0.0.1"],
        ["hccn_tool", "-i", "0", "-link", "-g", "-s"],
    ],
)
def test_commands_that_are_not(argv: list[str]) -> None:
    assert not rights.may_run(argv)


@given(st.lists(st.text(), max_size=6))
def test_nothing_else_is_run(words: list[str]) -> None:
    assert not rights.may_run(["smartctl", *words]) or words[-1].startswith("/dev/")


def test_every_command_of_ours_is_on_the_list() -> None:
    assert rights.may_run(smbios._DMIDECODE)
    assert rights.may_run(("ipmitool", "sel", "elist", "last", str(ipmi._SEL_NEWEST)))
    for question in (*npu_smi._QUESTIONS, "health"):
        assert rights.may_run(("npu-smi", "info", "-t", question, "-i", "12"))
    for option, _, _ in hccn._QUESTIONS:
        assert rights.may_run(("hccn_tool", "-i", "12", f"-{option}", "-g"))


def test_a_file_is_handed_over_as_a_descriptor(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"known\n")
    for module in (client, server):
        monkeypatch.setattr(module, "may_open", lambda path: path == str(secret))
    fd = ReaderClient(reader.path).open(str(secret))
    with os.fdopen(fd, "rb") as file:
        assert file.read() == b"known\n"


def test_the_kernels_own_error_comes_back(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (client, server):
        monkeypatch.setattr(module, "may_open", lambda _: True)
    asking = ReaderClient(reader.path)
    with pytest.raises(FileNotFoundError):
        asking.open(str(tmp_path / "none"))
    with pytest.raises(PermissionError):  # not asked for again at once
        asking.open(str(tmp_path / "none"))
    (tmp_path / "none").write_text("it came")
    monkeypatch.setattr(client, "_AGAIN_S", 0.0)
    os.close(asking.open(str(tmp_path / "none")))


def test_silent_strangers_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 0.3)
    made = Reader(tmp_path)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(8)]
    for one in silent:
        one.connect(made.path)
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        try:
            ReaderClient(made.path).run(["ipmitool", "sensor"], 1.0)
        except CommandError as error:
            if error.failure is CommandFailure.NOT_FOUND:  # it was asked, and has no such program here
                break
        time.sleep(0.05)
    else:
        pytest.fail("nobody else was answered")
    for one in silent:
        one.close()
    made.server.close()


def test_what_is_not_on_the_list_is_refused_by_the_reader_itself(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "may_open", lambda _: True)
    with pytest.raises(PermissionError):
        ReaderClient(reader.path).open("/etc/shadow")
    with pytest.raises(CommandError) as caught:
        ReaderClient(reader.path).run(["ipmitool", "sel", "clear"], 1.0)
    assert caught.value.failure is CommandFailure.NO_PERMISSION


def test_a_command_is_run_and_its_output_comes_back(reader: Reader) -> None:
    reader.program("smartctl", 'echo "out $*"; echo err >&2; exit 4')
    result = LentCommands(ReaderClient(reader.path)).run(["smartctl", "-n", "standby", "-H", "-A", "/dev/sda"], deadline_s=5.0)
    assert (result.exit_code, result.stdout, result.stderr) == (4, b"out -n standby -H -A /dev/sda\n", b"err\n")


def test_a_command_that_hangs_is_ended_by_the_reader(reader: Reader) -> None:
    reader.program("ipmitool", "sleep 60")
    commands = LentCommands(ReaderClient(reader.path))
    with pytest.raises(CommandError) as caught:
        commands.run(["ipmitool", "sensor"], deadline_s=0.3)
    assert caught.value.failure is CommandFailure.TIMED_OUT


def test_other_commands_are_our_own(reader: Reader, tmp_path: Path) -> None:
    own = HostCommands(str(tmp_path))
    (tmp_path / "lspci").write_text("#!/bin/sh\necho own\n")
    (tmp_path / "lspci").chmod(0o755)
    commands = LentCommands(ReaderClient(reader.path), own)
    assert commands.run(["lspci"], deadline_s=5.0).stdout == b"own\n"
    assert commands.find("lspci") == str(tmp_path / "lspci")
    assert (commands.lent("smartctl"), commands.lent("lspci")) == (True, False)
    assert commands.started_total == 1
    commands.close()


def test_a_reader_that_is_gone_is_named(tmp_path: Path) -> None:
    commands = LentCommands(ReaderClient(str(tmp_path / "none.sock")))
    with pytest.raises(CommandError, match=r"the reader at .*none\.sock did not answer: No such file"):
        commands.run(["ipmitool", "sensor"], deadline_s=1.0)


def test_rubbish_on_the_socket_ends_nothing(reader: Reader) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as rude:
        rude.connect(reader.path)
        for rubbish in (b"\xff\xfe", b"{}", b'{"run": 3}', b'{"open": "/dev/kmsg", "and": 1}', b"[" * 5000):
            rude.sendall(rubbish)
            assert b"error" in rude.recv(8192)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as rude:
        rude.connect(reader.path)
        fd = os.open("/dev/null", os.O_RDONLY)
        wire.send(rude, wire.Question(open="/etc/shadow"), [fd])
        os.close(fd)
        assert b"not on the reader's list" in rude.recv(8192)


def test_another_user_may_not_ask_unless_named(tmp_path: Path, absent_here: list[str]) -> None:
    user = nobody(tmp_path)
    if user is None:
        absent_here.append("the reader asked by another user: this process cannot become one")
        return
    script = (
        "import sys; from nodeproof.host.reader.client import ReaderClient\n"
        "try: ReaderClient(sys.argv[1]).open('/dev/kmsg')\nexcept OSError as error: print(error.errno)\nelse: print('open')"
    )
    for users, said in (((), errno.EPERM), ((user.uid,), "open")):
        folder = tmp_path / f"of{len(users)}"
        folder.mkdir(mode=0o755)
        made = Reader(folder, users)
        os.chmod(made.path, 0o666)  # noqa: S103 - so that the reader itself has to refuse
        done = subprocess.run(
            [*user.prefix, user.python, "-c", script, made.path], env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
        made.server.close()
        assert done.stdout.split()[-1] == str(said)


def test_denied_files_and_logs_are_opened_by_the_reader(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "energy_uj"
    secret.write_bytes(b"12345\n")
    for module in (client, server):
        monkeypatch.setattr(module, "may_open", lambda path: path == str(secret))

    def denied(path: str) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(client, "open_here", denied)
    opener, commands = own_or_lent(reader.path)
    assert isinstance(commands, LentCommands)
    files = FileTree("", opener)
    assert files.read_int(str(secret)) == 12345
    assert files.read_kept(str(secret)) == b"12345\n"
    channel = KmsgChannel(str(secret), opener=opener)
    channel.open()
    assert channel.fd >= 0
    channel.close()
    files.close()


def test_other_errors_are_not_the_readers_business(reader: Reader, tmp_path: Path) -> None:
    opener, _ = own_or_lent(reader.path)
    with pytest.raises(FileNotFoundError):
        opener(str(tmp_path / "none"))


def test_without_a_reader_everything_is_our_own(tmp_path: Path) -> None:
    _, commands = own_or_lent(str(tmp_path / "none.sock"))
    assert isinstance(commands, HostCommands)
    assert not commands.lent("smartctl")


def test_a_device_may_be_used_by_ones_own_right_or_by_the_readers(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "ipmi0").touch()
    own = Machine(FileTree(str(tmp_path)), HostCommands(), Machine.here().clock)
    lent = Machine(FileTree(str(tmp_path)), LentCommands(ReaderClient(reader.path)), Machine.here().clock)
    assert own.may_use("/ipmi0", "ipmitool")
    assert not own.may_use("/none", "ipmitool")
    assert lent.may_use("/none", "ipmitool")


def test_the_socket_of_the_service_manager_is_taken_over(tmp_path: Path) -> None:
    script = (
        "import os, sys; from nodeproof.host.reader.server import listening_socket\n"
        "taken = listening_socket('/nowhere', {'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '1'})\n"
        "print(taken.getsockname())"
    )
    path = str(tmp_path / "given.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as given:
        given.bind(path)
        given.listen()
        shell = f'exec 3<&{given.fileno()}; exec {sys.executable} -c "$0"'
        done = subprocess.run(
            ["/bin/bash", "-c", shell, script],
            pass_fds=[given.fileno()],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.strip() == path


def test_a_place_that_cannot_be_listened_at_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"start nodeproof-reader\.socket"):
        listening_socket(str(tmp_path / "none" / "x"), {})


_HCCN = ("hccn_tool", "-i", "3", "-link", "-g")


def _own_programs(folder: Path, text: str) -> HostCommands:
    folder.mkdir()
    path = folder / "hccn_tool"
    path.write_text(f"#!/bin/sh\necho own >> {folder}/calls\n{text}\n")
    path.chmod(0o755)
    return HostCommands(str(folder))


def test_a_tool_of_the_driver_is_asked_with_our_own_rights_first(reader: Reader, tmp_path: Path) -> None:
    reader.program("hccn_tool", "echo link status: UP")
    commands = LentCommands(ReaderClient(reader.path), _own_programs(tmp_path / "own", "echo link status: DOWN"))
    assert commands.run(_HCCN, deadline_s=10.0).stdout == b"link status: DOWN\n"


def test_where_it_answers_root_alone_the_reader_is_asked_from_then_on(reader: Reader, tmp_path: Path) -> None:
    reader.program("hccn_tool", "echo link status: UP")
    commands = LentCommands(ReaderClient(reader.path), _own_programs(tmp_path / "own", "echo must be root >&2; exit 1"))
    for _ in range(3):
        assert commands.run(_HCCN, deadline_s=10.0).stdout == b"link status: UP\n"
    assert (tmp_path / "own/calls").read_text() == "own\n"


@pytest.mark.parametrize("text", ["echo no device >&2; exit 1", None])
def test_a_tool_that_fails_for_the_reader_as_well_leaves_our_own_answer(reader: Reader, tmp_path: Path, text: str | None) -> None:
    if text is not None:
        reader.program("hccn_tool", text)
    commands = LentCommands(ReaderClient(reader.path), _own_programs(tmp_path / "own", "echo must be root >&2; exit 1"))
    for _ in range(2):
        assert commands.run(_HCCN, deadline_s=10.0).stderr == b"must be root\n"
    assert (tmp_path / "own/calls").read_text() == "own\nown\n"


def test_a_chip_that_hangs_holds_up_no_other() -> None:
    assert rights.subject_of(_HCCN) == "NPU 3"
    assert rights.subject_of(("npu-smi", "info")) == ""
    assert rights.subject_of(("smartctl", "-x", "/dev/sda")) == "/dev/sda"
    assert rights.subject_of(()) == ""


def test_a_reader_leaves_what_is_no_dead_socket_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "reader.sock"
    path.write_text("mine")
    with pytest.raises(UsageError, match="there is a file that is no socket"):
        listening_socket(str(path), {})
    assert path.read_text() == "mine"
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(UsageError, match="Address already in use"):
            listening_socket(str(path), {})
        assert path.is_socket()


def test_a_packet_that_is_too_large_is_refused_with_its_descriptors() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept, other = os.pipe()
    with ours, theirs:
        lent = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [kept]))]
        ours.sendmsg([b"x" * (wire.MAX_PACKET_BYTES + 1)], lent)
        with pytest.raises(OSError, match="Message too long"):
            wire.receive(theirs)
    os.close(kept)
    with pytest.raises(BrokenPipeError):
        os.write(other, b"nobody has the other end any more")
    os.close(other)


class _Rubbish:
    """Answers each question with the same packet, and a descriptor."""

    def __init__(self, folder: Path, packet: bytes) -> None:
        self.path = str(folder / "rubbish.sock")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen()
        self._packet = packet
        self.kept, self._lent = os.pipe()
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.recv(wire.MAX_PACKET_BYTES)
            connection.sendmsg([self._packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self._lent]))])

    def end(self) -> None:
        """Afterwards only what was handed over is open."""
        self._thread.join()
        self._listener.close()
        os.close(self._lent)
        assert os.read(self.kept, 1) == b"", "the descriptor that came with it was closed"
        os.close(self.kept)


def test_an_answer_that_is_none_is_an_error_and_keeps_no_descriptor(tmp_path: Path) -> None:
    rubbish = _Rubbish(tmp_path, b"no json")
    with pytest.raises(OSError, match="Protocol error"):
        ReaderClient(rubbish.path).open("/dev/kmsg")
    rubbish.end()


def test_an_answer_to_a_command_with_one_descriptor_too_few_is_a_failure(tmp_path: Path) -> None:
    rubbish = _Rubbish(tmp_path, b"{}")
    with pytest.raises(CommandError, match="the reader gave no output"):
        ReaderClient(rubbish.path).run(["ipmitool", "sensor"], 5.0)
    rubbish.end()
