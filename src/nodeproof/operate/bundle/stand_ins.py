"""What stands in a bundle in the place of a name, an address or a serial number: of the same form, so that parsers still read it.

The same value always has the same stand-in, within one bundle. Addresses come from ranges that nobody owns (RFC 2544, RFC 3849),
or are marked as local (MAC); who meets one again knows it for a stand-in.
"""

import ipaddress
import re
from collections.abc import Callable

__all__ = ["StandIns", "is_kept_ip", "is_kept_mac", "is_kept_uuid"]

_UUID_HEAD = "00000000-0000-4000-8000-"
_MAC_HEAD = "020000"
_TRIES = 500
_WORDS = ("SERIAL", "STANDIN", "ZZ")
_BENCHMARK = ipaddress.IPv4Network("198.18.0.0/15")
_DOCUMENTS = ipaddress.IPv6Network("2001:db8::/32")
_HEX = re.compile(rb"(?:0x)?[0-9a-fA-F]+(?:[:.-][0-9a-fA-F]+)*")


class StandIns:
    """The stand-ins of one bundle."""

    def __init__(self, real: Callable[[bytes], bool] = lambda _: False) -> None:
        """``real`` tells whether a text holds a value that must not be told: no stand-in may."""
        self._numbers: dict[str, dict[bytes, int]] = {}
        self._real = real
        self._serials: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()

    def counts(self) -> dict[str, int]:
        """Different values of each kind so far."""
        return {kind: len(values) for kind, values in sorted(self._numbers.items())}

    def number(self, kind: str, value: bytes) -> int:
        """Which value of its kind this is, from 1."""
        values = self._numbers.setdefault(kind, {})
        return values.setdefault(value.lower(), len(values) + 1)

    def of(self, kind: str, value: bytes) -> bytes:
        """The stand-in of ``value``."""
        number = self.number(kind, value)
        if kind == "serial":
            return self._serial(value.lower(), value, number)
        if kind == "token":
            return b"REDACTED"
        return f"{kind}{number}".encode()

    def _serial(self, key: bytes, value: bytes, number: int) -> bytes:
        """Nobody else's stand-in, and nobody's serial number, as far as there are others of its length."""
        if key not in self._serials:
            tries = (_serial(value, number + more, word) for word in _WORDS for more in range(_TRIES))
            free = (one for one in tries if one not in self._taken and not self._real(one.lower()))
            self._serials[key] = next(free, _serial(value, number))
            self._taken.add(self._serials[key])
        return self._serials[key]

    def mac(self, value: bytes) -> bytes:
        """Of a hardware address with colons or dashes, however long."""
        separator = value[2:3]
        groups = value.count(separator) + 1
        digits = _MAC_HEAD + format(self.number("mac", value), "x").zfill(groups * 2 - len(_MAC_HEAD))
        return separator.join(digits[place : place + 2].encode() for place in range(0, groups * 2, 2))

    def ipv4(self, value: bytes) -> bytes:
        """Of a dotted address."""
        offset = self.number("address", value) % _BENCHMARK.num_addresses
        return str(_BENCHMARK[offset]).encode()

    def ipv6(self, value: bytes) -> bytes:
        """Of an address with colons; one written in full stays in full, and a link-local one stays one."""
        number = self.number("address", value)
        network = 0xFE80 << 112 if value.lower().startswith(b"fe80") else int(_DOCUMENTS.network_address)
        address = ipaddress.IPv6Address(network + number)
        return (address.exploded if len(value) == len(address.exploded) else address.compressed).encode()

    def uuid(self, value: bytes) -> bytes:
        """Of a UUID."""
        return f"{_UUID_HEAD}{self.number('uuid', value):012d}".encode()


def _serial(value: bytes, number: int, word: str = _WORDS[0]) -> bytes:
    """As long as the value, which may stand in a table of fixed width; hexadecimal stays hexadecimal."""
    width = len(value)
    if _HEX.fullmatch(value):
        fill = "9" if value.isdigit() else "e"
        digits = str(number).rjust(width, fill)[-width:].encode()
        head = 2 if value[:2].lower() == b"0x" else 0
        return bytes(
            char if place < head or char in b":.-" else digit
            for place, (char, digit) in enumerate(zip(value, digits, strict=True))
        )
    word = word if width > len(word) + 2 else ""
    return (word + str(number).zfill(width - len(word)))[-width:].encode()


def is_kept_ip(text: str) -> bool:
    """Whether an address says nothing about whose it is, or is a stand-in. Raises ValueError for what is no address."""
    address = ipaddress.ip_address(text)
    if address.is_loopback or address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255":
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return address in _BENCHMARK or address.packed[:2] == b"\xff\xff" or int(address) < 1 << 24
    return address in _DOCUMENTS or (address.is_link_local and int(address) & (1 << 64) - 1 < 1 << 32)


def is_kept_mac(text: bytes) -> bool:
    """Whether a hardware address is nobody's, or a stand-in."""
    digits = text.replace(b":", b"").replace(b"-", b"").lower()
    return digits.startswith(b"02000000") or set(digits) in ({ord("0")}, {ord("f")})


def is_kept_uuid(text: bytes) -> bool:
    """Whether a UUID is a stand-in, or none."""
    return text.lower().startswith(_UUID_HEAD.encode()) or set(text) <= set(b"0-")
