"""What stands before every change (stress.md 6.1): place, role, media type, action header, origin, rate."""

import sys

from nodeproof.host import listen
from nodeproof.web.access import Access
from nodeproof.web.http_messages import Request
from nodeproof.web.limits import RateLimit
from nodeproof.web.requests import Refused, media_type
from nodeproof.web.roles import Role

__all__ = ["ACTION_HEADERS", "Gate", "same_origin"]

ACTION_HEADERS = ("x-nodeproof-action", "x-catmonitor-action")
_STARTS = 5
_STARTS_WINDOW_S = 60.0


class Gate:
    """Of one server."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._starts = RateLimit(_STARTS, _STARTS_WINDOW_S)

    def place(self, request: Request) -> None:
        """Whether this system runs jobs, and this caller may ask from where it is. Raises Refused."""
        if not sys.platform.startswith("linux"):
            raise Refused(501, "not supported", "stress jobs run on Linux only")
        caller = request.caller
        if not self.access.token_required and not listen.is_loopback(caller.peer):
            raise Refused(403, "not allowed", "without a token only this machine itself may change something")
        if caller.role is not Role.OPERATOR:
            raise Refused(403, "not allowed", "the token of a viewer starts and cancels nothing; an operator's does")

    def form(self, request: Request, action: str) -> None:
        """Whether it was sent on purpose, and by our own page when by a browser. Raises Refused."""
        if request.method == "POST" and media_type(request) != "application/json":
            raise Refused(415, "unsupported media type", "send Content-Type: application/json")
        told = [text for name in ACTION_HEADERS for text in request.all(name)]
        if not told or any(text != action for text in told):
            raise Refused(403, "action header missing", f"send X-Nodeproof-Action: {action}")
        origins, hosts = request.all("origin"), request.all("host")
        if origins and (len(origins) != 1 or not same_origin(origins[0], hosts[0], secure=self.access.secure)):
            raise Refused(403, "foreign origin", "a page of another origin may change nothing here")

    def rate(self, who: str) -> None:
        """Whether ``who`` may start yet another job. Raises Refused."""
        wait_s = self._starts.wait_s(who)
        if wait_s:
            text = f"{_STARTS} starts a minute are enough; the next is possible in {wait_s} s"
            raise Refused(429, "too many starts", text, {"Retry-After": str(wait_s)})
        self._starts.count(who)


def same_origin(origin: str, host: str, *, secure: bool) -> bool:
    """Whether ``origin`` is that of a page which was got from ``host`` (both as header fields)."""
    scheme, colon, rest = origin.partition("://")
    if not colon or scheme != ("https" if secure else "http"):
        return False
    port = "443" if secure else "80"
    return _with_port(rest.lower(), port) == _with_port(host.lower(), port)


def _with_port(host: str, port: str) -> str:
    name, colon, told = host.rpartition(":")
    if colon and told.isascii() and told.isdecimal() and (not name.startswith("[") or name.endswith("]")):
        return f"{name.removesuffix('.')}:{int(told)}"
    return f"{host.removesuffix('.')}:{port}"
