"""Cells of the Ascend tools: a number that can be believed, or why there is none.

The tools print ``NA`` and ``-`` where a driver or a card cannot tell, and a field full of ones or zeros where a register was not
read. Neither is ever a number here. The unit stands in the heading of a cell, never in the cell.
"""

import re
from collections.abc import Mapping

from nodeproof.errors import Absence, NoData

__all__ = ["LIMITS", "Reading", "absent", "believable", "number"]

Reading = float | NoData
"""A number in the unit of its name, or why there is none."""

LIMITS: Mapping[str, tuple[float, float]] = {
    "%": (0.0, 100.0),
    "°C": (-40.0, 150.0),
    "W": (0.0, 5_000.0),
    "V": (0.0, 20.0),
    "MHz": (0.0, 10_000.0),
    "MB": (0.0, 4_194_304.0),
    "MB/s": (0.0, 10_000_000.0),
    "RPM": (0.0, 60_000.0),
    "count": (0.0, float(2**63)),
    "": (-(2.0**31), 2.0**31),
}
"""What a reading of such a unit can be on an accelerator at all, both ends included; anything else is rejected, never bent."""

_NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d{1,9})?", re.ASCII)
_UNSUPPORTED = frozenset({"na", "n/a", "not support", "not supported", "unsupported"})
_UNTOLD = frozenset({"", "-", "--", "unknown", "null", "none"})
_BLANK = frozenset({float(2**31 - 1), float(2**31), float(2**32 - 1), float(2**63 - 1), float(2**64 - 1)})
"""Registers of 32 and 64 bits that nobody filled: all bits, or all but the sign."""


def number(text: str, unit: str, what: str) -> Reading:
    """The number in cell ``text``; ``what`` names it for people."""
    cell = text.strip()
    if _NUMBER.fullmatch(cell):
        return believable(float(cell), unit, what)
    return absent(cell, what)


def absent(cell: str, what: str) -> NoData:
    """Why ``cell`` is no number."""
    word = cell.strip().lower()
    if word in _UNSUPPORTED:
        return NoData(Absence.UNSUPPORTED, f"{what}: the driver answers {cell.strip()}, it cannot tell")
    if word in _UNTOLD:
        return NoData(Absence.UNKNOWN, f"{what}: the cell is empty")
    return NoData(Absence.READ_ERROR, f"{what}: {cell.strip()[:40]!r} is no number")


def believable(value: float, unit: str, what: str) -> Reading:
    """``value``, unless it is a register that nobody filled or cannot be."""
    low, high = LIMITS[unit]
    if value in _BLANK:
        return NoData(Absence.UNKNOWN, f"{what}: {value:.0f} stands for no value")
    if not low <= value <= high:
        return NoData(Absence.UNKNOWN, f"{what}: {value:g} {unit} cannot be".replace("  ", " "))
    return value
