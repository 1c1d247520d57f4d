import contextlib
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.errors import AddressInUseError, UsageError
from nodeproof.host.listen import bind, is_ip, is_loopback, parse_address
from nodeproof.host.socket_holder import holder_of_port, peer_of_socket, uid_of_connection, user_of_connection

LISTEN = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0)) if sys.argv[1] == "tcp" else socket.socket(socket.AF_UNIX)
if sys.argv[1] != "tcp":
    listener.bind(sys.argv[1])
    listener.listen()
print(listener.getsockname()[1] if sys.argv[1] == "tcp" else "ready", flush=True)
sys.stdin.read()
"""


def other_process(where: str) -> "tuple[subprocess.Popen[str], str]":
    child = subprocess.Popen([sys.executable, "-c", LISTEN, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:19320", ("127.0.0.1", 19320)),
        ("[::1]:80", ("::1", 80)),
        (":19320", ("", 19320)),
        ("localhost:0", ("localhost", 0)),
        ("unix:/run/x.sock", "/run/x.sock"),
    ],
)
def test_addresses(text: str, expected: tuple[str, int] | str) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", "19320", "host", "host:", "host:x", "host:65536", "host:-1", "::1:80", "unix:run/x", "h:²"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"address|slash|brackets"):
        parse_address(text)


def test_the_example_is_one_of_the_program_that_listens() -> None:
    with pytest.raises(UsageError, match=r"^'x' is no address; write 127\.0\.0\.1:9527$"):
        parse_address("x", "127.0.0.1:9527")


@pytest.mark.parametrize(
    ("name", "ip", "loopback"),
    [
        ("127.0.0.1", True, True),
        ("127.8.8.8", True, True),
        ("::1", True, True),
        ("[::1]", True, False),
        ("localhost", False, True),
        ("0.0.0.0", True, False),  # noqa: S104 - a text to judge, nothing is bound
        ("10.1.2.3", True, False),
        ("127.evil.example", False, False),
        ("1.2.3", False, False),
        ("", False, False),
        ("a\x00b", False, False),
    ],
)
def test_kinds_of_hosts(name: str, ip: bool, loopback: bool) -> None:  # noqa: FBT001 - parameters of the test
    assert is_ip(name) is ip
    assert is_loopback(name) is loopback


def test_a_taken_port_names_its_holder_and_the_remedy() -> None:
    child, port = other_process("tcp")
    try:
        with pytest.raises(AddressInUseError) as caught:
            bind(("127.0.0.1", int(port)), "set exporter.address")
        assert caught.value.address == f"127.0.0.1:{port}"
        assert f"(pid {child.pid})" in caught.value.holder
        assert caught.value.holder.startswith("python")
        assert str(caught.value).endswith("; set exporter.address")
    finally:
        child.kill()
        child.communicate()


def test_a_taken_ipv6_port_names_its_holder() -> None:
    with bind(("::1", 0), "") as listener:
        port = listener.getsockname()[1]
        with pytest.raises(AddressInUseError) as caught:
            bind(("::1", port), "x")
        assert caught.value.address == f"[::1]:{port}"
        assert f"(pid {os.getpid()})" in caught.value.holder


def test_addresses_that_are_not_ours() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 203\.0\.113\.7:80: Cannot assign.*; move"):
        bind(("203.0.113.7", 80), "move")
    with pytest.raises(UsageError, match="cannot listen on no such host:80"):
        bind(("no such host", 80), "move")


class TestUnixSockets:
    def test_owner_and_group_may_connect(self, tmp_path: Path) -> None:
        path = tmp_path / "m.sock"
        with bind(str(path), ""):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660

    def test_one_that_is_taken_names_its_holder(self, tmp_path: Path) -> None:
        path = str(tmp_path / "m.sock")
        child, _ = other_process(path)
        try:
            with pytest.raises(AddressInUseError, match=rf"unix:{path} .*\(pid {child.pid}\)"):
                bind(path, "x")
        finally:
            child.kill()
            child.communicate()
        # It died without removing its socket; nobody answers there now.
        assert peer_of_socket(path) == ""
        bind(path, "x").close()

    def test_a_file_that_is_no_socket_is_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "precious"
        path.write_text("mine")
        with pytest.raises(UsageError, match="there is a file that is no socket"):
            bind(str(path), "x")
        assert path.read_text() == "mine"

    def test_one_whose_backlog_is_full_is_no_dead_one(self, tmp_path: Path) -> None:
        """It was taken for dead, and its socket removed."""
        path = str(tmp_path / "m.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as live, contextlib.ExitStack() as waiting:
            live.bind(path)
            live.listen(0)
            for _ in range(4):
                one = waiting.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                one.setblocking(False)
                one.connect_ex(path)
            with pytest.raises(AddressInUseError, match="a process that answers nobody"):
                bind(path, "x")
        assert (tmp_path / "m.sock").is_socket()

    def test_a_path_that_cannot_be(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot listen on unix:"):
            bind(str(tmp_path / "none" / "m.sock"), "x")


class TestHolders:
    def tree(self, root: Path, inode: str = "4242") -> None:
        (root / "proc/net").mkdir(parents=True)
        head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        row = f"   0: 0100007F:4B78 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0 100\n"
        other = (
            "   1: 0100007F:4B78 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 77 1 0 20 4 30 10 -1\n"
        )
        (root / "proc/net/tcp").write_text(head + other + row + "torn\n")
        (root / "proc/812/fd").mkdir(parents=True)
        (root / "proc/812/comm").write_text("ngi nx\n")
        (root / "proc/812/fd/3").symlink_to("/dev/null")
        (root / "proc/812/fd/6").symlink_to("socket:[4242]")
        (root / "proc/99").mkdir()
        (root / "proc/self").mkdir()

    def test_found_by_the_inode_of_the_listening_socket(self, tmp_path: Path) -> None:
        self.tree(tmp_path)
        assert holder_of_port(0x4B78, str(tmp_path)) == "ngi nx (pid 812)"

    def test_a_holder_that_we_may_not_look_into(self, tmp_path: Path) -> None:
        self.tree(tmp_path, inode="4343")
        assert "another user" in holder_of_port(0x4B78, str(tmp_path))

    def test_a_socket_in_no_table(self, tmp_path: Path) -> None:
        assert "cannot be told" in holder_of_port(0x4B78, str(tmp_path))

    def test_a_process_without_a_name(self, tmp_path: Path) -> None:
        self.tree(tmp_path)
        (tmp_path / "proc/812/comm").unlink()
        assert holder_of_port(0x4B78, str(tmp_path)) == "a process (pid 812)"

    def test_a_real_one(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            assert holder_of_port(listener.getsockname()[1]).endswith(f"(pid {os.getpid()})")


class TestWhoIsConnected:
    HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

    def tree(self, root: Path, *rows: str) -> str:
        (root / "proc/net").mkdir(parents=True)
        text = self.HEAD + "".join(f"   0: {row} 1 0 100\n" for row in rows)
        (root / "proc/net/tcp").write_text(text)
        return str(root)

    def row(self, client: str, server: str, uid: int, inode: int, state: str = "01") -> str:
        return f"{client} {server} {state} 00000000:00000000 00:00000000 00000000 {uid:5} 0 {inode}"

    CLIENT, SERVER = ("127.0.0.1", 0xC001), ("127.0.0.1", 0x4B79)

    def test_the_row_of_the_clients_own_end_tells(self, tmp_path: Path) -> None:
        here, there = "0100007F:C001", "0100007F:4B79"
        root = self.tree(
            tmp_path,
            self.row(there, here, 0, 11),
            self.row(here, "0100007F:9999", 7, 12),
            self.row(here, there, 1000, 13),
        )
        assert uid_of_connection(self.CLIENT, self.SERVER, root) == 1000
        assert uid_of_connection(("127.0.0.1", 0xC002), self.SERVER, root) is None
        assert uid_of_connection(self.CLIENT, root=root) == 7

    def test_a_socket_that_its_program_has_closed_is_not_roots(self, tmp_path: Path) -> None:
        """The kernel calls the user of such a socket 0: whoever closes at once would have been taken for root."""
        root = self.tree(tmp_path, self.row("0100007F:C001", "0100007F:4B79", 0, 0, "05"))
        assert uid_of_connection(self.CLIENT, self.SERVER, root) is None
        assert user_of_connection(*self.CLIENT, root) == ""

    def test_no_table_and_no_address(self, tmp_path: Path) -> None:
        assert uid_of_connection(self.CLIENT, self.SERVER, str(tmp_path)) is None
        assert uid_of_connection(("nonsense", 1), self.SERVER) is None

    def test_a_real_one(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            ends = client.getsockname(), client.getpeername()
            assert uid_of_connection(*ends) == os.geteuid()
        assert uid_of_connection(*ends) is None
