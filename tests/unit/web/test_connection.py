"""What clients may do to a connection: slow, half, long, crooked and many, against a real server with short patience."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.config.schema import WebConfig
from nodeproof.model.metric import Metric
from nodeproof.web.connection import Limits
from nodeproof.web.server import WebServer
from support.daemon import free_port, until
from support.http_client import Client
from support.web import Written, address, get, next_event, next_of, reader

pytestmark = pytest.mark.timeout(40)
QUICK = Limits(connections=40, head_s=0.4, idle_s=0.6, body_s=0.4, taken_s=1.0, linger_s=0.3)
POST = "POST /api/stress/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Nodeproof-Action: stress\r\n"


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    found = Written(tmp_path / "snapshot")
    found.write()
    yield found
    found.close()


@contextlib.contextmanager
def served(folder: Path, limits: Limits = QUICK) -> Iterator[WebServer]:
    server = WebServer(str(folder), WebConfig(address=f"127.0.0.1:{free_port()}"), limits=limits)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(written: Written) -> Iterator[WebServer]:
    with served(written.folder) as found:
        yield found


@contextlib.contextmanager
def client(server: WebServer) -> Iterator[Client]:
    found = Client(address(server))
    try:
        yield found
    finally:
        found.close()


def test_a_connection_is_kept_and_requests_may_come_ahead(server: WebServer) -> None:
    with client(server) as one:
        assert one.get("/api/config").status == 200
        one.send(b"GET /api/config HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert [one.read().status, one.read().status] == [200, 404]
        assert one.get("/api/config", method="HEAD").headers["content-length"] == "48"
        assert one.get("/api/config", "Connection: close").status == 200
        assert one.at_end()


def test_http_1_0(server: WebServer) -> None:
    with client(server) as one:
        one.send(b"GET /api/config HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert one.read().status == 200
        assert one.at_end()


def test_one_who_says_nothing_is_let_go(server: WebServer) -> None:
    with client(server) as one:
        assert one.read().status == 408
        assert one.at_end()


def test_one_who_says_a_letter_now_and_then_is_let_go(server: WebServer) -> None:
    """Slowloris: every letter used to win more time."""
    with client(server) as one:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for letter in b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100:
                one.send(bytes([letter]))
                time.sleep(0.05)
        assert time.monotonic() - began < 4
        assert one.read().status == 408


def test_an_idle_connection_and_one_that_begins_slowly_again(server: WebServer) -> None:
    with client(server) as one:
        assert one.get("/api/config").status == 200
        assert one.at_end()
    with client(server) as one:
        assert one.get("/api/config").status == 200
        one.send(b"GET /")
        assert one.read().status == 408


@pytest.mark.parametrize("half", ["Content-Length: 10\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\n{"])
def test_half_a_body(server: WebServer, half: str) -> None:
    with client(server) as one:
        one.send((POST + half).encode())
        answer = one.read()
        assert answer.status in {408, 503}
    with client(server) as one:
        one.send((POST + half).encode())
        one.socket.shutdown(socket.SHUT_WR)
        assert one.read().status in {400, 503}


def test_a_client_that_sends_no_more_still_gets_its_answer(server: WebServer) -> None:
    with client(server) as one:
        one.send(b"GET /api/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
        one.socket.shutdown(socket.SHUT_WR)
        assert one.read().status == 200


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /api/config HTTP/1.1\r\n\r\n", 400),
        (b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", 400),
        (b"GET /api/config HTTP/1.1\r\nHost: a b\r\n\r\n", 421),
        (b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n", 400),
        (b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET /api/config HTTP/1.1\r\nHost: localhost\r\n\x0bX: y\r\n\r\n", 400),
        (b"GET /api/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /api/config HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
        (b"get\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (POST.encode() + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (POST.encode() + b"Content-Length: -1\r\n\r\n", 400),
        (POST.encode() + b"Content-Length: 1e3\r\n\r\n", 400),
        (POST.encode() + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST.encode() + b"Transfer-Encoding: chunked, identity\r\n\r\n", 501),
        (POST.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"y" * 40_000, 431),
        (b"GET http://evil.example/api/config HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"BREW /api/config HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"TRACE /api/config HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET //api/config HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /api/../api/config HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /api/config/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /api/config%0a HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /api/config HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 200),
    ],
)
def test_crooked_requests(server: WebServer, raw: bytes, status: int) -> None:
    with client(server) as one:
        one.send(raw)
        assert one.read().status == status
    assert get(server, "/api/config").status == 200


def test_a_smuggled_request_is_none(server: WebServer) -> None:
    """What one program takes for the body of the first request must not be a second one to us."""
    hidden = b"GET /api/config HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with client(server) as one:
        head = POST.encode() + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(hidden))
        one.send(head + hidden)
        assert one.read().status == 400
        assert one.at_end()


def test_the_methods_of_a_path_are_told(server: WebServer) -> None:
    with client(server) as one:
        one.send(b"OPTIONS /api/stress/runs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = one.read(body=False)
        assert (answer.status, answer.headers["allow"]) == (204, "POST, OPTIONS")
        assert one.get("/api/session", method="PUT").headers["allow"] == "GET, POST, DELETE, HEAD, OPTIONS"


def test_a_body_that_waits_for_leave(server: WebServer) -> None:
    with client(server) as one:
        one.send(b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        one.send(b"X-Nodeproof-Action: session\r\nContent-Length: 13\r\nExpect: 100-continue\r\n\r\n")
        assert one.socket.recv(100).startswith(b"HTTP/1.1 100 ")
        one.send(b'{"token":"x"}')
        assert one.read().status == 200


def test_an_answer_to_one_who_still_sends_is_not_lost(server: WebServer) -> None:
    """A refusal before the body was read: closing at once would reset the connection, and the answer with it."""
    with client(server) as one:
        one.send(b"POST /api/config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(20):
                one.send(b"x" * 10_000)
        assert one.read().status == 405


def test_more_connections_than_there_may_be(server: WebServer) -> None:
    with contextlib.ExitStack() as stack:
        some = [stack.enter_context(client(server)) for _ in range(QUICK.connections + 5)]
        answers = [one.read() for one in some[-5:]]
        assert [answer.status for answer in answers] == [503] * 5
        assert answers[0].headers["retry-after"] == "5"
    until(lambda: get(server, "/api/config").status == 200, "places are free again")


def test_a_reader_that_takes_nothing_is_let_go(tmp_path: Path) -> None:
    written = Written(tmp_path / "snapshot")
    written.write(extra=tuple(Metric("cpu", f"metric_{number}", 1.0, "%", {"core": "x" * 50}, "t") for number in range(20_000)))
    try:
        with served(written.folder) as server:
            stalled = socket.create_connection(address(server), timeout=30)
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.sendall(b"GET /api/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: len(server._connections) == 1, "it is served")
            until(lambda: not server._connections, "it is let go", limit_s=20)
            stalled.close()
    finally:
        written.close()


def test_hundreds_of_readers_stalled_and_vanishing_ones_among_them(written: Written) -> None:
    """Everybody who takes gets news, whatever the others do."""
    with served(written.folder, Limits()) as server, contextlib.ExitStack() as stack:
        plain = [stack.enter_context(reader(server)) for _ in range(200)]
        request = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        stalled = [stack.enter_context(client(server)) for _ in range(50)]
        vanishing = [Client(address(server)) for _ in range(50)]
        for one in (*stalled, *vanishing):
            one.send(request)
        for answer in plain:
            assert next_event(answer)[0] == "parts"
        for one in vanishing:
            one.close()
        written.write(usage=77.0, components=("cpu",))
        for answer in plain:
            while True:
                change = next_of(answer, "parts")["parts"].get("cpu")
                if change and change["metrics"][0]["value"] == 77.0:
                    break
        until(lambda: len(server._connections) <= 250, "the vanished are noticed")
        assert server.feed.decoded < 40
        began = time.monotonic()
        assert json.loads(get(server, "/api/config").body)["history_points"] == 60
        assert time.monotonic() - began < 2
    assert not server._connections
