"""One POST to somebody's receiver: to an address that was looked up and judged before, within a time limit, nothing followed.

``http.client`` costs the daemon ``email`` and ``ssl``, follows nothing either, and has time limits for single reads alone: a
receiver that dribbles a byte a second would never end. Of the answer no more than its status and ``Retry-After`` is wanted.
"""

import ipaddress
import socket
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

__all__ = ["Answer", "Target", "Unreachable", "in_networks", "is_network", "is_private", "post", "resolve"]

_MAX_ANSWER_BYTES = 64 * 1024
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Unreachable(Exception):  # noqa: N818 - it is an answer
    """Nothing was delivered, or nobody said so; the message says why."""


class Target(NamedTuple):
    """Where to."""

    tls: bool
    host: str
    """As the URL has it, without brackets: what the certificate must be for, and the Host field says."""
    port: int
    path: str
    """With the query."""

    @property
    def host_field(self) -> str:
        """The Host field."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.tls else 80) else f"{name}:{self.port}"


class Answer(NamedTuple):
    """What the receiver said."""

    status: int
    retry_after_s: float | None


def resolve(host: str, port: int) -> list[str]:
    """IP addresses of ``host``, in the order of the system's preference. Raises Unreachable."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{host} cannot be resolved: {error}") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


_LOCAL_V6 = (ipaddress.IPv6Network("64:ff9b:1::/48"), ipaddress.IPv6Network("::/96"))
"""NAT64 of one's own (RFC 8215), and IPv4-compatible addresses, which nobody routes in public."""


def is_private(address: str) -> bool:
    """Whether only this machine or its own networks can mean ``address``: loopback, private, link-local and the like.

    An IPv4 address within an IPv6 one (mapped, 6to4, NAT64) is judged as what it is.
    """
    found = _inner(ipaddress.ip_address(address.partition("%")[0]))
    inside = isinstance(found, ipaddress.IPv6Address) and (found.is_site_local or any(found in one for one in _LOCAL_V6))
    return not found.is_global or found.is_multicast or inside


def _inner(address: _Address) -> _Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def in_networks(address: str, networks: Collection[str]) -> bool:
    """Whether ``address`` lies in one of ``networks`` (``10.0.0.0/8``, ``127.0.0.1``)."""
    found = _inner(ipaddress.ip_address(address.partition("%")[0]))
    return any(found in ipaddress.ip_network(network, strict=False) for network in networks)


def is_network(text: str) -> bool:
    """Whether ``text`` is an address or a network."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def post(target: Target, address: str, headers: Mapping[str, str], body: bytes, limit_s: float) -> Answer:
    """Send ``body`` to ``target`` at ``address`` and hear the status. Raises Unreachable."""
    deadline = time.monotonic() + limit_s
    fields = {"Host": target.host_field, "Content-Length": str(len(body)), "Connection": "close", **headers}
    head = f"POST {target.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    try:
        with socket.create_connection((address, target.port), timeout=limit_s) as plain:
            connection = _secured(plain, target.host) if target.tls else plain
            with connection:
                connection.settimeout(_left(deadline))
                connection.sendall(head.encode("latin-1") + body)
                return _answer(connection, deadline)
    except TimeoutError:
        raise Unreachable(f"no answer within {limit_s:g} s") from None
    except (OSError, ValueError) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from None


def _secured(connection: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415 - two megabytes that only HTTPS needs

    return ssl.create_default_context().wrap_socket(connection, server_hostname=host)


def _left(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _answer(connection: socket.socket, deadline: float) -> Answer:
    """The first head that is no interim one (1xx)."""
    buffer = b""
    while True:
        head, found, rest = buffer.partition(b"\r\n\r\n")
        if found:
            answer = _parse(head)
            if answer.status >= 200:
                return answer
            buffer = rest
            continue
        if len(buffer) > _MAX_ANSWER_BYTES:
            raise ValueError("the answer has no end of its head")
        connection.settimeout(_left(deadline))
        chunk = connection.recv(4096)
        if not chunk:
            raise ValueError("the connection ended without an answer")
        buffer += chunk


def _parse(head: bytes) -> Answer:
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    status = rest[:3]
    if not version.startswith(b"HTTP/1.") or len(status) != 3 or not status.isdigit():
        raise ValueError(f"the answer is not HTTP: {first[:60]!r}")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"retry-after" and value.strip().isdigit() and len(value.strip()) < 8:
            return Answer(int(status), float(value.strip()))
    return Answer(int(status), None)
