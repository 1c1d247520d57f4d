"""HTTP/1.1 over a Unix socket: one request a connection, small bodies, answers that may be streamed, and who is asking.

Every connection has a thread and one of a fixed number of places. A client that is slow with its request, or takes nothing of its
answer, loses its place; one that goes away is noticed while its answer is still being made (:meth:`Exchange.gone`).
"""

import contextlib
import logging
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.host.http_request import BadRequest, Request, parse_head
from nodeproof.host.http_server import Response, encode_response, http_date
from nodeproof.host.peer import Peer, peer_of

__all__ = ["Answer", "Call", "CallLimits", "Exchange", "UnixHttpServer"]

_log = logging.getLogger(__name__)
_CHUNK_BYTES = 65536
_ACCEPT_PAUSE_S = 0.1
_STOP_S = 5.0
_MAX_DRAINS = 16


class CallLimits(NamedTuple):
    """What one client, and all of them, may take."""

    connections: int = 32
    head_bytes: int = 8 * 1024
    body_bytes: int = 64 * 1024
    request_s: float = 5.0
    """For a whole request, head and body, from its first byte."""
    idle_s: float = 30.0
    """Until that byte, and for taking any part of an answer."""


class Call(NamedTuple):
    """A request and who sent it."""

    request: Request
    body: bytes
    peer: Peer


class Exchange:
    """The answering half of a connection."""

    def __init__(self, connection: socket.socket, limits: CallLimits, stopping: threading.Event) -> None:
        self._connection = connection
        self._limits = limits
        self._stopping = stopping
        self._poll = select.poll()
        self._poll.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)

    def gone(self, wait_s: float = 0.0) -> bool:
        """Whether the client has hung up, or the server is ending; waits so long for it."""
        return bool(self._poll.poll(wait_s * 1000)) or self._stopping.is_set()

    def begin(self, content_type: str) -> None:
        """Begin an answer whose length is not known yet. Raises OSError when the client is gone or takes nothing."""
        head = (
            f"HTTP/1.1 200 OK\r\nDate: {http_date(time.time())}\r\nContent-Type: {content_type}\r\nCache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        self._send(head.encode("ascii"))

    def send(self, data: bytes) -> None:
        """A part of it. Raises OSError."""
        if data:
            self._send(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """Its end. Raises OSError."""
        self._send(b"0\r\n\r\n")

    def _send(self, data: bytes) -> None:
        self._connection.settimeout(self._limits.idle_s)
        self._connection.sendall(data)


Answer = Callable[[Call, Exchange], Response | None]
"""Answers a call; None = it was streamed."""


class UnixHttpServer:
    """Serves a listening socket between :meth:`start` and :meth:`stop`."""

    def __init__(self, answer: Answer, limits: CallLimits | None = None) -> None:
        self._answer = answer
        self._limits = limits or CallLimits()
        self._listener: socket.socket | None = None
        self._stopping = threading.Event()
        self._places = threading.BoundedSemaphore(self._limits.connections)
        self._threads: set[threading.Thread] = set()

    def start(self, listener: socket.socket) -> None:
        """Begin to answer."""
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="unix-http-accept", daemon=True).start()

    def stop(self) -> None:
        """Take no more, tell those who wait that we end, and wait for them a little."""
        self._stopping.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + _STOP_S
        for thread in list(self._threads):
            if thread.is_alive():  # one that is just being started finds the server ending by itself
                thread.join(max(0.0, deadline - time.monotonic()))

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError as error:
                if not self._stopping.is_set():
                    # No descriptors left: the next moment may have some.
                    _log.debug("accept: %s", error)
                    self._stopping.wait(_ACCEPT_PAUSE_S)
                continue
            if not self._places.acquire(blocking=False):
                self._refuse(connection)
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), name="unix-http", daemon=True)
            self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError:
                self._threads.discard(thread)
                self._places.release()
                self._refuse(connection)

    @staticmethod
    def _refuse(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(_ACCEPT_PAUSE_S)
            connection.sendall(encode_response(Response(503, b"too many connections\n"), close=True, with_body=True))

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._converse(connection)
        except OSError as error:
            _log.debug("a client went away: %s", error)
        finally:
            self._places.release()
            self._threads.discard(threading.current_thread())

    def _converse(self, connection: socket.socket) -> None:
        peer = peer_of(connection)
        try:
            request, body = self._receive(connection)
        except BadRequest as refusal:
            _reply(connection, Response(refusal.status, f"{refusal.reason}\n".encode()), self._limits)
            return
        if request is None:
            return
        try:
            response = self._answer(Call(request, body, peer), Exchange(connection, self._limits, self._stopping))
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one answer must not end the server
            _log.error("%s %s could not be answered", request.method, request.path, exc_info=error)
            response = Response(500, b"an error of the server; its log says more\n")
        if response is not None:
            _reply(connection, response, self._limits, with_body=request.method != "HEAD")

    def _receive(self, connection: socket.socket) -> tuple[Request | None, bytes]:
        """A whole request; None when the client says nothing. Raises BadRequest."""
        limits = self._limits
        connection.settimeout(limits.idle_s)
        try:
            data = connection.recv(_CHUNK_BYTES)
        except TimeoutError:
            return None, b""
        deadline = time.monotonic() + limits.request_s
        while b"\r\n\r\n" not in data:
            if len(data) > limits.head_bytes:
                raise BadRequest(431, f"a request head has at most {limits.head_bytes} bytes")
            more = _more(connection, deadline)
            if not more:
                return None, b""
            data += more
        head, _, body = data.lstrip(b"\r\n").partition(b"\r\n\r\n")
        if len(head) > limits.head_bytes:
            raise BadRequest(431, f"a request head has at most {limits.head_bytes} bytes")
        request = parse_head(head, limits.body_bytes)
        while len(body) < request.body_bytes:
            more = _more(connection, deadline)
            if not more:
                raise BadRequest(400, "the body is shorter than it says")
            body += more
        return request, body[: request.body_bytes]


def _more(connection: socket.socket, deadline: float) -> bytes:
    """More of a request; empty at its end. Raises BadRequest when time is up."""
    left_s = deadline - time.monotonic()
    if left_s > 0:
        connection.settimeout(left_s)
        try:
            return connection.recv(_CHUNK_BYTES)
        except TimeoutError:
            pass
    raise BadRequest(408, "the request did not come to its end in time")


def _reply(connection: socket.socket, response: Response, limits: CallLimits, *, with_body: bool = True) -> None:
    connection.settimeout(limits.idle_s)
    connection.sendall(encode_response(response, close=True, with_body=with_body))
    # Closing on bytes that were not read would reset the answer away.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_ACCEPT_PAUSE_S)
        for _ in range(_MAX_DRAINS):
            if not connection.recv(_CHUNK_BYTES):
                return
