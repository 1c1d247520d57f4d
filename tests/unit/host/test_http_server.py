import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeproof.errors import AddressInUseError
from nodeproof.host.http_request import Request
from nodeproof.host.http_server import HttpServer, Response, ServerLimits, http_date
from support.http_client import Client

LIMITS = ServerLimits(connections=4, head_s=0.3, answer_s=0.5, idle_s=5.0)
BIG = b"x" * 4_000_000


def hello(request: Request) -> Response:
    return Response(200, f"hello {request.query}".encode(), "text/plain", (("X-Test", "1"),))


def broken(_request: Request) -> Response:
    raise ZeroDivisionError("handler")


def big(_request: Request) -> Response:
    return Response(200, BIG)


ROUTES = {"/": hello, "/broken": broken, "/big": big}

Serve = Callable[..., HttpServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[HttpServer] = []

    def start(*addresses: str, limits: ServerLimits = LIMITS, allowed_hosts: tuple[str, ...] = ()) -> HttpServer:
        server = HttpServer(addresses or ("127.0.0.1:0",), ROUTES, limits=limits, allowed_hosts=allowed_hosts)
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
    deadline = time.monotonic() + 2
    while any(thread.name.startswith("http") for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("http")]


def client(server: HttpServer) -> Client:
    return Client(("127.0.0.1", server.ports[0]))


def test_an_answer_in_full(serve: Serve) -> None:
    server = serve()
    one = client(server)
    answer = one.get("/?a=b")
    assert (answer.status, answer.body) == (200, b"hello a=b")
    assert answer.headers["content-type"] == "text/plain"
    assert answer.headers["content-length"] == "9"
    assert answer.headers["x-test"] == "1"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["date"].endswith(" GMT")
    assert "connection" not in answer.headers
    one.close()


def test_the_date_is_written_as_rfc_9110_says_whatever_the_locale() -> None:
    assert http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert http_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT"


def test_one_connection_carries_many_requests_also_at_once(serve: Serve) -> None:
    one = client(serve())
    for number in range(3):
        assert one.get(f"/?{number}").body == f"hello {number}".encode()
    one.send(b"".join(b"GET /?%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number for number in range(20)))
    assert [one.read().body for _ in range(20)] == [b"hello %d" % number for number in range(20)]
    one.send(b"\r\n\r\nGET /?after HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = one.read()
    assert (answer.body, answer.headers["connection"]) == (b"hello after", "close")
    assert one.at_end()
    one.close()


def test_head_has_the_same_head_and_no_body(serve: Serve) -> None:
    one = client(serve())
    full = one.get("/?q")
    empty = one.get("/?q", method="HEAD")
    assert {**empty.headers, "date": ""} == {**full.headers, "date": ""}
    assert one.get("/?next").body == b"hello next"
    one.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get", "BREW"])
def test_other_methods_are_told_which_are_allowed(serve: Serve, method: str) -> None:
    one = client(serve())
    answer = one.get("/", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert one.get("/nowhere", method=method).status == 404
    one.close()


def test_paths_are_exact(serve: Serve) -> None:
    one = client(serve())
    for path in ("/nowhere", "//", "/broken/", "/%2e", "/../etc/passwd"):
        assert one.get(path).status == 404
    one.close()


def test_a_handler_that_raises_is_told_of_once(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    one = client(serve())
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            answer = one.get("/broken")
            assert (answer.status, b"ZeroDivision" in answer.body) == (500, False)
    assert [record.getMessage() for record in caplog.records] == ["/broken could not be answered: ZeroDivisionError: handler"]
    assert one.get("/").status == 200
    one.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"garbage\r\n\r\n", 400),
        pytest.param(os.urandom(64).replace(b"\r", b"r").replace(b"\n", b"n") + b"\x00 / HTTP/1.1\r\n\r\n", 400, id="noise"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000, 431),
        (b"GET / HTTP/3\r\n\r\n", 505),
    ],
)
def test_a_refused_request_is_answered_and_ends_the_connection(serve: Serve, head: bytes, status: int) -> None:
    one = client(serve())
    one.send(head)
    answer = one.read()
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert one.at_end()
    one.close()


class TestHost:
    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("localhost", 200),
            ("LOCALHOST:19320", 200),
            ("127.0.0.1:19320", 200),
            ("[::1]:19320", 200),
            ("[::1]", 200),
            ("10.0.0.7", 200),
            ("node1.example:19320", 200),
            ("evil.example", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example", 421),
            ("evil.example:80", 421),
            ("[evil]", 421),
        ],
    )
    def test_only_names_of_this_server_are_answered(self, serve: Serve, host: str, status: int) -> None:
        one = client(serve(allowed_hosts=("Node1.example",)))
        assert one.get("/", host=host).status == status
        one.close()

    def test_without_the_field_only_http_1_0(self, serve: Serve) -> None:
        one = client(serve())
        one.send(b"GET / HTTP/1.0\r\n\r\n")
        assert one.read().status == 200
        assert one.at_end()
        one.close()

    def test_a_wide_address_goes_by_the_name_of_the_machine(self, serve: Serve) -> None:
        one = client(serve("0.0.0.0:0"))
        assert one.get("/", host=socket.gethostname()).status == 200
        assert one.get("/", host="evil.example").status == 421
        one.close()

    def test_a_unix_socket_has_no_name_to_check(self, serve: Serve, tmp_path: Path) -> None:
        path = str(tmp_path / "m.sock")
        server = serve(f"unix:{path}")
        one = Client(path)
        assert one.get("/", host="evil.example").status == 200
        one.close()
        server.stop()
        assert not os.path.exists(path)


class TestLimits:
    def test_a_head_that_trickles_in_is_cut_off(self, serve: Serve) -> None:
        one = client(serve())
        began = time.monotonic()
        status = 0
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100:
            try:
                one.send(bytes([byte]))
                one.socket.settimeout(0.05)
                status = one.read().status
                break
            except TimeoutError:
                continue
        assert status == 408
        assert time.monotonic() - began < 3
        one.close()

    def test_a_silent_client_is_let_go(self, serve: Serve) -> None:
        one = client(serve(limits=LIMITS._replace(idle_s=0.1)))
        assert one.at_end()
        one.close()

    def test_a_client_that_does_not_take_its_answer_is_let_go(self, serve: Serve) -> None:
        server = serve(limits=LIMITS._replace(answer_s=0.2))
        one = client(server)
        one.send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        deadline = time.monotonic() + 3
        while not server._conversations and time.monotonic() < deadline:
            time.sleep(0.01)
        while server._conversations and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server._conversations == {}
        one.close()

    def test_a_large_answer_arrives_whole(self, serve: Serve) -> None:
        one = client(serve(limits=LIMITS._replace(answer_s=5.0)))
        assert one.get("/big").body == BIG
        one.close()

    def test_when_all_places_are_busy_the_next_is_told_so(self, serve: Serve) -> None:
        server = serve(limits=LIMITS._replace(answer_s=5.0))
        busy = [client(server) for _ in range(4)]
        for one in busy:
            one.send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)
        late = client(server)
        answer = late.read()
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        late.close()
        assert busy[0].read().body == BIG
        for one in busy:
            one.close()

    def test_clients_that_dribble_a_head_give_up_their_places(self, serve: Serve) -> None:
        server = serve(limits=LIMITS._replace(head_s=5.0))
        slow = [client(server) for _ in range(4)]
        for one in slow:
            one.send(b"GET / HTTP/1.1\r\n")
        time.sleep(0.3)
        late = client(server)
        assert late.get("/").status == 200
        slow[3].send(b"Host: localhost\r\n\r\n")
        assert slow[3].read().status == 200
        for one in (*slow, late):
            one.close()

    def test_silent_clients_give_up_their_places(self, serve: Serve) -> None:
        server = serve()
        silent = [client(server) for _ in range(4)]
        assert silent[3].get("/").status == 200
        time.sleep(0.3)
        late = client(server)
        assert late.get("/").status == 200
        assert silent[0].at_end()
        assert silent[3].get("/").status == 200
        for one in (*silent, late):
            one.close()

    def test_clients_that_reset_leave_nothing_behind(self, serve: Serve) -> None:
        server = serve(limits=LIMITS._replace(connections=64))
        for number in range(50):
            one = client(server)
            one.send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n" if number % 2 else b"GET / HT")
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
        last = client(server)
        assert last.get("/").status == 200
        last.close()
        deadline = time.monotonic() + 3
        while server._conversations and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server._conversations == {}

    def test_many_clients_at_once(self, serve: Serve) -> None:
        server = serve(limits=LIMITS._replace(connections=32, head_s=5.0))
        wrong: list[bytes] = []

        def work(number: int) -> None:
            one = client(server)
            for turn in range(20):
                body = one.get(f"/?{number}-{turn}").body
                if body != f"hello {number}-{turn}".encode():
                    wrong.append(body)
            one.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_several_addresses_of_both_families(serve: Serve) -> None:
    server = serve("127.0.0.1:0", "[::1]:0")
    four, six = server.ports
    for address in (("127.0.0.1", four), ("::1", six)):
        one = Client(address)
        assert one.get("/").status == 200
        one.close()


def test_a_taken_port_is_an_error_and_nothing_stays_bound(serve: Serve) -> None:
    taken = serve()
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    other = HttpServer([f"127.0.0.1:{port}", f"127.0.0.1:{taken.ports[0]}"], ROUTES)
    with pytest.raises(AddressInUseError, match=rf"127\.0\.0\.1:{taken.ports[0]} is already in use by .*pid {os.getpid()}"):
        other.start()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_stop_ends_open_connections_and_frees_the_port(serve: Serve) -> None:
    server = serve()
    port = server.ports[0]
    one = client(server)
    assert one.get("/").status == 200
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 1
    assert one.at_end()
    one.close()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_running_out_of_descriptors_does_not_end_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    real = socket.socket.accept
    failures = [OSError(24, "Too many open files"), OSError(24, "Too many open files")]

    def accept(self: socket.socket) -> "tuple[socket.socket, object]":
        if failures:
            raise failures.pop()
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    for _ in range(2):
        one = client(server)
        assert one.get("/").status == 200
        one.close()
    assert failures == []


def test_a_thread_that_cannot_be_started_costs_that_client_only(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    real = threading.Thread.start
    failing = [True]

    def start(self: threading.Thread) -> None:
        if self.name == "http" and failing:
            failing.clear()
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    lost = client(server)
    assert lost.at_end()
    one = client(server)
    assert one.get("/").status == 200
    for each in (lost, one):
        each.close()


class TestBodies:
    """A server that takes bodies, and is told whose connection it is."""

    @pytest.fixture
    def taking(self) -> Iterator[HttpServer]:
        def taken(request: Request) -> Response:
            ends = request.ends
            return Response(200, b"%d %b %d" % (len(request.body), request.method.encode(), ends[0][1] if ends else 0))

        limits = LIMITS._replace(body_bytes=100_000)
        server = HttpServer(["127.0.0.1:0"], {}, otherwise=taken, limits=limits, methods=("GET", "POST"), with_ends=True)
        server.start()
        yield server
        server.stop()

    HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"

    def test_in_pieces_and_with_the_next_request_behind_it(self, taking: HttpServer) -> None:
        one = client(taking)
        port = one.socket.getsockname()[1]
        one.send(self.HEAD % 60_000 + b"x" * 10)
        for _ in range(2):
            one.send(b"x" * 20_000)
        one.send(b"x" * 19_990 + self.HEAD % 3 + b"abc")
        assert [one.read().body for _ in range(2)] == [b"60000 POST %d" % port, b"3 POST %d" % port]
        one.close()

    def test_one_that_does_not_come_to_its_end(self, taking: HttpServer) -> None:
        one = client(taking)
        one.send(self.HEAD % 10 + b"abc")
        answer = one.read()
        assert (answer.status, answer.body) == (408, b"the body did not come to its end in time\n")
        one.close()

    def test_one_that_ends_before_its_length(self, taking: HttpServer) -> None:
        one = client(taking)
        one.send(self.HEAD % 10 + b"abc")
        one.socket.shutdown(socket.SHUT_WR)
        answer = one.read()
        assert (answer.status, answer.body) == (400, b"the body ended before its length\n")
        one.close()

    def test_nobody_is_told_of_the_ends_who_did_not_ask(self, serve: Serve) -> None:
        seen: list[Request] = []

        def see(request: Request) -> Response:
            seen.append(request)
            return Response(200, b"")

        server = HttpServer(["127.0.0.1:0"], {"/": see}, limits=LIMITS)
        server.start()
        one = client(server)
        assert one.get("/").status == 200
        one.close()
        server.stop()
        assert seen[0].ends is None
        del serve  # which sees that no thread is left
