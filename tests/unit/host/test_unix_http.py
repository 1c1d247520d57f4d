"""HTTP over a Unix socket: limits of each kind, bodies, streams, and clients that go away."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.host.http_server import Response
from nodeproof.host.peer import peer_of
from nodeproof.host.unix_http import Call, CallLimits, Exchange, UnixHttpServer
from nodeproof.host.unix_listener import UnixListener

LIMITS = CallLimits(connections=3, head_bytes=512, body_bytes=64, request_s=0.4, idle_s=0.6)


class Server:
    """A server that echoes, streams, fails or waits until its client is gone."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.calls: list[Call] = []
        self.seen_gone = threading.Event()
        self._listener = UnixListener(self.path)
        self._server = UnixHttpServer(self.answer, LIMITS)
        self._server.start(self._listener.open())

    def answer(self, call: Call, exchange: Exchange) -> Response | None:
        self.calls.append(call)
        if call.request.path == "/stream":
            exchange.begin("text/plain")
            for part in (b"one\n", b"", b"two\n"):
                exchange.send(part)
            exchange.end()
            return None
        if call.request.path == "/wait":
            while not exchange.gone(0.05):
                pass
            self.seen_gone.set()
            return None
        if call.request.path == "/bug":
            raise ValueError("planted")
        return Response(200, call.body or b"hello\n")

    def say(self, data: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            client.connect(self.path)
            if data:
                client.sendall(data)
            return everything(client)

    def close(self) -> None:
        self._server.stop()
        self._listener.close()


def said(server: Server) -> bytes:
    """The answer to a plain request; nothing when it was turned away before it was sent."""
    try:
        return server.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    except (BrokenPipeError, ConnectionResetError):
        return b""


def everything(client: socket.socket) -> bytes:
    data = b""
    while chunk := client.recv(65536):
        data += chunk
    return data


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "s.sock")
    yield made
    made.close()


def test_a_request_with_a_body_is_answered_and_the_connection_ends(server: Server) -> None:
    answer = server.say(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nping and more")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nConnection: close" in head
    assert b"\r\nCache-Control: no-store" in head
    assert body == b"ping"


def test_the_kernel_says_who_asks(server: Server) -> None:
    server.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    peer = server.calls[0].peer
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.geteuid(), os.getegid())
    assert peer.in_group(os.getegid())
    assert not peer.in_group(4_000_000)


def test_the_groups_of_the_peer_are_known() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        assert peer_of(ours).groups | {os.getegid()} == set(os.getgroups()) | {os.getegid()}


def test_a_stream_comes_in_chunks(server: Server) -> None:
    answer = server.say(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.partition(b"\r\n\r\n")[2] == b"4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n"


def test_a_client_that_hangs_up_is_noticed(server: Server) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(server.path)
        client.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        assert not server.seen_gone.is_set()
    assert server.seen_gone.wait(2)


def test_the_end_of_the_server_is_a_hang_up_too(server: Server) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(server.path)
        client.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        server.close()
        assert server.seen_gone.is_set()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 600 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 600, 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 65\r\n\r\n" + b"a" * 65, 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"GET / HTTP/3\r\nHost: x\r\n\r\n", 505),
        (b"\x00\x01\x02\r\n\r\n", 400),
        (b"GET /bug HTTP/1.1\r\nHost: x\r\n\r\n", 500),
    ],
)
def test_requests_that_are_refused(server: Server, request_bytes: bytes, status: int) -> None:
    assert server.say(request_bytes).startswith(b"HTTP/1.1 %d " % status)
    assert server.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").endswith(b"\r\n\r\nhello\n")


def test_a_body_that_stops_short_is_refused(server: Server) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(server.path)
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        client.shutdown(socket.SHUT_WR)
        assert everything(client).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("begun", [b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"])
def test_half_a_request_loses_its_place(server: Server, begun: bytes) -> None:
    assert server.say(begun).startswith(b"HTTP/1.1 408 ")


def test_a_slow_head_has_its_limit_from_the_first_byte(server: Server) -> None:
    began = time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(server.path)
        client.settimeout(0.1)
        answer = b""
        while not answer and time.monotonic() - began < 3:
            try:
                client.sendall(b"G")
                answer = client.recv(100)
            except TimeoutError:
                continue
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_silent_clients_are_let_go_and_too_many_refused(server: Server) -> None:
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(LIMITS.connections)]
    try:
        for one in silent:
            one.connect(server.path)
        time.sleep(0.1)
        assert server.say(b"").startswith(b"HTTP/1.1 503 ")
        for one in silent:
            one.settimeout(3)
            assert one.recv(10) == b""
        ends = time.monotonic() + 3
        while not (answered := said(server).endswith(b"hello\n")) and time.monotonic() < ends:
            time.sleep(0.02)  # a place is free a moment after its client has seen the end
        assert answered
    finally:
        for one in silent:
            one.close()
