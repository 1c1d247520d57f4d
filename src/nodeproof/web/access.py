"""Who a caller is, and what they may do.

On loopback without a token file everybody on this machine is an operator, as with the reference. With one, each request to the
API carries a token: scripts as ``Authorization: Bearer``, browsers as a session cookie that they get for it once. The page
itself, which holds nothing of the node, is served to all: it asks for the token.
"""

import collections
import os
from typing import TYPE_CHECKING, NamedTuple

from nodeproof.clock import Clock, SystemClock
from nodeproof.host.socket_holder import user_of_connection
from nodeproof.web.http_messages import Request
from nodeproof.web.limits import RateLimit
from nodeproof.web.roles import Caller, Role, TokenHolder

if TYPE_CHECKING:
    from nodeproof.web.tokens import TokenFile

__all__ = ["COOKIE", "SESSION_S", "Access"]

COOKIE = "nodeproof_session"
SESSION_S = 12 * 3600.0
_MAX_SESSIONS = 512
_MAX_COOKIES = 4
_FAILURES = 10
_FAILURES_WINDOW_S = 60.0


class _Session(NamedTuple):
    token: bytes
    ends_s: float


class Access:
    """Knows tokens and sessions of one server."""

    def __init__(self, tokens: "TokenFile | None", *, loopback: bool, secure: bool = False, clock: Clock | None = None) -> None:
        self.loopback = loopback
        self.secure = secure
        """The connection is encrypted."""
        self._tokens = tokens
        self._clock = clock or SystemClock()
        self._sessions: collections.OrderedDict[bytes, _Session] = collections.OrderedDict()
        self._failures = RateLimit(_FAILURES, _FAILURES_WINDOW_S, self._clock)

    @property
    def token_required(self) -> bool:
        """Whether nothing is told without a token."""
        return self._tokens is not None

    def caller(self, request: Request) -> Caller:
        """Who sent it."""
        peer = request.client[0] if request.client is not None else ""
        tokens = self._tokens
        if tokens is None:
            return Caller(Role.OPERATOR, "", peer)
        given = _bearer(request)
        if given:
            return self._by_token(tokens, given, peer)
        holder = self._by_session(tokens, request)
        if holder is not None:
            return Caller(holder.role, holder.name, peer)
        return Caller(Role.NONE, "", peer, "a token is needed: send it as Authorization: Bearer, or sign in on the page")

    def sign_in(self, token: str, peer: str) -> tuple[Caller, str]:
        """The caller with this token, and the value of a new session cookie; empty when it is nobody's."""
        tokens = self._tokens
        if tokens is None:
            return Caller(Role.OPERATOR, "", peer), ""
        caller = self._by_token(tokens, token, peer)
        if caller.role is Role.NONE:
            return caller, ""
        value = os.urandom(32).hex()
        self._sessions[tokens.digest_of(value)] = _Session(tokens.digest_of(token), self._clock.now().mono_s + SESSION_S)
        while len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return caller, value

    def sign_out(self, request: Request) -> None:
        """End the session of whoever sent it."""
        if self._tokens is not None:
            for value in _cookies(request):
                self._sessions.pop(self._tokens.digest_of(value), None)

    def identity(self, request: Request) -> str:
        """Who it is, for the audit log and for counting: the name of the token, else the local user behind the connection."""
        caller = request.caller
        if caller.name:
            return caller.name
        user = user_of_connection(*request.client) if request.client is not None else ""
        return user or caller.peer or "unknown"

    def _by_token(self, tokens: "TokenFile", token: str, peer: str) -> Caller:
        wait_s = self._failures.wait_s(peer)
        if wait_s:
            return Caller(Role.NONE, "", peer, "too many wrong tokens", wait_s)
        holder = tokens.holder(tokens.digest_of(token))
        if holder is None:
            self._failures.count(peer)
            return Caller(Role.NONE, "", peer, "nobody has this token")
        return Caller(holder.role, holder.name, peer)

    def _by_session(self, tokens: "TokenFile", request: Request) -> TokenHolder | None:
        for value in _cookies(request):
            key = tokens.digest_of(value)
            session = self._sessions.get(key)
            if session is None:
                continue
            if session.ends_s > self._clock.now().mono_s:
                return tokens.holder(session.token)
            del self._sessions[key]
        return None


def _bearer(request: Request) -> str:
    """The token of an Authorization field; empty when there is none."""
    scheme, _, token = request.header("authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookies(request: Request) -> list[str]:
    """Values of our cookie. There is one, unless somebody else on this host name sets cookies, too."""
    pairs = (pair.partition("=") for field in request.all("cookie") for pair in field.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE][:_MAX_COOKIES]
