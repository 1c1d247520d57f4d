"""``/proc/self/cgroup``: ``0::/system.slice/nodeproof.service`` or ``4:memory:/docker/3386`` (cgroups(7)).

The line of hierarchy 0 without controllers is cgroup v2; all others are v1. Both kinds stand side by side on a hybrid host.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["CgroupPaths", "parse", "parse_limit"]

_UNLIMITED_FROM = 1 << 62
"""v1 says "no limit" with LONG_MAX rounded down to a page, 2^63 - 4096 or - 65536 (mm/page_counter.c); nobody has 4 EiB."""


class CgroupPaths(NamedTuple):
    """Where a process stands."""

    v1: dict[str, str]
    """Path by controller (``memory``, ``cpu``, ``cpuset`` ...); named hierarchies are left out."""
    v2: str | None
    """Path in the unified hierarchy; None when the kernel shows none."""


def parse(raw: bytes, /) -> CgroupPaths:
    """Read every usable line. Raises ParseError when there is none."""
    v1: dict[str, str] = {}
    v2: str | None = None
    for line in raw.decode("utf-8", "replace").split("\n"):
        fields = line.split(":", 2)
        if len(fields) != 3 or not fields[0].isdecimal() or not fields[2].startswith("/"):
            continue
        if fields[0] == "0" and not fields[1]:
            v2 = fields[2]
        else:
            v1 |= {controller: fields[2] for controller in fields[1].split(",") if controller and "=" not in controller}
    if v2 is None and not v1:
        raise ParseError(
            "/proc/self/cgroup", 0, raw[:60].decode("utf-8", "replace"), "lines such as 0::/user.slice or 4:memory:/docker/3386"
        )
    return CgroupPaths(v1, v2)


def parse_limit(raw: bytes, /, source: str) -> int | None:
    """A limit such as ``memory.max`` (``max`` or bytes) or ``memory.limit_in_bytes``; None = no limit. Raises ParseError."""
    text = raw.strip()
    if text == b"max":
        return None
    if not text.isdigit() or len(text) > 20:
        raise ParseError(source, 1, text.decode("utf-8", "replace"), "max or a number of bytes")
    limit = int(text)
    return limit if limit < _UNLIMITED_FROM else None
