"""``/api/faults/*``: what stands and what happened, from the directory in which the daemon keeps it."""

import os
from collections.abc import Callable, Mapping

import msgspec

from nodeproof.errors import RecordError
from nodeproof.web import wire
from nodeproof.web.answers import Body, answer
from nodeproof.web.backstage import Backstage
from nodeproof.web.feed import Feed
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.requests import query_of

__all__ = ["FaultsApi", "faults_endpoints"]

_encode = msgspec.json.Encoder().encode


class FaultsApi:
    """The endpoints of one server."""

    def __init__(self, backstage: Backstage, feed: Feed) -> None:
        self._backstage = backstage
        self._feed = feed

    async def active(self, request: Request) -> Response:
        """Faults that stand."""
        return await self._document(request, self._active(self._doubt()))

    async def history(self, request: Request) -> Response:
        """Faults that were."""
        limit = query_of(request, wire.FaultsQuery).limit
        doubt = self._doubt()

        def events() -> object:
            from nodeproof.faults.records import read_events  # noqa: PLC0415 - only where somebody asks for faults
            from nodeproof.web.faults_wire import FaultHistory  # noqa: PLC0415

            folder = self._backstage.faults_dir
            found = read_events(folder, limit=limit)[::-1] if folder else []
            return FaultHistory(available=not doubt, reason=doubt, events=found)

        return await self._document(request, events)

    async def active_json(self) -> bytes:
        """What the event stream tells."""
        make = self._active(self._doubt())
        return await self._backstage.run(lambda: _encode(make()))

    def stamp(self) -> object:
        """Changes with what :meth:`active_json` would tell."""
        folder = self._backstage.faults_dir
        try:
            about = os.stat(os.path.join(folder, "active.json")) if folder else None
        except OSError:
            about = None
        return (self._doubt(), about and (about.st_ino, about.st_size, about.st_mtime_ns))

    def _doubt(self) -> str:
        """Why what is told may not be the present; empty when it is."""
        if not self._backstage.faults_dir:
            return "this server was started without a directory of faults"
        state = self._feed.look().state
        return "" if state.fresh else f"daemon {state.verdict}: {state.reason}"

    def _active(self, doubt: str) -> Callable[[], object]:
        def make() -> object:
            from nodeproof.faults.records import read_state  # noqa: PLC0415 - only where somebody asks for faults
            from nodeproof.faults.views import active_fault  # noqa: PLC0415
            from nodeproof.web.faults_wire import ActiveFaults  # noqa: PLC0415

            problem = doubt
            try:
                state = read_state(self._backstage.faults_dir) if self._backstage.faults_dir else None
            except RecordError as error:
                state, problem = None, str(error)
            return ActiveFaults(
                available=not problem,
                reason=problem,
                timestamp=state.timestamp if state is not None else "",
                faults=[active_fault(fault) for fault in state.faults] if state is not None else [],
            )

        return make

    async def _document(self, request: Request, make: Callable[[], object]) -> Response:
        return answer(request, await self._backstage.run(lambda: Body.of(_encode(make()), "application/json")))


def faults_endpoints(api: FaultsApi) -> Mapping[str, Endpoint]:
    """By the ids of the contract."""
    return {"faultsActive": api.active, "faultsHistory": api.history}
