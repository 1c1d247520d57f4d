"""Vendor attributes of ATA disks, from smartctl's table or from its JSON (smartctl(8), option -A).

``  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       0``

A disk is judged by VALUE against THRESH, which its maker defined for that; the raw value is the vendor's own and often packs
several numbers into its 48 bits, so only attributes whose raw value means the same everywhere are taken as counts, within limits.
"""

import re
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["Attribute", "celsius", "count", "failing", "hours", "parse"]

_ROW = re.compile(
    r"^\s*(?P<id>\d{1,3})\s+(?P<name>\S+)\s+(?:0x[0-9a-fA-F]{4}|[POSRCK-]{6,7})\s+(?P<value>\d{1,3}|---)\s+(?P<worst>\d{1,3}|---)"
    r"\s+(?P<thresh>\d{1,3}|---)\s+(?:(?P<type>Pre-fail|Old_age)\s+\S+\s+)?(?P<failed>\S+)\s+(?P<raw>.+?)\s*$",
    re.ASCII,
)
_LEADING_NUMBER = re.compile(r"\s*(\d{1,20})", re.ASCII)
_MAX_COUNT = 0xFFFF_FFFF
_LOW_32_BITS = 0xFFFF_FFFF
_MAX_HOURS = 1_000_000
"""114 years: whatever claims more is packed."""
_TEMPERATURE_C = (-60.0, 150.0)
_FAILED_WORDS = {"FAILING_NOW": "now", "NOW": "now", "In_the_past": "past", "Past": "past"}


class Attribute(NamedTuple):
    """One row. Normalised values are None where the disk has none."""

    number: int
    name: str
    value: int | None
    worst: int | None
    thresh: int | None
    prefail: bool
    """Reaching the threshold foretells failure; otherwise it only says that the disk is worn."""
    when_failed: str
    """``now``, ``past`` or empty."""
    raw: str
    """As smartctl prints it for this model."""


def parse(raw: bytes, /) -> list[Attribute]:
    """Rows of the table in smartctl's text; other lines are passed over. Raises ParseError when there is not one row."""
    rows = [row for line in raw.decode("utf-8", "replace").splitlines() if (row := _row(line)) is not None]
    if not rows:
        raise ParseError("smartctl -A", 0, raw[:80].decode("utf-8", "replace"), "a table that begins with ID# ATTRIBUTE_NAME")
    return rows


def _row(line: str) -> Attribute | None:
    match = _ROW.match(line)
    if match is None:
        return None
    value, worst, thresh = (int(match[part]) if match[part] != "---" else None for part in ("value", "worst", "thresh"))
    return Attribute(
        int(match["id"]),
        match["name"],
        value,
        worst,
        thresh,
        match["type"] == "Pre-fail",
        _FAILED_WORDS.get(match["failed"], ""),
        match["raw"],
    )


def failing(attribute: Attribute, /) -> bool:
    """Whether the disk foretells its failure by this attribute now. A threshold of 0 never trips; 0, 254, 255 are no values."""
    value, thresh = attribute.value, attribute.thresh
    if not attribute.prefail or value is None or thresh is None:
        return False
    return thresh > 0 and 1 <= value <= 253 and value <= thresh


def count(attribute: Attribute, /) -> int | None:
    """The raw value of a counter of sectors or errors; None when it is packed or no number."""
    number = _leading(attribute.raw)
    return number if number is not None and number <= _MAX_COUNT else None


def hours(attribute: Attribute, /) -> int | None:
    """Hours of ``180 (195 54 0)`` or ``20730h+21m+55.140s``; of a packed number its low 32 bits; None if not believable."""
    number = _leading(attribute.raw)
    if number is not None and number > _MAX_HOURS:
        number &= _LOW_32_BITS
    return number if number is not None and number <= _MAX_HOURS else None


def celsius(attribute: Attribute, /) -> float | None:
    """The first number of ``38 (Min/Max 20/45)``; None when no disk can have that temperature."""
    number = _leading(attribute.raw)
    return float(number) if number is not None and _TEMPERATURE_C[0] <= number <= _TEMPERATURE_C[1] else None


def _leading(text: str) -> int | None:
    match = _LEADING_NUMBER.match(text)
    return int(match[1]) if match else None
