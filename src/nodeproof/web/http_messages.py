"""Requests and answers, as endpoints see them.

Starlette is not used: with anyio, OpenSSL and the email package it costs the daemon's process eight megabytes, for routing by a
table and a few header fields.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Protocol

from nodeproof.web.roles import Caller, Role

__all__ = ["Endpoint", "Request", "Response", "Wire"]


class Wire(Protocol):
    """Where an answer goes. Raises ConnectionResetError once the client has gone."""

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The head."""
        ...

    async def write(self, data: bytes) -> None:
        """A part of the body; comes back when the client has taken enough."""
        ...

    async def end(self) -> None:
        """That was all."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the client has gone."""
        ...


class Request:
    """One request."""

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        headers: list[tuple[bytes, bytes]],
        client: tuple[str, int] | None,
        body: Callable[[], AsyncIterator[bytes]],
    ) -> None:
        self.method = method
        self.path = path
        """Decoded."""
        self.query = query
        """As it was sent."""
        self.headers = headers
        """Names in lower case, in their order."""
        self.client = client
        """Address and port that it came from."""
        self.body = body
        """The parts of the body as they come. Raises ConnectionResetError."""
        self.path_parameters: Mapping[str, str] = {}
        self.caller = Caller(Role.NONE, "", client[0] if client is not None else "")
        """Who sent it; the guard finds out."""

    def all(self, name: str) -> list[str]:
        """Values of all fields called ``name`` (in lower case)."""
        wanted = name.encode()
        return [value.decode("latin-1") for field, value in self.headers if field == wanted]

    def header(self, name: str) -> str:
        """The fields called ``name`` as one; empty when there is none."""
        return ", ".join(self.all(name))


class Response:
    """One answer."""

    def __init__(
        self, body: bytes = b"", status: int = 200, media_type: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.body = body
        self.headers: dict[str, str] = dict(headers or {})
        if media_type:
            self.headers["Content-Type"] = media_type
        if status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
            self.headers.setdefault("Content-Length", str(len(body)))

    async def send(self, wire: Wire, *, head_only: bool) -> None:
        """Send all of it."""
        await self.begin(wire)
        if not head_only:
            await wire.write(self.body)
        await wire.end()

    async def begin(self, wire: Wire) -> None:
        """Send the head."""
        await wire.begin(self.status, [(name.encode("latin-1"), text.encode("latin-1")) for name, text in self.headers.items()])


Endpoint = Callable[[Request], Awaitable[Response]]
