"""One request and its answer, between the bytes of a connection and an endpoint."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

import h11

from nodeproof.web.http_messages import Endpoint, Request, Response

if TYPE_CHECKING:
    from nodeproof.web.connection import Connection

__all__ = ["Exchange"]

_log = logging.getLogger(__name__)
_UNREAD_BYTES = 64 * 1024
"""So much of a body waits for the endpoint; then the client does."""
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Date:
    """The Date field, made once a second."""

    at_s = -1
    value = b""

    @classmethod
    def now(cls) -> bytes:
        wall_s = int(time.time())
        if wall_s != cls.at_s:
            year, month, day, hour, minute, second, weekday, _, _ = time.gmtime(wall_s)
            text = f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year} {hour:02}:{minute:02}:{second:02} GMT"
            cls.at_s, cls.value = wall_s, text.encode()
        return cls.value


class Exchange:
    """From the head of a request to the end of its answer; the wire of that answer."""

    def __init__(self, connection: "Connection", head: h11.Request) -> None:
        raw_path, _, query = head.target.partition(b"?")
        self.request = Request(
            head.method.decode("ascii"),
            unquote(raw_path.decode("ascii", "replace")),
            query.decode("ascii", "replace"),
            list(head.headers),
            connection.client,
            self._parts,
        )
        self._connection = connection
        self._body = bytearray()
        self._body_complete = False
        self._gone = False
        self._arrived = asyncio.Event()
        self._head: list[h11.Response] = []

    async def run(self, endpoint: Endpoint) -> None:
        """Have it answered; an endpoint that fails costs this connection alone."""
        try:
            response = await self._answer(endpoint)
            await response.send(self, head_only=self.request.method == "HEAD")
        except (OSError, TimeoutError, asyncio.CancelledError):
            self._connection.drop(self)
        except Exception:  # noqa: BLE001 - whatever it does, the connection gets its end
            _log.exception("the answer to %s %s broke off", self.request.method, self.request.path)
            self._connection.drop(self)

    async def _answer(self, endpoint: Endpoint) -> Response:
        try:
            return await endpoint(self.request)
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - an error of ours must not look like a connection that broke
            _log.exception("%s %s failed", self.request.method, self.request.path)
            return Response(status=500)

    # From the connection

    def add_body(self, data: bytes) -> bool:
        """Some more of the body; whether the client should wait now."""
        self._body += data
        self._arrived.set()
        return len(self._body) > _UNREAD_BYTES

    def end_body(self) -> None:
        """The body is complete."""
        self._body_complete = True
        self._arrived.set()

    def disconnect(self) -> None:
        """The client has gone."""
        self._gone = True
        self._arrived.set()

    # For the endpoint

    @property
    def gone(self) -> bool:
        """Whether the client has gone."""
        return self._gone

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The head; goes out with the first part of the body."""
        self._head = [h11.Response(status_code=status, headers=[(b"date", _Date.now()), *headers])]

    async def write(self, data: bytes) -> None:
        """A part of the body."""
        head, self._head = self._head, []
        self._refuse_when_gone()
        await self._connection.put(head, data, end=False)

    async def end(self) -> None:
        """That was all."""
        head, self._head = self._head, []
        self._refuse_when_gone()
        await self._connection.put(head, b"", end=True)

    def _refuse_when_gone(self) -> None:
        if self._gone:
            raise ConnectionResetError("the client has gone")

    async def _parts(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        while True:
            if self._body:
                data, self._body = bytes(self._body), bytearray()
                yield data
            elif self._body_complete:
                return
            else:
                self._refuse_when_gone()
                self._connection.go_on_reading()
                self._arrived.clear()
                await self._arrived.wait()
