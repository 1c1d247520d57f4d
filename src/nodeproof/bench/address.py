"""Where an endpoint is: its address taken apart, and what may not stand in one."""

import ipaddress
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from nodeproof.errors import UsageError

__all__ = ["Address"]

_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """An address that requests can be sent to."""

    scheme: str
    host: str
    port: int
    prefix: str
    """Path before ``/v1``; empty, or begins with a slash."""

    @classmethod
    def of(cls, base_url: str) -> "Address":
        """Read ``http[s]://host[:port][/prefix][/v1]``. Raises UsageError that says what is wrong; a secret is not repeated."""
        try:
            parts = urlsplit(base_url.strip())
            port = parts.port
        except ValueError as error:
            raise UsageError(f"the address of the endpoint cannot be read: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise UsageError(f"{_shown(parts)!r}: expected an address such as http://127.0.0.1:8000 or https://host/prefix")
        if parts.username is not None or parts.password is not None:
            raise UsageError(f"{_shown(parts)!r}: names and keys do not belong into an address; give the key by --api-key-env")
        if parts.query or parts.fragment:
            raise UsageError(f"{_shown(parts)!r}: an address ends before ? and #")
        if any(char.isspace() or not char.isprintable() for char in base_url.strip()):
            raise UsageError(f"{_shown(parts)!r}: blanks and control characters have no place in an address")
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port, prefix)

    @property
    def host_field(self) -> str:
        """As the ``Host`` field of a request says it."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine. A name that only resolves to it counts as well when it is ``localhost``."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _shown(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:120]
