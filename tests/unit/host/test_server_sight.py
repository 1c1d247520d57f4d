"""A server as its processes show it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from nodeproof.host.server_sight import ServerSight

_CHILD = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
ready, say = os.pipe()
if os.fork() == 0:
    held = [open("/dev/null") for _ in range(40)]
    os.write(say, b"x")
else:
    os.read(ready, 1)
    os.write(1, b"%d\\n" % listener.getsockname()[1])
sys.stdin.read()
"""


def _server(port: int = 0) -> tuple["subprocess.Popen[str]", int]:
    """A server with a worker, which holds forty files; and its port."""
    command = [sys.executable, "-c", _CHILD, str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_server_and_its_workers_are_one() -> None:
    process, port = _server()
    sight = ServerSight(port)
    try:
        seen = sight.look()
        assert seen is not None
        assert (seen.processes, seen.restarts, sight.reason) == (2, 0, "")
        assert seen.open_files is not None
        assert seen.open_files >= 40 + 2 * 4
        assert seen.resident_bytes > 4 << 20
        assert sight.name.startswith("python")
    finally:
        process.communicate("")
    assert sight.look() is None
    assert sight.reason == f"no process that this user may see listens on port {port} of this machine"
    again, _ = _server(port)
    try:
        seen = sight.look()
        assert seen is not None
        assert seen.restarts == 1
    finally:
        again.communicate("")


def test_of_ourselves_only_we_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        seen = ServerSight(listener.getsockname()[1]).look()
    assert seen is not None
    assert seen.processes == 1


def test_a_proxy_says_nothing_of_the_server_behind_it(tmp_path: Path) -> None:
    table = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 777 1 0 100 0 0 10 0\n"
    (tmp_path / "proc" / "net").mkdir(parents=True)
    (tmp_path / "proc" / "net" / "tcp").write_text(table, "ascii")
    own = tmp_path / "proc" / "812"
    (own / "fd").mkdir(parents=True)
    (own / "fd" / "3").symlink_to("socket:[777]")
    fields = " ".join(["S", "1", *["0"] * 9, "5", "5", "0", "0", "20", "0", "4", "0", "900", "0", "100", *["0"] * 30])
    (own / "stat").write_text(f"812 (docker-proxy) {fields}", "ascii")
    sight = ServerSight(8080, str(tmp_path))
    assert sight.look() is None
    assert sight.reason == "port 8080 is forwarded by docker-proxy; the server behind it cannot be seen"


def test_descriptors_that_may_not_be_listed_are_unknown(tmp_path: Path) -> None:
    sight = ServerSight(1, str(tmp_path))
    assert sight._open_files(os.getpid()) == 0  # gone meanwhile
    (tmp_path / "proc" / "5").mkdir(parents=True)
    (tmp_path / "proc" / "5" / "fd").write_text("no folder", "ascii")
    assert sight._open_files(5) is None
