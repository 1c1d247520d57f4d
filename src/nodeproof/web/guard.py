"""What stands before every route: which names this server goes by, and what browsers may do with its answers."""

from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nodeproof.host.listen import LOOPBACK_NAMES
from nodeproof.web.answers import problem

__all__ = ["SECURITY_HEADERS", "Guard", "host_name"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
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

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str]) -> None:
        self._app = app
        self._names = {name.lower().removesuffix(".") for name in (*allowed_hosts, *LOOPBACK_NAMES, "127.0.0.1", "::1")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        if scope["type"] != "http":
            return
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        modes = [value for name, value in headers if name == b"sec-fetch-mode"]
        if len(hosts) != 1 or host_name(hosts[0]) not in self._names:
            refusal = problem(421, "misdirected request", "this server does not go by that name; web.allowed_hosts may add it")
            await refusal(scope, receive, send_with_headers)
        elif sites and sites[0] in {b"cross-site", b"same-site"} and modes != [b"navigate"]:
            refusal = problem(403, "cross-site request", "answers of this server are for its own page alone")
            await refusal(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)
