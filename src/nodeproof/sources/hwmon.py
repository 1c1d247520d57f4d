"""Attributes below ``/sys/class/hwmon/hwmonN``: ``temp1_input`` holds ``45000`` (Documentation/hwmon/sysfs-interface.rst).

The kernel counts in thousandths and millionths; here everything is in the unit that people use.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["UNITS", "Attribute", "attribute", "parse_flag", "parse_value"]


class Attribute(NamedTuple):
    """What the name of a file says: ``temp1_crit`` is attribute ``crit`` of sensor 1 of kind ``temp``."""

    kind: str
    number: int
    item: str


UNITS = {"temp": "°C", "fan": "RPM", "in": "V", "curr": "A", "power": "W", "energy": "J"}
"""Unit by kind of sensor."""

_SCALE = {"temp": 1e-3, "fan": 1.0, "in": 1e-3, "curr": 1e-3, "power": 1e-6, "energy": 1e-6}
_DIGITS = {"temp": 3, "fan": 0, "in": 3, "curr": 3, "power": 6, "energy": 6}
_LIMITS = {
    "temp": (-100.0, 250.0),
    "fan": (0.0, 60_000.0),
    "in": (-1000.0, 1000.0),
    "curr": (-10_000.0, 10_000.0),
    "power": (0.0, 100_000.0),
    "energy": (0.0, float("inf")),
}
"""What such a sensor can measure at all. A word of all ones (65535 RPM), 0 K and the like lie outside."""


def attribute(name: str, /) -> Attribute | None:
    """The parts of a file name; None when it belongs to no kind of sensor that we read."""
    head, underscore, item = name.partition("_")
    kind = head.rstrip("0123456789")
    digits = head[len(kind) :]
    if kind not in UNITS or not underscore or not item or not digits.isascii() or not digits.isdigit() or len(digits) > 4:
        return None
    return Attribute(kind, int(digits), item)


def parse_value(raw: bytes, kind: str, path: str, /) -> float:
    """The value of a sensor or limit of ``kind`` in its unit. Raises ParseError, also for what no such sensor can measure."""
    text = raw.decode("utf-8", "replace").strip()
    try:
        value = round(int(text) * _SCALE[kind], _DIGITS[kind])
    except (ValueError, OverflowError):
        raise ParseError(path, 1, text, "an integer") from None
    low, high = _LIMITS[kind]
    if not low <= value <= high:
        raise ParseError(path, 1, text, f"a value from {low:g} to {high:g} {UNITS[kind]}")
    return value


def parse_flag(raw: bytes, /) -> bool | None:
    """``1`` or ``0`` of an alarm or fault file; None when it is neither."""
    return {b"1": True, b"0": False}.get(raw.strip())
