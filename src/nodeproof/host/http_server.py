"""A small HTTP/1.1 server, by default for GET and HEAD: the standard library's own costs the daemon 7 MiB of memory.

Every connection has a thread, which waits for the next client when it is done, and a place; there is a fixed number of places,
and time limits for a head, an answer and a pause, so that slow or silent clients cost one place for seconds, and give it up when
others come. A request is answered with one buffered write. Requests are only answered when their Host field names this server: a
page on the web cannot reach it through a name that it controls (DNS rebinding).
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from nodeproof.host.http_request import MAX_HEAD_BYTES, BadRequest, Ends, Request, parse_head
from nodeproof.host.listen import LOOPBACK_NAMES, bind, is_ip, is_loopback, parse_address

__all__ = ["Handler", "HttpServer", "Response", "ServerLimits", "encode_response", "http_date"]

_log = logging.getLogger(__name__)

_REASONS = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
_TEXT = "text/plain; charset=utf-8"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ACCEPT_PAUSE_S = 0.1
_STOP_S = 2.0
_LEAST_S = 0.001
_SPARE = 2
"""Threads of a listener that wait for its next client: one is at work, and one is there meanwhile."""
_MIN_IDLE_S = 0.2
"""A client that has just connected is given so long before its place may go to another."""


class ServerLimits(NamedTuple):
    """What one client, and all of them, may take."""

    connections: int = 32
    head_s: float = 5.0
    """For a whole request head, from its first byte."""
    answer_s: float = 10.0
    """For taking an answer."""
    idle_s: float = 90.0
    """Between two requests of one connection; Prometheus asks once a minute by default."""
    body_bytes: int = 0
    """Of a request; 0 = none has one. Head and body share the time of :attr:`head_s`."""


class Response(NamedTuple):
    """An answer."""

    status: int
    body: bytes | list[bytes]
    """Whole, or in pieces."""
    content_type: str = _TEXT
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[Request], Response]


def http_date(wall_s: float) -> str:
    """``wall_s`` as the Date field has it, whatever the locale: ``Sun, 06 Nov 1994 08:49:37 GMT``."""
    t = time.gmtime(wall_s)
    clock = f"{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}"
    return f"{_DAYS[t.tm_wday]}, {t.tm_mday:02d} {_MONTHS[t.tm_mon - 1]} {t.tm_year:04d} {clock} GMT"


class HttpServer:
    """Serves ``routes`` (path to handler) on ``addresses`` between :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        addresses: Sequence[str],
        routes: Mapping[str, Handler],
        *,
        allowed_hosts: Collection[str] = (),
        limits: ServerLimits | None = None,
        remedy: str = "stop that process, or set another address",
        otherwise: Handler | None = None,
        methods: Collection[str] = ("GET", "HEAD"),
        with_ends: bool = False,
    ) -> None:
        """``allowed_hosts``: names that requests may carry besides loopback names and IP addresses.

        ``remedy`` ends the message about an address that is taken. ``otherwise`` answers paths that are not among ``routes``.
        ``with_ends``: handlers are told the addresses of both ends of a TCP connection.
        """
        self._with_ends = with_ends
        self._addresses = [parse_address(address) for address in addresses]
        self._routes = routes
        self._limits = limits or ServerLimits()
        self._remedy = remedy
        self._otherwise = otherwise
        self._methods = methods
        names = {name.lower() for name in allowed_hosts} | LOOPBACK_NAMES
        for address in self._addresses:
            if not isinstance(address, str):
                names.add(address[0].lower())
                if not is_loopback(address[0]):
                    names.add(socket.gethostname().lower())
        self._names = frozenset(names)
        self._listeners: list[socket.socket] = []
        self._threads: set[threading.Thread] = set()
        self._waiting: dict[socket.socket, int] = {}
        """Threads that wait for a client, by listener."""
        self._conversations: dict[socket.socket, _Conversation] = {}
        self._told: set[str] = set()
        """The last error of a handler, told of once and not at every scrape."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    @property
    def ports(self) -> list[int]:
        """The TCP ports that are bound, in the order of the addresses."""
        return [listener.getsockname()[1] for listener in self._listeners if listener.family != socket.AF_UNIX]

    def start(self) -> None:
        """Bind every address and begin to answer. Raises AddressInUseError, naming the holder; UsageError for others."""
        try:
            for address in self._addresses:
                self._listeners.append(bind(address, self._remedy))
        except Exception:
            self.stop()
            raise
        for listener in self._listeners:
            self._hire(listener)

    def stop(self) -> None:
        """Close listeners and connections and wait for the threads."""
        self._stopping.set()
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            if listener.family == socket.AF_UNIX:
                with contextlib.suppress(OSError):
                    os.unlink(listener.getsockname())
            listener.close()
        with self._lock:
            for connection in self._conversations:
                _shut(connection)
        deadline = time.monotonic() + _STOP_S
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _hire(self, listener: socket.socket) -> None:
        """One more thread for ``listener``. Raises RuntimeError when there is none to be had."""
        thread = threading.Thread(target=self._attend, args=(listener,), name="http", daemon=True)
        with self._lock:
            self._waiting[listener] = self._waiting.get(listener, 0) + 1
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                self._waiting[listener] -= 1
                self._threads.discard(thread)
            raise

    def _attend(self, listener: socket.socket) -> None:
        """Wait for a client, serve it, and wait for the next, unless enough others do.

        Whoever takes a client serves it: a thread that hands it to another one wakes two for each scrape.
        """
        try:
            while True:
                connection = self._accept(listener)
                if connection is None:
                    return
                with self._lock:
                    self._waiting[listener] -= 1
                    nobody = not self._waiting[listener]
                self._admit(connection, listener, nobody=nobody)
                with self._lock:
                    if self._waiting[listener] >= _SPARE:
                        return
                    self._waiting[listener] += 1
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _accept(self, listener: socket.socket) -> socket.socket | None:
        """The next client; None when the server ends."""
        while not self._stopping.is_set():
            try:
                return listener.accept()[0]
            except OSError as error:
                if self._stopping.is_set():
                    break
                # No descriptors left, or a client that has gone already: neither ends the server.
                _log.debug("accept: %s", error)
                self._stopping.wait(_ACCEPT_PAUSE_S)
        return None

    def _admit(self, connection: socket.socket, listener: socket.socket, *, nobody: bool) -> None:
        """Serve ``connection`` if there is a place for it; with ``nobody`` left at the listener, see to that first."""
        conversation = _Conversation(connection, self._limits)
        with self._lock:
            full = len(self._conversations) >= self._limits.connections
            if full:
                full = not self._dismiss_idle()
            if not full:
                self._conversations[connection] = conversation
        if full:
            with contextlib.suppress(OSError):
                connection.settimeout(_ACCEPT_PAUSE_S)
                text = b"too many connections\n"
                connection.sendall(_head(Response(503, text), close=True) + text)
            connection.close()
            return
        try:
            if nobody:
                self._hire(listener)
        except RuntimeError:  # no thread to be had, and one slow client must not keep all others waiting
            self._leave(connection)
            return
        self._serve(connection, conversation, check_host=listener.family != socket.AF_UNIX)

    def _dismiss_idle(self) -> bool:
        """Give the place of the connection that has been silent longest to another; False when none is silent."""
        now = time.monotonic()
        idle = [
            (conversation.idle_since, connection)
            for connection, conversation in self._conversations.items()
            if conversation.idle_since is not None and now - conversation.idle_since > _MIN_IDLE_S
        ]
        if not idle:
            return False
        _, connection = min(idle, key=lambda item: item[0])
        _shut(connection)
        del self._conversations[connection]
        return True

    def _leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._conversations.pop(connection, None)
        connection.close()

    def _serve(self, connection: socket.socket, conversation: "_Conversation", *, check_host: bool) -> None:
        try:
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ends = _ends(connection) if self._with_ends and check_host else None
            conversation.run(partial(self._answer, check_host=check_host, ends=ends))
        except OSError:
            pass  # the client has gone, or is too slow; nothing is owed to it
        finally:
            self._leave(connection)

    def _answer(self, request: Request, *, check_host: bool, ends: Ends | None) -> Response:
        if check_host and not self._meant(request.headers.get("host", "")):
            return Response(421, b"this server does not go by that name; add it to exporter.allowed_hosts\n")
        handler = self._routes.get(request.path, self._otherwise)
        if handler is None:
            return Response(404, b"there is nothing here; / lists what there is\n")
        if request.method not in self._methods:
            return Response(405, f"only {' and '.join(self._methods)}\n".encode(), headers=(("Allow", ", ".join(self._methods)),))
        try:
            return handler(request if ends is None else request._replace(ends=ends))
        except Exception as error:  # noqa: BLE001 - a handler's bug must not end the server
            problem = f"{request.path} could not be answered: {type(error).__name__}: {error}"
            if problem not in self._told:
                self._told = {problem}
                _log.error("%s", problem, exc_info=error)
            return Response(500, b"an error of the server; its log says more\n")

    def _meant(self, host: str) -> bool:
        """Whether a Host field names this server. An IP address always does: no name server can make it point elsewhere."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
        name = name.lower()
        # HTTP/1.0 may leave the field out; browsers, which DNS rebinding needs, never do.
        return not host or name in self._names or is_ip(name)


class _Conversation:
    """The requests of one connection, one after the other."""

    def __init__(self, connection: socket.socket, limits: ServerLimits) -> None:
        self._connection = connection
        self._limits = limits
        self._buffer = b""
        self.idle_since: float | None = time.monotonic()
        """Since when the client has owed us a request, or the rest of one; None while we owe it an answer."""

    def run(self, answer: Handler) -> None:
        """Answer until the client or a limit ends it. Raises OSError when the client has gone."""
        while True:
            try:
                head = self._head()
                if head is None:
                    return
                request = parse_head(head, self._limits.body_bytes)
                if request.body_bytes:
                    request = request._replace(body=self._body(request.body_bytes))
            except BadRequest as refusal:
                self._send(Response(refusal.status, f"{refusal.reason}\n".encode()), close=True, with_body=True)
                self._drain()
                return
            response = answer(request)
            self._send(response, close=not request.keep_alive, with_body=request.method != "HEAD")
            if not request.keep_alive:
                return

    def _head(self) -> bytes | None:
        """The next head; None when the client is done. Raises BadRequest."""
        self._buffer = self._buffer.lstrip(b"\r\n")
        began = time.monotonic()
        while True:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if len(head) > MAX_HEAD_BYTES:
                raise BadRequest(431, f"a request head has at most {MAX_HEAD_BYTES} bytes")
            if found:
                self._buffer = rest
                return head
            chunk = self._receive(began)
            if not chunk:
                return None
            if not self._buffer:
                began = time.monotonic()
                # Some clients send an empty line after a request (RFC 9112, 2.2).
                chunk = chunk.lstrip(b"\r\n")
            self._buffer += chunk

    def _body(self, length: int) -> bytes:
        """The body of the request whose head came last. Raises BadRequest."""
        began = time.monotonic()
        while len(self._buffer) < length:
            left_s = began + self._limits.head_s - time.monotonic()
            if left_s <= 0:
                raise BadRequest(408, "the body did not come to its end in time")
            self._connection.settimeout(left_s)
            try:
                chunk = self._connection.recv(min(MAX_HEAD_BYTES, length - len(self._buffer)))
            except TimeoutError:
                continue
            if not chunk:
                raise BadRequest(400, "the body ended before its length")
            self._buffer += chunk
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    def _receive(self, began: float) -> bytes:
        """More of a head that began at ``began``, or, with nothing of it here yet, its beginning; empty = the client is done."""
        if not self._buffer:
            self.idle_since = began
            self._connection.settimeout(self._limits.idle_s)
            try:
                return self._connection.recv(MAX_HEAD_BYTES)
            except TimeoutError:
                return b""
            finally:
                self.idle_since = None
        left_s = began + self._limits.head_s - time.monotonic()
        if left_s > 0:
            self.idle_since = began
            self._connection.settimeout(left_s)
            try:
                return self._connection.recv(MAX_HEAD_BYTES)
            except TimeoutError:
                pass
            finally:
                self.idle_since = None
        raise BadRequest(408, "the request did not come to its end in time")

    def _send(self, response: Response, *, close: bool, with_body: bool) -> None:
        self._connection.settimeout(self._limits.answer_s)
        parts = [_head(response, close=close)]
        if with_body:
            parts += response.body if isinstance(response.body, list) else [response.body]
        began = time.monotonic()
        # All at once, without a copy of what may be large.
        sent = self._connection.sendmsg(parts)
        if sent < sum(map(len, parts)):
            # sendall has one time limit for all of it, so a client that takes a byte a second does not stay.
            self._connection.settimeout(max(_LEAST_S, began + self._limits.answer_s - time.monotonic()))
            self._connection.sendall(memoryview(b"".join(parts))[sent:])

    def _drain(self) -> None:
        """Take what the client still sends, for a moment: closing on unread bytes would reset our answer away."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.settimeout(_ACCEPT_PAUSE_S)
            for _ in range(16):
                if not self._connection.recv(65536):
                    return


def _ends(connection: socket.socket) -> Ends:
    """Raises OSError when the client has gone."""
    client, server = connection.getpeername(), connection.getsockname()
    return (client[0], client[1]), (server[0], server[1])


def encode_response(response: Response, *, close: bool, with_body: bool) -> bytes:
    """The answer as it goes over the wire; ``close`` says that the connection ends with it."""
    body = response.body if isinstance(response.body, list) else [response.body]
    return b"".join([_head(response, close=close), *(body if with_body else ())])


def _head(response: Response, *, close: bool) -> bytes:
    fields = [
        ("Date", http_date(time.time())),
        ("Content-Type", response.content_type),
        ("Content-Length", str(_length(response.body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        *response.headers,
    ]
    if close:
        fields.append(("Connection", "close"))
    lines = [f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _length(body: bytes | list[bytes]) -> int:
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
