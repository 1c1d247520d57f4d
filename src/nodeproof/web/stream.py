"""``/api/events``: the state of the node as server-sent events.

The first ``parts`` event holds every file; later ones hold the files that changed since the last event *that this reader took*. A
slow reader therefore gets the newest content of each, and nothing piles up for it. ``daemon`` events come every second with the
ages of everything: they are the heartbeat, and tell when the daemon has died. ``stress`` and ``faults`` come first and whenever
they change, whole.

One task looks for all readers and makes each event once, however many take it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from nodeproof.errors import NodeproofError
from nodeproof.web.answers import problem
from nodeproof.web.feed import Feed, View
from nodeproof.web.http_messages import Request, Response, Wire
from nodeproof.web.requests import Refused

__all__ = ["EventStreams", "Topic"]

_MAX_READERS = 400
_LOOK_S = 0.5
_BEATS_EVERY = 2
"""Looks between two heartbeats."""
_STALLED_S = 30.0
"""A reader that takes nothing for so long is let go; a browser comes back by itself."""
_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
_encode = msgspec.json.Encoder().encode


class Topic(NamedTuple):
    """Something besides the files of the daemon that readers are told of whenever it changes."""

    name: str
    stamp: Callable[[], object]
    """Cheap: what it was made of; another value means that it must be made again."""
    make: Callable[[], Awaitable[bytes]]
    """Its JSON on one line."""


class _News(NamedTuple):
    """What there is to tell at one moment."""

    view: View
    beat: int
    topics: dict[str, tuple[int, bytes]]
    """Number and JSON of each."""


class _Taken(NamedTuple):
    """What a reader has."""

    version: int = -1
    """Of the view."""
    beat: int = -1
    topics: tuple[tuple[str, int], ...] = ()


class EventStreams:
    """All readers of one server."""

    def __init__(
        self,
        feed: Feed,
        stopping: Callable[[], bool],
        topics: Sequence[Topic] = (),
        admitted: Callable[[Request], bool] = lambda _: True,
    ) -> None:
        """``admitted``: whether who sent a request may (still) look; asked before each answer."""
        self._feed = feed
        self._admitted = admitted
        self._stopping = stopping
        self._topics = topics
        self._stamps: dict[str, object] = {}
        self._told: dict[str, tuple[int, bytes]] = {}
        self._gone: list[tuple[int, str]] = []
        self._known: frozenset[str] = frozenset()
        self._made: dict[_Taken, tuple[bytes, _Taken]] = {}
        self._news: _News | None = None
        self._changed = asyncio.Event()
        self._looker: asyncio.Task[None] | None = None
        self.readers = 0
        """How many are connected."""

    async def reader(self, request: Request) -> Response:
        """The answer to one reader."""
        if self.readers >= _MAX_READERS:
            return problem(503, "too many readers", headers={"Retry-After": "5"})
        return _Stream(self, lambda: self._admitted(request))

    async def serve(self, wire: Wire, admitted: Callable[[], bool]) -> None:
        """Feed one reader until it goes, stalls, may no longer look, or the server ends."""
        self.readers += 1
        if self._looker is None or self._looker.done():
            self._news = None
            self._looker = asyncio.get_running_loop().create_task(self._look())
        taken = _Taken()
        try:
            while not wire.gone and not self._stopping() and admitted():
                changed = self._changed
                if self._news is not None:
                    lines, taken = self._lines(self._news, taken)
                    async with asyncio.timeout(_STALLED_S):
                        await wire.write(lines)
                if self._changed is changed:
                    await changed.wait()
        finally:
            self.readers -= 1

    async def _look(self) -> None:
        """Look for everybody, as long as there is anybody."""
        looks = 0
        try:
            while self.readers and not self._stopping():
                view = self._feed.look()
                if self._news is None or view.version != self._news.view.version or looks % _BEATS_EVERY == 0:
                    self._tell(_News(view, looks, dict(self._told)))
                if await self._look_at_topics() and self._news is not None:
                    self._tell(self._news._replace(topics=dict(self._told)))
                looks += 1
                await asyncio.sleep(_LOOK_S)
        finally:
            self._looker = None
            self._wake()

    async def _look_at_topics(self) -> bool:
        """Whether any of them changed."""
        changed = False
        for topic in self._topics:
            name, stamp = topic.name, topic.stamp()
            if name not in self._stamps or stamp != self._stamps[name]:
                self._stamps[name] = stamp
                number = self._told[name][0] + 1 if name in self._told else 0
                self._told[name] = (number, await _made(topic))
                changed = True
        return changed

    def _tell(self, news: _News) -> None:
        names = frozenset(news.view.parts)
        self._gone = [(version, name) for version, name in self._gone if name not in names]
        self._gone += [(news.view.version, name) for name in sorted(self._known - names)]
        self._known = names
        self._news = news
        self._made.clear()
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _lines(self, news: _News, taken: _Taken) -> tuple[bytes, _Taken]:
        """What a reader with ``taken`` lacks; made once for all who have the same."""
        made = self._made.get(taken)
        if made is None:
            made = self._made[taken] = self._make(news, taken)
        return made

    def _make(self, news: _News, taken: _Taken) -> tuple[bytes, _Taken]:
        view = news.view
        lines = b""
        if view.version != taken.version:
            lines = _parts_event(view, taken.version, [name for version, name in self._gone if version > taken.version])
        if news.beat != taken.beat:
            lines += b"event: daemon\ndata: %b\n\n" % _encode(view.state)
        had = dict(taken.topics)
        for name, (number, content) in news.topics.items():
            if had.get(name) != number:
                lines += b"event: %b\ndata: %b\n\n" % (name.encode(), content)
        now = tuple((name, number) for name, (number, _) in news.topics.items())
        return lines, _Taken(view.version, news.beat, now)


async def _made(topic: Topic) -> bytes:
    """Its content; null where there is none to be had."""
    try:
        return await topic.make()
    except (Refused, NodeproofError, OSError):
        return b"null"


class _Stream(Response):
    """The answer that does not end."""

    def __init__(self, streams: EventStreams, admitted: Callable[[], bool]) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["Content-Length"]
        self._streams = streams
        self._admitted = admitted

    async def send(self, wire: Wire, *, head_only: bool) -> None:
        """Send what comes, as it comes."""
        await self.begin(wire)
        if not head_only:
            await self._streams.serve(wire, self._admitted)
        await wire.end()


def _parts_event(view: View, taken: int, gone: list[str]) -> bytes:
    """What has changed since version ``taken``; everything where that is below zero."""
    changed = [b'"%b":%b' % (name.encode(), part.json) for name, part in view.parts.items() if part.version > taken]
    head = {
        "full": taken < 0,
        "version": view.version,
        "gone": gone if taken >= 0 else [],
        "problems": view.problems,
    }
    return b'event: parts\nretry: 1000\ndata: {%b,"parts":{%b}}\n\n' % (_encode(head)[1:-1], b",".join(changed))
