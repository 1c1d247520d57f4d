"""The inference server that a benchmark talks to, as the caller names it. Nothing here connects to it."""

import hmac
import ipaddress
from collections.abc import Mapping

import msgspec

from nodeproof.errors import UsageError

__all__ = ["ModelExpectation", "Secret", "TargetEndpoint"]

_HTTP_PORT = 80
_MAX_PORT = 65535


class ModelExpectation(msgspec.Struct, frozen=True):
    """Model families for which a benchmark's numbers mean something; another model only warns."""

    families: tuple[str, ...]
    """Lower-case parts of the model's name."""
    note: str
    """What is said beside the warning."""

    def accepts(self, model: str) -> bool:
        """Whether the name holds a family, not as part of a longer word or number."""
        name = f"-{model.lower()}-"
        return any(_holds(name, family) for family in self.families)


class Secret:
    """Something that is sent and never shown: no text of it names it, and it cannot be encoded."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(***)" if self._value else "Secret()"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def reveal(self) -> str:
        """The thing itself, for the one place that sends it."""
        return self._value


class TargetEndpoint(msgspec.Struct, frozen=True):
    """Where requests go, and for which model."""

    base_url: str
    model: str
    serve_overrides: dict[str, str] = {}
    """Settings that the caller started the server with; empty = not stated, never "none"."""
    key: Secret = Secret()
    """Bearer key; no record and no log holds it."""
    ca_file: str = ""
    """Certificate authorities to trust; empty = those of the system."""

    @classmethod
    def new(
        cls,
        base_url: str,
        model: str,
        serve_overrides: Mapping[str, str] | None = None,
        *,
        key: Secret | None = None,
        ca_file: str = "",
    ) -> "TargetEndpoint":
        """With the slash at the end of ``base_url`` left out."""
        return cls(base_url.rstrip("/"), model, dict(serve_overrides or {}), key or Secret(), ca_file)

    @classmethod
    def local(cls, port: int, model: str) -> "TargetEndpoint":
        """On this machine."""
        return cls.new(f"http://127.0.0.1:{port}", model)

    def override_count(self, key: str) -> int | None:
        """A setting that counts something; None when it was not stated. Raises UsageError when it is no count."""
        text = self.serve_overrides.get(key)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit()):
            raise UsageError(f"serve override {key}: {text!r} is no whole number of at least 0")
        return int(text)

    def host_port(self) -> tuple[str, int]:
        """Host and port of an ``http://`` address. Raises UsageError."""
        scheme, found, rest = self.base_url.partition("://")
        if not found or scheme.lower() != "http":
            raise UsageError(f"{self.base_url!r}: only addresses that begin with http:// have a plain port here")
        return _split(self.base_url, rest.partition("/")[0].rpartition("@")[2])

    def is_loopback(self) -> bool:
        """Whether it is this machine; an address that cannot be read is not."""
        _, found, rest = self.base_url.partition("://")
        if not found:
            return False
        try:
            host, _ = _split(self.base_url, rest.partition("/")[0].rpartition("@")[2])
            return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
        except (UsageError, ValueError):
            return False


def _split(url: str, authority: str) -> tuple[str, int]:
    if authority.startswith("["):
        host, found, tail = authority[1:].partition("]")
        port = tail.removeprefix(":") if tail else ""
        if not found or (tail and not tail.startswith(":")):
            raise UsageError(f"{url!r}: a host in brackets has no end")
    else:
        host, _, port = authority.partition(":")
    if not host:
        raise UsageError(f"{url!r} names no host")
    if not port:
        return host, _HTTP_PORT
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) <= _MAX_PORT:
        raise UsageError(f"{url!r}: {port!r} is no port")
    return host, int(port)


def _holds(name: str, family: str) -> bool:
    start = name.find(family)
    while start >= 0:
        before, after = name[start - 1 : start], name[start + len(family) : start + len(family) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        start = name.find(family, start + 1)
    return False
