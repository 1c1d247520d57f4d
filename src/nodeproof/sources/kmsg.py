r"""One record of ``/dev/kmsg``: ``4,2001,5550000001,-;NVRM: Xid ...`` (Documentation/ABI/testing/dev-kmsg).

Before the ``;`` stand priority (facility * 8 + level), sequence number, microseconds since boot, a flag (``c`` = more of the line
may follow, ``+`` = it goes on an earlier record) and fields that newer kernels add. Lines that begin with a space carry the
dictionary (``SUBSYSTEM=pci``). Bytes outside printable ASCII, and the backslash itself, are written ``\xNN``.
"""

import re
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["KmsgRecord", "parse"]

_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_LARGEST = 2**63
_CONTINUED = frozenset({b"c", b"+"})


class KmsgRecord(NamedTuple):
    """One record."""

    facility: int
    """0 = kernel, 1 = user, 3 = daemon (syslog(3)); the kernel lets no program write facility 0."""
    level: int
    """0 emergency ... 7 debug."""
    sequence: int
    time_us: int
    """Microseconds since boot; does not go on while the machine is suspended."""
    continued: bool
    """A fragment of a longer line."""
    text: str
    fields: dict[str, str]
    """Dictionary lines."""


def parse(raw: bytes, /) -> KmsgRecord:
    """Read one record. Raises ParseError."""
    header, semicolon, rest = raw.partition(b";")
    parts = header.split(b",")
    if not semicolon or len(parts) < 3 or not all(part.isdigit() and len(part) <= 20 for part in parts[:3]):
        raise ParseError("/dev/kmsg", 0, header[:60].decode("utf-8", "replace"), "priority,sequence,microseconds,flag;text")
    priority, sequence, time_us = map(int, parts[:3])
    if max(priority, sequence, time_us) >= _LARGEST:
        raise ParseError("/dev/kmsg", 0, header[:60].decode("utf-8", "replace"), "numbers below 2^63")
    text, newline, dictionary = rest.partition(b"\n")
    fields = _fields(dictionary) if newline and dictionary else {}
    continued = len(parts) > 3 and parts[3] in _CONTINUED
    return KmsgRecord(priority >> 3, priority & 7, sequence, time_us, continued, _decode(text), fields)


def _fields(dictionary: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in dictionary.split(b"\n"):
        key, equals, value = line.partition(b"=")
        if line.startswith(b" ") and equals:
            fields[_decode(key[1:])] = _decode(value)
    return fields


def _decode(raw: bytes) -> str:
    if b"\\" in raw:
        raw = _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), raw)
    return raw.decode("utf-8", "replace")
