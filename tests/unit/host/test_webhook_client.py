"""Posts over real sockets: time limits hold against every kind of receiver, and nothing is followed."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nodeproof.host.webhook_client import Answer, Target, Unreachable, post, resolve

Talk = Callable[[socket.socket], None]


@contextmanager
def _receiver(talk: Talk) -> Iterator[int]:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            talk(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    thread.join(5.0)
    server.close()


def _post(port: int, limit_s: float = 2.0, body: bytes = b"{}") -> Answer:
    return post(Target(False, "hook.example.com", port, "/a?b"), "127.0.0.1", {"X-One": "1"}, body, limit_s)


def _says(answer: bytes, heard: list[bytes] | None = None) -> Talk:
    def talk(connection: socket.socket) -> None:
        data = connection.recv(65536)
        if heard is not None:
            heard.append(data)
        connection.sendall(answer)

    return talk


def test_what_is_sent() -> None:
    heard: list[bytes] = []
    with _receiver(_says(b"HTTP/1.1 204 No Content\r\n\r\n", heard)) as port:
        assert _post(port) == Answer(204, None)
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /a?b HTTP/1.1",
        b"Host: hook.example.com:%d" % port,
        b"Content-Length: 2",
        b"Connection: close",
        b"X-One: 1",
    ]
    assert body == b"{}"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"HTTP/1.1 500 Oh\r\n\r\n", Answer(500, None)),
        (b"HTTP/1.0 200\r\nServer: x\r\n\r\n", Answer(200, None)),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", Answer(302, None)),
        (b"HTTP/1.1 429 Slow\r\nRETRY-AFTER: 7\r\n\r\n", Answer(429, 7.0)),
        (b"HTTP/1.1 503 Slow\r\nRetry-After: Fri, 31 Dec 2027 23:59:59 GMT\r\n\r\n", Answer(503, None)),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 202 Ok\r\n\r\n", Answer(202, None)),
    ],
)
def test_answers(said: bytes, expected: Answer) -> None:
    with _receiver(_says(said)) as port:
        assert _post(port) == expected


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"", "the connection ended without an answer"),
        (b"HTTP/1.1 20", "the connection ended without an answer"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, "no end of its head"),
    ],
)
def test_what_is_no_answer(said: bytes, problem: str) -> None:
    with _receiver(_says(said)) as port, pytest.raises(Unreachable, match=f"{problem}|ConnectionResetError"):
        _post(port)


def test_a_receiver_that_dribbles_or_hangs_ends_with_its_time() -> None:
    def dribble(connection: socket.socket) -> None:
        connection.recv(65536)
        try:
            for byte in b"HTTP/1.1 200 OK and a long reason":
                connection.sendall(bytes((byte,)))
                time.sleep(0.05)
        except OSError:
            pass

    began = time.monotonic()
    with _receiver(dribble) as port, pytest.raises(Unreachable, match=r"no answer within 0\.4 s"):
        _post(port, 0.4)
    with _receiver(lambda _: time.sleep(0.6)) as port, pytest.raises(Unreachable, match=r"no answer within 0\.2 s"):
        _post(port, 0.2, b"x" * 10_000_000)
    assert time.monotonic() - began < 5.0


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Unreachable, match="ConnectionRefusedError"):
        _post(port)


def test_a_receiver_that_speaks_no_tls() -> None:
    with _receiver(_says(b"HTTP/1.1 200 OK\r\n\r\n")) as port, pytest.raises(Unreachable, match="SSL"):
        post(Target(True, "hook.example.com", port, "/"), "127.0.0.1", {}, b"{}", 2.0)


def test_names() -> None:
    assert resolve("127.0.0.1", 80) == ["127.0.0.1"]
    with pytest.raises(Unreachable, match="cannot be resolved"):
        resolve("nothing.invalid", 80)
    with pytest.raises(Unreachable, match="cannot be resolved"):
        resolve("a" * 70 + ".example", 80)
