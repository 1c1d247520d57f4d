"""``/api/session``: who the caller is, and how a browser changes a token for a cookie."""

from collections.abc import Mapping

import msgspec

from nodeproof.web import wire
from nodeproof.web.access import COOKIE, SESSION_S, Access
from nodeproof.web.answers import problem
from nodeproof.web.gate import Gate
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.requests import body_of
from nodeproof.web.roles import Caller, Role

__all__ = ["SessionApi", "session_endpoints"]

_ACTION = "session"
_encode = msgspec.json.Encoder().encode
_NO_STORE = {"Cache-Control": "no-store"}


class SessionApi:
    """The endpoints of one server."""

    def __init__(self, access: Access, gate: Gate) -> None:
        self._access = access
        self._gate = gate

    async def who(self, request: Request) -> Response:
        """The caller."""
        return self._told(request.caller)

    async def sign_in(self, request: Request) -> Response:
        """A cookie for a token."""
        self._gate.form(request, _ACTION)
        order = await body_of(request, wire.SignIn)
        caller, value = self._access.sign_in(order.token, request.caller.peer)
        if caller.wait_s:
            return problem(429, "too many wrong tokens", caller.refused, {"Retry-After": str(caller.wait_s)})
        if caller.role is Role.NONE:
            return problem(403, "wrong token", caller.refused)
        response = self._told(caller)
        if value:
            response.headers["Set-Cookie"] = self._cookie(value, int(SESSION_S))
        return response

    async def sign_out(self, request: Request) -> Response:
        """The end of the session."""
        self._gate.form(request, _ACTION)
        self._access.sign_out(request)
        return Response(status=204, headers={**_NO_STORE, "Set-Cookie": self._cookie("", 0)})

    def _cookie(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self._access.secure else ""
        return f"{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"

    def _told(self, caller: Caller) -> Response:
        reason = caller.refused
        if caller.role is Role.VIEWER:
            reason = "the token of a viewer starts and cancels nothing"
        session = wire.Session(
            role=caller.role.value,
            name=caller.name,
            token_required=self._access.token_required,
            loopback=self._access.loopback,
            may_start=caller.role is Role.OPERATOR,
            reason=reason,
        )
        return Response(_encode(session), media_type="application/json", headers=_NO_STORE)


def session_endpoints(access: Access, gate: Gate) -> Mapping[str, Endpoint]:
    """By the ids of the contract."""
    api = SessionApi(access, gate)
    return {"session": api.who, "signIn": api.sign_in, "signOut": api.sign_out}
