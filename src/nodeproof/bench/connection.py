"""One connection to an endpoint: made under a time limit, written to, and read at the moment when something is there."""

import asyncio
import contextlib
import errno
import os
import select
import socket
import ssl
import time
from array import array
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.reactor import HotSelector
from nodeproof.bench.response import ResponseReader

__all__ = ["ConnectError", "Connection", "Resolved", "connect"]

_monotonic = time.monotonic
_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_READ_BYTES = 256 << 10
_PIECE_BYTES = 64 << 10
_ORDINARY = b"\n\n\r\n"
"""How a read ends that brought whole events, each a chunk of HTTP, and not the last one."""
_TOGETHER = 32


class ConnectError(Exception):
    """No connection came about."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        self.outcome = outcome
        super().__init__(detail)


class Resolved(NamedTuple):
    """One address of the host."""

    family: int
    sockaddr: tuple[object, ...]


class Connection:
    """A connection; carries one exchange at a time. For the loop's thread alone."""

    __slots__ = (
        "_deferring",
        "_done",
        "_held",
        "_held_s",
        "_out",
        "_reader",
        "_selector",
        "_sock",
        "_tls",
        "closed",
        "exchange",
        "last_read_s",
    )

    def __init__(self, sock: socket.socket, selector: HotSelector) -> None:
        self.closed = False
        self.exchange: Exchange | None = None
        self.last_read_s = 0.0
        """When anything of this exchange was read, pieces that were laid aside left out."""
        self._sock = sock
        self._deferring = False
        """Whether pieces may be laid aside: a stream has begun."""
        self._held: list[bytes] = []
        self._held_s = array("d")
        self._selector = selector
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._reader: ResponseReader | None = None
        self._done: asyncio.Future[None] | None = None
        self._out = memoryview(b"")
        selector.add_hot(sock.fileno(), self._read)

    def begin(self, request: bytes, exchange: Exchange, reader: ResponseReader, done: "asyncio.Future[None]") -> None:
        """Send ``request``; ``done`` is resolved when the exchange has ended, whichever way."""
        self.exchange, self._reader, self._done = exchange, reader, done
        self._out = memoryview(request)
        exchange.sent_s = self.last_read_s = _monotonic()
        self._write()

    def end(self, outcome: Outcome, detail: str) -> None:
        """Give the exchange up and close."""
        exchange, reader = self.exchange, self._reader
        if exchange is None or reader is None:
            self.close()
            return
        self._decode(reader)
        if reader.ended_within:
            reader.eof(exchange.chunks_s[-1] if exchange.chunks_s else exchange.first_byte_s, "nothing more came")
        exchange.fail(outcome, detail)
        exchange.end_s = exchange.end_s or _monotonic()
        self._finish(keep=False)

    def close(self) -> None:
        """Close it, now."""
        if not self.closed:
            self.closed = True
            self._selector.remove_hot(self._sock.fileno())
            with contextlib.suppress(OSError):
                self._sock.close()

    @property
    def heard_s(self) -> float:
        """When anything of this exchange was read last."""
        return self._held_s[-1] if self._held_s else self.last_read_s

    @property
    def receiving(self) -> bool:
        """Whether the answer has begun."""
        return self.exchange is not None and self.exchange.first_byte_s > 0.0

    def _read(self, mask: int) -> bool:
        """The socket has something, or takes something."""
        if mask & _OUT and self._out:
            self._write()
            if mask == _OUT:
                return self.closed
        if self._tls:
            return self._read_tls()
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            return self._gone(f"the connection broke ({_words(error)})")
        stamp_s = _monotonic()
        return self._feed(data, stamp_s) if data else self._gone("the connection was closed")

    def _stream_reader(self) -> Callable[[int], bool]:
        """The reader while events of a stream come: the way that nearly everything goes, and therefore short.

        An ordinary piece is stamped and laid aside; a number of them is decoded together, which costs half of decoding each by
        itself. Whatever else comes (the end, a piece of an event, many events at once) is decoded at once.
        """
        recv, pieces, stamps = self._sock.recv, self._held, self._held_s
        hold, stamp = pieces.append, stamps.append

        def read(mask: int) -> bool:
            if mask != _IN:
                return self._read(mask)
            try:
                data = recv(_PIECE_BYTES)
            except OSError:
                return self._read(mask)
            stamp(_monotonic())
            hold(data)
            if data.endswith(_ORDINARY) and len(pieces) < _TOGETHER:
                return False
            return self._taken(data)

        return read

    def _taken(self, data: bytes) -> bool:
        """What came last is not to wait, or enough is waiting."""
        if data:
            return self.flush()
        self._held.pop()
        self._held_s.pop()
        return self._gone("the connection was closed")

    def _read_tls(self) -> bool:
        due = False
        while not self.closed:
            try:
                data = self._sock.recv(_READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return due
            except ssl.SSLEOFError:
                return self._gone("the connection was closed without a goodbye of TLS")
            except OSError as error:
                return self._gone(f"the connection broke ({_words(error)})")
            stamp_s = _monotonic()
            if not data:
                return self._gone("the connection was closed")
            due |= self._feed(data, stamp_s)
        return due

    def _feed(self, data: bytes, stamp_s: float) -> bool:
        reader = self._reader
        if reader is None:  # nobody asked: what comes now would be taken for the next answer
            self.close()
            return False
        self._decode(reader)
        self.last_read_s = stamp_s
        if not reader.complete:
            reader.feed(data, stamp_s)
        if reader.streams and not self._deferring and not self._tls and not reader.complete:
            self._deferring = True
            self._selector.swap_hot(self._sock.fileno(), self._stream_reader())
        return self._ended(reader)

    def flush(self) -> bool:
        """Decode what was laid aside; whether that ended the exchange."""
        reader = self._reader
        if reader is None or not self._held:
            return False
        self._decode(reader)
        return self._ended(reader)

    def _decode(self, reader: ResponseReader) -> None:
        if self._held:
            self.last_read_s = self._held_s[-1]
            reader.feed_together(self._held, self._held_s)
            self._held.clear()
            del self._held_s[:]

    def _ended(self, reader: ResponseReader) -> bool:
        if not reader.complete:
            return False
        self._finish(keep=reader.keep_alive and not self._out)
        return True

    def _gone(self, why: str) -> bool:
        reader = self._reader
        if reader is None:
            self.close()
            return False
        self._decode(reader)
        reader.eof(_monotonic(), why)
        self._finish(keep=False)
        return True

    def _finish(self, *, keep: bool) -> None:
        done = self._done
        self.exchange = self._reader = self._done = None
        if self._deferring:
            self._deferring = False
            self._selector.swap_hot(self._sock.fileno(), self._read)
        if not keep:
            self._out = memoryview(b"")
            self.close()
        if done is not None and not done.done():
            done.set_result(None)

    def _write(self) -> None:
        try:
            while self._out:
                self._out = self._out[self._sock.send(self._out) :]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self._selector.watch_writing(self._sock.fileno(), on=True)
            return
        except OSError:
            # The server may have answered before it closed: the reading side tells.
            self._out = memoryview(b"")
        with contextlib.suppress(OSError):
            self._selector.watch_writing(self._sock.fileno(), on=False)


async def connect(
    places: list[Resolved], selector: HotSelector, *, tls: ssl.SSLContext | None, host: str, timeout_s: float
) -> Connection:
    """The first of ``places`` that answers. Raises ConnectError."""
    errors: list[str] = []
    ends_s = _monotonic() + timeout_s
    for number, place in enumerate(places):
        left_s = (ends_s - _monotonic()) / (len(places) - number)
        try:
            async with asyncio.timeout(max(0.001, left_s)):
                return Connection(await _open(place, tls, host), selector)
        except TimeoutError:
            errors.append(f"{place.sockaddr[0]} did not answer")
            if number == len(places) - 1 and len(errors) == len(places):
                detail = f"no connection within {timeout_s:g} s: {', '.join(errors)}"
                raise ConnectError(Outcome.CONNECT_TIMEOUT, detail) from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or error.reason or error
            raise ConnectError(Outcome.TLS, f"no trust or no encryption with {host}: {reason}") from None
        except OSError as error:
            errors.append(f"{place.sockaddr[0]}: {_words(error)}")
            if error.errno in {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL}:
                raise ConnectError(Outcome.EXHAUSTED, f"this machine has no more: {_words(error)}") from None
    raise ConnectError(Outcome.CONNECT, f"no connection: {', '.join(errors)}")


async def _open(place: Resolved, tls: ssl.SSLContext | None, host: str) -> socket.socket:
    loop = asyncio.get_running_loop()
    sock = socket.socket(place.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, place.sockaddr)
        if tls is None:
            return sock
        secure = tls.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        sock = secure
        await _shake_hands(secure)
    except BaseException:
        sock.close()
        raise
    return secure


async def _shake_hands(secure: ssl.SSLSocket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            secure.do_handshake()
        except ssl.SSLWantReadError:
            await _until(loop.add_reader, loop.remove_reader, secure)
        except ssl.SSLWantWriteError:
            await _until(loop.add_writer, loop.remove_writer, secure)
        else:
            return


async def _until(add: object, remove: object, sock: socket.socket) -> None:
    """Wait until the loop says that ``sock`` is ready."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(sock, _resolve, ready)  # type: ignore[operator]  # methods of the loop
    try:
        await ready
    finally:
        remove(sock)  # type: ignore[operator]  # as above


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
