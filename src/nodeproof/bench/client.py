"""The client: asks an endpoint and says, with a stamp for everything, what came of it.

::

    async def main() -> None:
        async with Client(Address.of("http://127.0.0.1:8000"), model="m") as client:
            exchange = await client.send(Ask(prompt="2+2?", max_tokens=8))
            print(exchange.outcome, exchange.ttft_s, exchange.text)

    reactor.run(main())

Connections are kept and used again, as many as are asked for at once: there is no limit of the client's own. A time stamp is
taken when the socket is read, before anything is decoded.
"""

import asyncio
import socket
import ssl
import time
from types import TracebackType
from typing import NamedTuple, Self

from nodeproof import __version__
from nodeproof.bench.address import Address
from nodeproof.bench.ask import Ask
from nodeproof.bench.connection import ConnectError, Connection, Resolved, connect
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.reactor import hot_selector
from nodeproof.bench.response import ResponseReader
from nodeproof.errors import UsageError

__all__ = ["Client", "Timeouts", "tls_context"]

_TICK_S = 0.25
_FINEST_TICK_S = 0.005
_QUIET_S = 0.25
"""What was laid aside of a stream is decoded when nothing more has come for so long."""
_LINGER_S = 2.0
"""So long a connection may stay open after the end of its stream was said."""
_AT_ONCE_S = 0.05
"""A kept connection that ends so soon after a request had been closed before it."""


class Timeouts(NamedTuple):
    """Limits of one request, in seconds, each on its own."""

    connect_s: float = 10.0
    """Name, connection and TLS."""
    first_byte_s: float = 300.0
    """From the request to the first byte of the answer."""
    idle_s: float = 120.0
    """Between two reads of one answer."""
    total_s: float = 900.0
    """From the request to the end."""


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """What certificates are checked with: the system's authorities, or those of ``ca_file``. Raises UsageError."""
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{ca_file}: cannot be used as a list of certificate authorities: {error}") from None


class Client:
    """Sends requests to one endpoint. To be used inside :func:`nodeproof.bench.reactor.run`, on its thread."""

    def __init__(
        self,
        address: Address,
        model: str,
        *,
        key: str = "",
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - immutable
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = address
        self.model = model
        self.connections_made = 0
        """Connections opened so far."""
        self.in_flight = 0
        """Exchanges that are under way."""
        self._timeouts = timeouts
        self._tick_s = max(_FINEST_TICK_S, min(_TICK_S, *(limit_s / 10 for limit_s in timeouts)))
        self._tls = (tls or tls_context()) if address.scheme == "https" else None
        self._key = _checked_key(key)
        self._places: list[Resolved] = []
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._ticker: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        self._selector = hot_selector()
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; what is under way ends as cancelled."""
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        for connection in list(self._busy):
            connection.end(Outcome.CANCELLED, "the client was closed")
        for connection in self._idle:
            connection.close()
        self._busy.clear()
        self._idle.clear()

    async def send(self, ask: Ask, scheduled_s: float | None = None) -> Exchange:
        """Send ``ask`` and read the answer to its end. Never raises for what goes wrong on the way: the exchange says it.

        ``scheduled_s``: when it was meant to begin (CLOCK_MONOTONIC; default: now). Cancelling the task closes the connection.
        """
        return await self.send_bytes(self.request_bytes(ask), ask, scheduled_s)

    def request_bytes(self, ask: Ask) -> bytes:
        """Head and body of the request, to be made before its time has come."""
        body = ask.body(self.model)
        accept = "text/event-stream" if ask.stream else "application/json"
        return (
            self._head("POST", ask.api.path, accept, f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n") + body
        )

    async def send_bytes(self, request: bytes, ask: Ask, scheduled_s: float | None = None) -> Exchange:
        """As :meth:`send`, with bytes that :meth:`request_bytes` made of ``ask``."""
        now_s = time.monotonic()
        exchange = Exchange(now_s if scheduled_s is None else scheduled_s)
        exchange.started_s = now_s
        self.in_flight += 1
        try:
            await self._exchange(request, ask, exchange)
            if exchange.outcome is Outcome.RESET and exchange.reused and time.monotonic() - now_s < _AT_ONCE_S:
                # The server closed an idle connection at the moment when it was used again: that says nothing of the server. One
                # that took the request, worked on it and then hung up has failed.
                again = Exchange(exchange.scheduled_s)
                again.started_s = exchange.started_s
                again.odd("a kept connection had been closed")
                exchange = again
                await self._exchange(request, ask, exchange, fresh=True)
        finally:
            self.in_flight -= 1
        return exchange

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body (at most 1 MiB) of a plain GET below the base address; status 0 and the reason when none came."""
        from nodeproof.bench.plain import fetch  # noqa: PLC0415 - it is built on this module

        return await fetch(self, self._head("GET", path, "application/json", ""))

    async def post_json(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The same for a POST of JSON."""
        from nodeproof.bench.plain import fetch  # noqa: PLC0415 - as above

        extra = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return await fetch(self, self._head("POST", path, "application/json", extra) + body)

    async def take(self, exchange: Exchange, *, fresh: bool = False) -> Connection:
        """A connection for ``exchange``: a kept one, else a new one. Raises ConnectError."""
        while self._idle and not fresh:
            connection = self._idle.pop()
            if not connection.closed:
                exchange.reused = True
                exchange.connected_s = time.monotonic()
                return connection
        if not self._places:
            self._places = await self._resolve()
        connection = await connect(
            self._places, self._selector, tls=self._tls, host=self.address.host, timeout_s=self._timeouts.connect_s
        )
        self.connections_made += 1
        exchange.connected_s = time.monotonic()
        return connection

    async def carry(self, connection: Connection, request: bytes, exchange: Exchange, reader: ResponseReader) -> None:
        """Have ``connection`` carry the exchange to its end, then keep it if it can be used again."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._busy.add(connection)
        connection.begin(request, exchange, reader, done)
        if self._ticker is None:
            self._ticker = self._loop.call_later(self._tick_s, self._tick)
        try:
            await done
        except asyncio.CancelledError:
            connection.end(Outcome.CANCELLED, "cancelled")
            raise
        finally:
            self._busy.discard(connection)
            if not connection.closed:
                self._idle.append(connection)

    async def _exchange(self, request: bytes, ask: Ask, exchange: Exchange, *, fresh: bool = False) -> None:
        try:
            connection = await self.take(exchange, fresh=fresh)
        except ConnectError as error:
            exchange.fail(error.outcome, str(error))
            exchange.end_s = time.monotonic()
            return
        await self.carry(connection, request, exchange, ResponseReader(exchange, ask.api, ask.max_tokens))

    async def _resolve(self) -> list[Resolved]:
        address = self.address
        try:
            async with asyncio.timeout(self._timeouts.connect_s):
                found = await self._loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise ConnectError(Outcome.DNS, f"{address.host} was not resolved within {self._timeouts.connect_s:g} s") from None
        except (OSError, UnicodeError) as error:
            raise ConnectError(Outcome.DNS, f"{address.host} cannot be resolved: {getattr(error, 'strerror', error)}") from None
        return [Resolved(family, sockaddr) for family, _, _, _, sockaddr in found]

    def _head(self, method: str, path: str, accept: str, more: str) -> bytes:
        lines = (
            f"{method} {self.address.prefix}{path} HTTP/1.1\r\nHost: {self.address.host_field}\r\nAccept: {accept}\r\n"
            f"Accept-Encoding: identity\r\nUser-Agent: nodeproof/{__version__}\r\n{more}"
        )
        key = f"Authorization: Bearer {self._key}\r\n" if self._key else ""
        return f"{lines}{key}\r\n".encode("latin-1")

    def _tick(self) -> None:
        """End what is over a limit."""
        self._ticker = None
        now_s, limits = time.monotonic(), self._timeouts
        for connection in list(self._busy):
            exchange = connection.exchange
            if exchange is None:
                continue
            quiet_s = now_s - connection.heard_s
            if quiet_s > _QUIET_S and connection.flush():
                continue
            if now_s - exchange.sent_s > limits.total_s:
                connection.end(Outcome.TOTAL_TIMEOUT, f"no end within {limits.total_s:g} s")
            elif not connection.receiving:
                if quiet_s > limits.first_byte_s:
                    connection.end(Outcome.FIRST_BYTE_TIMEOUT, f"no answer within {limits.first_byte_s:g} s")
            elif quiet_s > limits.idle_s or (exchange.done_marker and quiet_s > _LINGER_S):
                connection.end(Outcome.IDLE_TIMEOUT, f"nothing came for {quiet_s:.3g} s within the answer")
        if self._busy:
            self._ticker = self._loop.call_later(self._tick_s, self._tick)


def _checked_key(key: str) -> str:
    """A key that can stand in a header. Raises UsageError, which does not repeat it."""
    if not key.isprintable() or not key.isascii() or " " in key:
        raise UsageError(
            "the key of the endpoint holds blanks, control characters or letters beyond ASCII: is it the right file?"
        )
    return key
