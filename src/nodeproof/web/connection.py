"""One HTTP/1.1 connection: h11 on an asyncio transport, with a limit on everything that a client may draw out.

uvicorn is not used: it costs the daemon's process ten megabytes (its command line, logging set-up, TLS), and has no deadline for
the head of a request, so that a client that sends a byte now and then keeps its place for ever.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from typing import NamedTuple, cast

import h11

from nodeproof.web.http_exchange import Exchange
from nodeproof.web.http_messages import Endpoint

__all__ = ["Connection", "Limits"]


class Limits(NamedTuple):
    """What a client may draw out."""

    connections: int = 512
    head_bytes: int = 16 * 1024
    head_s: float = 10.0
    """From the first byte of a head, or the connection, to the end of the head."""
    idle_s: float = 30.0
    """Between an answer and the next request."""
    body_s: float = 20.0
    """From the end of the head to that of the body."""
    taken_s: float = 30.0
    """What was sent and is not acknowledged for so long ends the connection (TCP_USER_TIMEOUT, tcp(7))."""
    linger_s: float = 1.0
    """So long a client that still sends may read the answer that refuses it."""


_VERSIONS = {b"1.0", b"1.1"}
_PIECE_BYTES = 64 * 1024
"""Handed to the transport at once; a reader that stalls has no more than two of them in memory."""
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_Events = Iterable[h11.Response | h11.InformationalResponse]


class Connection(asyncio.Protocol):
    """Serves one client; ``others`` are all connections of the server, this one among them while it lives."""

    def __init__(self, endpoint: Endpoint, others: "set[Connection]", limits: Limits, *, secure: bool) -> None:
        self.client: tuple[str, int] | None = None
        self.exchange: Exchange | None = None
        self._endpoint = endpoint
        self._secure = secure
        self._others = others
        self._limits = limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._awaited = ""
        self._lingering = False

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast("asyncio.Transport", transport)
        plain = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._limits.taken_s * 1000))
        self.client = _pair(transport.get_extra_info("peername"))
        if len(self._others) >= self._limits.connections:
            self._lingering = True
            self._transport.write(_BUSY)
            self._transport.close()
            return
        self._others.add(self)
        self._await_part("head", self._limits.head_s)

    def connection_lost(self, error: Exception | None) -> None:
        """It is over."""
        del error
        self._others.discard(self)
        self._await_part("", 0)
        self._writable.set()
        if self.exchange is not None:
            self.exchange.disconnect()

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request."""
        if self._lingering:
            return
        self._http.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        """The client sends no more; an answer on its way still goes out, where the transport can do that."""
        if self._lingering or self.exchange is None or self._secure:
            return False
        self._http.receive_data(b"")
        self._advance()
        return True

    def pause_writing(self) -> None:
        """The client takes too little."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It took some."""
        self._writable.set()

    # What the exchange asks for

    def go_on_reading(self) -> None:
        """The application wants more of the body."""
        if self._http.they_are_waiting_for_100_continue:
            self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
        if self._transport is not None and not self._transport.is_closing():
            with contextlib.suppress(RuntimeError):
                self._transport.resume_reading()

    async def put(self, head: _Events, body: bytes, *, end: bool) -> None:
        """Send a part of an answer, and wait until the client has taken enough of it. Raises ConnectionResetError."""
        lines = b"".join(self._sent(event) for event in head)
        pieces = [body[start : start + _PIECE_BYTES] for start in range(0, len(body), _PIECE_BYTES)] or [b""]
        for number, piece in enumerate(pieces, 1):
            if piece:
                lines += self._sent(h11.Data(data=piece))
            if end and number == len(pieces):
                lines += self._sent(h11.EndOfMessage())
            self._write(lines)
            lines = b""
            if not self._writable.is_set():
                await self._writable.wait()
        if self._transport is None or (self._transport.is_closing() and not end):
            raise ConnectionResetError("the client has gone")
        if end:
            self._next()

    def drop(self, exchange: Exchange) -> None:
        """Nobody waits for the rest of this answer."""
        if self.exchange is exchange:
            self.abort()

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End it when nothing is on its way."""
        if self.exchange is None and self._transport is not None:
            self._transport.close()

    # Inside

    def _advance(self) -> None:
        """Look at what has come."""
        try:
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data) and self.exchange is not None:
                    if self.exchange.add_body(bytes(event.data)) and self._transport is not None:
                        self._transport.pause_reading()
                elif isinstance(event, h11.EndOfMessage) and self.exchange is not None:
                    self.exchange.end_body()
                    self._await_part("", 0)
                else:
                    break
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint)
            return
        if event is h11.PAUSED and self._transport is not None:
            self._transport.pause_reading()
        elif isinstance(event, h11.ConnectionClosed) and self.exchange is None and self._transport is not None:
            self._transport.close()
        elif event is h11.NEED_DATA and self.exchange is None and self._http.trailing_data[0]:
            self._await_part("head", self._limits.head_s)

    def _begin(self, request: h11.Request) -> None:
        if request.http_version not in _VERSIONS:
            raise h11.RemoteProtocolError("another version of HTTP", error_status_hint=505)
        # h11 limits what is incomplete; a head that came in one piece is complete at once.
        if len(request.target) + sum(len(name) + len(value) for name, value in request.headers) > self._limits.head_bytes:
            raise h11.RemoteProtocolError("a head without measure", error_status_hint=431)
        self._await_part("body", self._limits.body_s)
        self.exchange = Exchange(self, request)
        self._task = self._loop.create_task(self.exchange.run(self._endpoint))

    def _next(self) -> None:
        """An answer is out: wait for the next request, or end."""
        self.exchange = None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._http.their_state is h11.DONE and self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
            self._await_part("idle", self._limits.idle_s)
            with contextlib.suppress(RuntimeError):
                transport.resume_reading()
            self._loop.call_soon(self._advance)
        else:
            self._linger()

    def _linger(self) -> None:
        """Close, but not in the face of a client that still sends: it would lose the answer with the connection (reset)."""
        transport = self._transport
        if transport is None:
            return
        if self._http.their_state is not h11.SEND_BODY and self._http.their_state is not h11.ERROR:
            transport.close()
            return
        self._lingering = True
        if transport.can_write_eof():
            transport.write_eof()
        with contextlib.suppress(RuntimeError):
            transport.resume_reading()
        self._await_part("linger", self._limits.linger_s)

    def _refuse(self, status: int) -> None:
        """Answer without the application, and close."""
        if self.exchange is not None:
            self.exchange.disconnect()
            self.exchange = None
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            headers = [("Connection", "close"), ("Content-Length", "0")]
            with contextlib.suppress(h11.LocalProtocolError):
                self._write(self._http.send(h11.Response(status_code=status, headers=headers)))
                self._write(self._http.send(h11.EndOfMessage()))
        self._linger()

    def _sent(self, event: h11.Response | h11.InformationalResponse | h11.Data | h11.EndOfMessage) -> bytes:
        try:
            return self._http.send(event) or b""
        except h11.LocalProtocolError as error:
            raise ConnectionResetError(str(error)) from None

    def _write(self, data: bytes | None) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _await_part(self, part: str, seconds: float) -> None:
        """Have a clock run for ``part``; one that runs for it already goes on."""
        if part == self._awaited:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._awaited = part
        self._timer = self._loop.call_later(seconds, self._too_late) if part else None

    def _too_late(self) -> None:
        part, self._awaited = self._awaited, ""
        if part in {"head", "body"} and self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._refuse(408)
        elif part == "idle" and self._transport is not None:
            self._transport.close()
        else:
            self.abort()


def _pair(address: object) -> tuple[str, int] | None:
    """Host and port of a socket's name."""
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) and len(address) > 1 else None
