"""The kernel's list of TCP sockets, against what this process opens."""

import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host import sock_diag
from nodeproof.host.files import FileTree
from nodeproof.sources import inet_diag

COUNT = """
import socket, sys
from nodeproof.host.sock_diag import tcp_sockets
from nodeproof.sources.inet_diag import parse
assert parse(tcp_sockets(socket.AF_INET)) == {}, "a namespace of its own is empty"
listener = socket.create_server(("127.0.0.1", 0))
pairs = []
for _ in range(300):
    client = socket.create_connection(listener.getsockname())
    pairs.append((client, listener.accept()[0]))
print(parse(tcp_sockets(socket.AF_INET)), parse(tcp_sockets(socket.AF_INET6)))
"""


def test_each_socket_is_listed_in_its_state() -> None:
    """300 connections have 600 ends; in a network namespace of its own nobody else's are in the way."""
    script = f"import ctypes, os\nassert ctypes.CDLL(None).unshare(0x40000000) == 0\nos.system('ip link set lo up')\n{COUNT}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=30)
    if b"unshare" in done.stderr:
        pytest.skip("needs the right to make a network namespace (root)")
    assert done.stdout.decode().strip() == "{'LISTEN': 1, 'ESTABLISHED': 600} {}", done.stderr


def test_below_a_moved_root_another_namespace_is_meant(tmp_path: Path) -> None:
    with pytest.raises(NoData) as caught:
        FileTree(str(tmp_path)).tcp_sockets(socket.AF_INET)
    assert caught.value.state is Absence.UNSUPPORTED


def test_a_kernel_that_knows_no_such_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown family is answered with an error message, which ends the answer and is no count."""
    raw = sock_diag.tcp_sockets(socket.AF_PACKET)
    assert struct.unpack_from("=IH", raw)[1] == 2
    with pytest.raises(Exception, match="sock_diag"):
        inet_diag.parse(raw)

    def refuse(*_: object) -> socket.socket:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(NoData, match=r"sock_diag\(7\)"):
        FileTree("/").tcp_sockets(socket.AF_INET)
