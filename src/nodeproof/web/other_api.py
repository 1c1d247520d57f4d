"""Doctor, audit log, and the document of this interface."""

import time
from collections.abc import Mapping

import msgspec

from nodeproof.errors import NodeproofError
from nodeproof.web import wire
from nodeproof.web.answers import Body, answer
from nodeproof.web.backstage import Backstage
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.requests import Refused, query_of
from nodeproof.web.roles import Role

__all__ = ["OtherApi", "other_endpoints"]

_DOCTOR_KEPT_S = 30.0
_encode = msgspec.json.Encoder().encode


class OtherApi:
    """The endpoints of one server."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage
        self._openapi: Body | None = None
        self._doctor: Body | None = None
        self._doctor_at_s = 0.0

    async def doctor(self, request: Request) -> Response:
        """What cannot be read here."""
        run = self._backstage.doctor
        if run is None:
            raise Refused(503, "no doctor here", "this server was started without one; run nodeproof doctor")
        kept = self._doctor
        if kept is None or time.monotonic() - self._doctor_at_s > _DOCTOR_KEPT_S:

            def examine() -> Body:
                try:
                    raw = run()
                    return Body.of(_encode(msgspec.json.decode(raw)), "application/json")
                except (NodeproofError, msgspec.MsgspecError) as error:
                    raise Refused(503, "the doctor gave no answer", str(error)) from None

            kept = await self._backstage.run(examine)
            self._doctor, self._doctor_at_s = kept, time.monotonic()
        return answer(request, kept)

    async def audit(self, request: Request) -> Response:
        """Who did what."""
        limit = query_of(request, wire.AuditQuery).limit
        if request.caller.role is not Role.OPERATOR:
            raise Refused(403, "not allowed", "the audit log is for operators")
        entries = await self._backstage.run(lambda: self._backstage.audit().newest(limit))
        return _plain(request, entries)

    async def openapi(self, request: Request) -> Response:
        """The document."""

        def make() -> Body:
            from nodeproof.web.openapi import document  # noqa: PLC0415 - types of everything, for those who ask

            return Body.of(_encode(document()), "application/json")

        if self._openapi is None:
            self._openapi = await self._backstage.run(make)
        return answer(request, self._openapi)


def other_endpoints(backstage: Backstage) -> Mapping[str, Endpoint]:
    """By the ids of the contract."""
    api = OtherApi(backstage)
    return {
        "doctor": api.doctor,
        "audit": api.audit,
        "openapi": api.openapi,
    }


def _plain(request: Request, content: object) -> Response:
    return answer(request, Body.of(_encode(content), "application/json"))
