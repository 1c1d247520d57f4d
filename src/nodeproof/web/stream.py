"""``/api/events``: the state of the node as server-sent events.

The first ``parts`` event holds every file; later ones hold the files that changed since the last event *that this reader took*. A
slow reader therefore gets the newest content of each, and nothing piles up for it. ``daemon`` events come about every second with
the ages of everything: they are the heartbeat, and tell when the daemon has died.
"""

import asyncio
from collections.abc import Callable

import msgspec
from starlette.types import Receive, Scope, Send

from nodeproof.web.answers import problem
from nodeproof.web.feed import Feed, View

__all__ = ["EventStreams"]

_MAX_READERS = 256
_LOOK_S = 0.5
_BEATS_EVERY = 2
"""Looks between two heartbeats."""
_STALLED_S = 30.0
"""A reader that takes nothing for so long is let go; a browser comes back by itself."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_encode = msgspec.json.Encoder().encode


class EventStreams:
    """An ASGI application for one route."""

    def __init__(self, feed: Feed, stopping: Callable[[], bool]) -> None:
        self._feed = feed
        self._stopping = stopping
        self.readers = 0
        """How many are connected."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one reader until it goes, stalls, or the server ends."""
        if self.readers >= _MAX_READERS:
            await problem(503, "too many readers", headers={"Retry-After": "5"})(scope, receive, send)
            return
        self.readers += 1
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            await self._feed_reader(send, gone)
        except (OSError, TimeoutError):
            return
        finally:
            gone.cancel()
            self.readers -= 1

    async def _feed_reader(self, send: Send, gone: "asyncio.Future[None]") -> None:
        taken: dict[str, int] | None = None
        version, beat = -1, 0
        while not gone.done() and not self._stopping():
            view = self._feed.look()
            lines = b""
            if view.version != version or taken is None:
                lines = _parts_event(view, taken)
                taken = {name: part.version for name, part in view.parts.items()}
            if beat % _BEATS_EVERY == 0 or view.version != version:
                lines += b"event: daemon\ndata: %b\n\n" % _encode(view.state)
            version = view.version
            beat += 1
            if lines:
                async with asyncio.timeout(_STALLED_S):
                    await send({"type": "http.response.body", "body": lines, "more_body": True})
            await asyncio.wait([gone], timeout=_LOOK_S)
        await send({"type": "http.response.body", "body": b""})


def _parts_event(view: View, taken: dict[str, int] | None) -> bytes:
    """What has changed since ``taken``; everything where that is None."""
    known = taken or {}
    changed = [b'"%b":%b' % (name.encode(), part.json) for name, part in view.parts.items() if known.get(name) != part.version]
    head = {
        "full": taken is None,
        "version": view.version,
        "gone": sorted(known.keys() - view.parts.keys()),
        "problems": view.problems,
    }
    return b'event: parts\nretry: 1000\ndata: {%b,"parts":{%b}}\n\n' % (_encode(head)[1:-1], b",".join(changed))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
