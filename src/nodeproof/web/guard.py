"""What stands before every route: which names this server goes by, and what browsers may do with its answers."""

import logging
from collections.abc import Collection

from nodeproof.host import listen
from nodeproof.web.access import Access
from nodeproof.web.answers import problem
from nodeproof.web.http_messages import Endpoint, Request, Response
from nodeproof.web.roles import Role

__all__ = ["SECURITY_HEADERS", "SESSION_PATH", "Guard", "host_name"]

SESSION_PATH = "/api/session"
_API = "/api/"
_CLOSE = {"Connection": "close"}
_log = logging.getLogger(__name__)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""On every answer, whatever its status."""


def host_name(field: str) -> str:
    """The name in a Host field, without port, in lower case; empty when it is none."""
    if field.startswith("["):
        name, bracket, port = field[1:].partition("]")
        port = port.removeprefix(":")
        known = bool(bracket)
    else:
        name, _, port = field.partition(":")
        known = True
    if not known or (port and not (port.isascii() and port.isdecimal())):
        return ""
    return name.lower().removesuffix(".")


class Guard:
    """Refuses requests for other names (421: a page elsewhere had its name point here), and adds the headers.

    Answers are for this origin alone: a request that a browser made for another site is refused with 403.
    """

    def __init__(self, endpoint: Endpoint, allowed_hosts: Collection[str], access: Access) -> None:
        self._endpoint = endpoint
        self._access = access
        self._names = {name.lower().removesuffix(".") for name in (*allowed_hosts, *listen.LOOPBACK_NAMES, "127.0.0.1", "::1")}

    async def __call__(self, request: Request) -> Response:
        """The answer to one request."""
        response = self._refusal(request)
        if response is None:
            try:
                response = await self._endpoint(request)
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001 - the caller learns that it was not their fault
                _log.exception("%s %s failed", request.method, request.path)
                response = problem(500, "internal error", f"an error of nodeproof itself: {type(error).__name__}")
        response.headers.update(SECURITY_HEADERS)
        return response

    def _refusal(self, request: Request) -> Response | None:
        """Why it is not even looked at."""
        hosts, sites = request.all("host"), request.all("sec-fetch-site")
        if request.all("content-length") and request.all("transfer-encoding"):
            # Whoever stands between may read the one and we the other: what is a body to them is a request to us.
            return problem(400, "ambiguous length", "Content-Length and Transfer-Encoding exclude each other", _CLOSE)
        if len(hosts) != 1 or not self._goes_by(host_name(hosts[0])):
            return problem(421, "misdirected request", "this server does not go by that name; web.allowed_hosts may add it")
        if sites and sites[0] in {"cross-site", "same-site"} and request.all("sec-fetch-mode") != ["navigate"]:
            return problem(403, "cross-site request", "answers of this server are for its own page alone")
        return self._unknown_caller(request)

    def _goes_by(self, name: str) -> bool:
        """Whether it is one of our names. An address beyond loopback is: rebinding needs a name that its owner turns round."""
        return name in self._names or (not self._access.loopback and listen.is_ip(name))

    def _unknown_caller(self, request: Request) -> Response | None:
        """Find out who it is; the API tells nothing to nobody in particular."""
        caller = request.caller = self._access.caller(request)
        if not request.path.startswith(_API):
            return None
        if caller.wait_s:
            return problem(429, "too many wrong tokens", caller.refused, {"Retry-After": str(caller.wait_s)})
        if caller.role is Role.NONE and request.path != SESSION_PATH:
            return problem(403, "token required", caller.refused)
        return None
