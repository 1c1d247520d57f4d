"""Connections without manners: whatever bytes, at whatever pace, and an end in the middle. None is left open."""

import asyncio
import contextlib
import socket
import ssl
import struct

from nodeproof.bench.address import Address

__all__ = ["CLOSED", "SILENT", "UNTRIED", "Wire", "Wires"]

CLOSED = -1
"""In the place of a status: the server ended the connection without an answer."""
SILENT = 0
"""In the place of a status: nothing came in time."""
UNTRIED = -2
"""In the place of a status: it could not be tried on this connection."""
_HEAD_BYTES = 64 << 10
_SMALL_BUFFER_BYTES = 4096
_UNREAD_BYTES = 1024


class Wire:
    """One connection."""

    def __init__(self, owner: "Wires", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._owner = owner
        self._reader, self._writer = reader, writer
        self._seen = b""

    async def send(self, data: bytes) -> bool:
        """Send it all; False when the server hung up before it was through."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            return False
        return True

    def say_no_more(self) -> bool:
        """Close our direction alone; False where the connection cannot do that (TLS)."""
        if not self._writer.can_write_eof():
            return False
        with contextlib.suppress(OSError):
            self._writer.write_eof()
        return True

    async def read_until(self, mark: bytes, times: int, timeout_s: float) -> bool:
        """Read until ``mark`` has come so many times; False when the end or the time came first."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._seen.count(mark) < times:
                    data = await self._reader.read(65536)
                    if not data:
                        return False
                    self._seen += data
        return self._seen.count(mark) >= times

    async def status(self, timeout_s: float) -> int:
        """Status of the answer, :data:`CLOSED` or :data:`SILENT`."""
        try:
            async with asyncio.timeout(timeout_s):
                while b"\r\n" not in self._seen and len(self._seen) < _HEAD_BYTES:
                    data = await self._reader.read(65536)
                    if not data:
                        return CLOSED
                    self._seen += data
        except TimeoutError:
            return SILENT
        except OSError:
            return CLOSED
        words = self._seen.partition(b"\r\n")[0].split()
        known = len(words) >= 2 and words[0].startswith(b"HTTP/1.") and words[1].isdigit() and len(words[1]) == 3
        return int(words[1]) if known else CLOSED

    def reset(self) -> None:
        """End it as a crash does: with a reset, and without a word."""
        sock = self._writer.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """End it at once, whatever was not sent or read."""
        self._writer.transport.abort()
        self._owner.forget(self)


class Wires:
    """Makes connections to one address, and closes what is still open at the end of a ``with``."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> None:
        self._address, self._tls = address, tls
        self._timeout_s = timeout_s
        self._open: set[Wire] = set()
        self.made = 0
        """Connections so far."""

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    def forget(self, wire: Wire) -> None:
        """It is closed."""
        self._open.discard(wire)

    async def connect(self, *, deaf: bool = False) -> Wire | None:
        """A connection; ``deaf`` = it takes in as little as can be without being read. None when none came about."""
        try:
            async with asyncio.timeout(self._timeout_s):
                sock = await self._socket(deaf=deaf)
                limit = _UNREAD_BYTES if deaf else 1 << 16
                name = self._address.host if self._tls is not None else None
                try:
                    reader, writer = await asyncio.open_connection(sock=sock, ssl=self._tls, server_hostname=name, limit=limit)
                except BaseException:
                    sock.close()
                    raise
        except (OSError, TimeoutError):
            return None
        self.made += 1
        wire = Wire(self, reader, writer)
        self._open.add(wire)
        return wire

    async def _socket(self, *, deaf: bool) -> socket.socket:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._address.host, self._address.port, type=socket.SOCK_STREAM)
        error: OSError | None = None
        for family, kind, _, _, place in found:
            sock = socket.socket(family, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            try:
                if deaf:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER_BYTES)
                await loop.sock_connect(sock, place)
            except BaseException as problem:
                sock.close()
                if not isinstance(problem, OSError):
                    raise
                error = problem
            else:
                return sock
        raise error or OSError("the host has no address")

    def close(self) -> None:
        """Close what is still open."""
        for wire in list(self._open):
            wire.close()
