"""Sensors of a BMC as ipmitool prints them, in each of its layouts (ipmitool(1); lib/ipmi_sensor.c, lib/ipmi_sdr.c).

``sensor``, ten columns: value, unit, status, then the limits from lower non-recoverable up to upper non-recoverable::

    FAN1             | 5400.000   | RPM        | ok    | 300.000   | 500.000   | 700.000   | 25300.000 | 25400.000 | 25500.000
    PS1 Status       | 0x1        | discrete   | 0x0180| na        | na        | na        | na        | na        | na

``sdr elist``, ``sdr type`` and ``sdr``, five and three columns::

    CPU1 Temp        | 01h | ok  |  3.1 | 45 degrees C
    CPU1 Temp        | 45 degrees C      | ok

``sensor get NAME``, a block a sensor, ``Sensor Reading        : 45 (+/- 0) degrees C``.

Names may hold the separator, so rows are taken apart from the right. ``na``, ``ns`` and ``nr`` are never 0: a reading that is not
there, that lies outside what such a thing can be, or that comes with status ``nr`` has ``value`` None, and ``problem`` says why.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["IpmiSensor", "parse"]

_SOURCE = "ipmitool sensor"

_UNITS = {
    "degrees c": "°C",
    "degrees f": "°F",
    "degrees k": "K",
    "rpm": "RPM",
    "watts": "W",
    "volts": "V",
    "amps": "A",
    "percent": "%",
    "%": "%",
    "unspecified": "",
    "discrete": "",
}
_LIMITS = {
    "°C": (-40.0, 200.0),
    "RPM": (0.0, 60_000.0),
    "W": (0.0, 100_000.0),
    "V": (-1_000.0, 1_000.0),
    "A": (-10_000.0, 10_000.0),
}
"""What such a reading can be on a server at all, both ends included; anything else is rejected, never bent."""
_STATUS = {"ok", "nc", "cr", "nr", "na", "ns", "us", "lnc", "lcr", "lnr", "unc", "ucr", "unr"}
_NOTHING = {"na", "n/a", "no reading", "disabled", "not readable", "not available", "nan", "-nan", ""}
_GET_THRESHOLDS = (
    "lower non-recoverable",
    "lower critical",
    "lower non-critical",
    "upper non-critical",
    "upper critical",
    "upper non-recoverable",
)
_NO_LIMITS: tuple[float | None, ...] = (None,) * 6


class IpmiSensor(NamedTuple):
    """One sensor at one moment."""

    name: str
    value: float | None
    """The reading in ``unit``; None when there is none that can be believed."""
    unit: str
    """``°C``, ``RPM``, ``W``, ``V``, ``A``, ``%``; the tool's own word for others; empty for discrete sensors."""
    status: str
    """``ok``, ``nc``, ``cr``, ``nr`` (non-critical, critical, non-recoverable), ``na``, ``ns`` (no reading), or ``0x0180``."""
    lower_nr: float | None = None
    lower_cr: float | None = None
    lower_nc: float | None = None
    upper_nc: float | None = None
    upper_cr: float | None = None
    upper_nr: float | None = None
    discrete_state: str = ""
    """What a discrete sensor says: ``0x1`` or words such as ``Presence detected``."""
    problem: str = ""
    """Why ``value`` is None; empty for discrete sensors."""
    doubted: float | None = None
    """The number that came with status ``nr``: broken and absent sensors report that way as well as burning ones."""


class _Row(NamedTuple):
    """Cells of one sensor, whatever the layout was."""

    name: str
    reading: str
    unit: str
    status: str
    limits: tuple[str, ...] = ()


def parse(raw: bytes, /) -> list[IpmiSensor]:
    """All sensors, in the tool's order; lines that are none are passed over. Raises ParseError when there is no sensor at all.

    Some makers call every processor's sensor ``Temp``: a name that stands again becomes ``Temp #2``, so that names are keys.
    """
    text = raw.decode("utf-8", "replace")
    lines = text.split("\n")
    rows = _blocks(lines) if "Sensor ID " in text else [row for row in map(_row, lines) if row is not None]
    if not rows:
        first = next((line for line in lines if line.strip()), "")
        raise ParseError(_SOURCE, 0, first, "rows such as 'FAN1 | 5400.000 | RPM | ok | ...'")
    seen: dict[str, int] = {}
    return [_sensor(row._replace(name=_unique(row.name, seen))) for row in rows]


def _unique(name: str, seen: dict[str, int]) -> str:
    """``name``, numbered when it was seen before."""
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name} #{seen[name]}"


def _row(line: str) -> _Row | None:
    """One row of a table; None when the line is none or was cut off."""
    if "|" not in line:
        return None
    ten = _cells(line, 10)
    if len(ten) == 10 and _is_status(ten[3]) and all(_is_limit(cell) for cell in ten[4:]):
        return _named(_Row(ten[0], ten[1], ten[2], ten[3].lower(), tuple(ten[4:])))
    five = _cells(line, 5)
    if len(five) == 5 and _is_number_tag(five[1]) and five[2].lower() in _STATUS:
        reading, unit = _split_reading(five[4])
        return _named(_Row(five[0], reading, unit, five[2].lower()))
    four = _cells(line, 4)
    if len(four) == 4 and _is_status(four[3]) and (_is_limit(four[1]) or four[1].startswith("0x")):
        return _named(_Row(four[0], four[1], four[2], four[3].lower()))
    three = _cells(line, 3)
    if len(three) == 3 and three[2].lower() in _STATUS:
        reading, unit = _split_reading(three[1])
        return _named(_Row(three[0], reading, unit, three[2].lower()))
    return None


def _named(row: _Row) -> _Row | None:
    return row if row.name else None


def _cells(line: str, count: int) -> list[str]:
    return [cell.strip() for cell in line.rsplit("|", count - 1)]


def _is_status(cell: str) -> bool:
    low = cell.lower()
    return low in _STATUS or (low.startswith("0x") and len(low) > 2)


def _is_limit(cell: str) -> bool:
    return cell.lower() in _NOTHING or _number(cell) is not None


def _is_number_tag(cell: str) -> bool:
    """Whether the cell is a sensor number such as ``C8h``."""
    return 2 <= len(cell) <= 3 and cell[-1] in "hH" and all(digit in "0123456789abcdefABCDEF" for digit in cell[:-1])


def _split_reading(cell: str) -> tuple[str, str]:
    """``45 degrees C`` as number and unit; words and states stay whole, as a discrete sensor's."""
    number, _, unit = cell.partition(" ")
    if _number(number) is not None and unit.strip():
        return number, unit.strip()
    if cell.lower() in _NOTHING:
        return "na", ""
    return cell, "discrete"


def _blocks(lines: list[str]) -> list[_Row]:
    """Rows of ``sensor get``: a block begins with ``Sensor ID : FAN1 (0x41)``."""
    blocks: list[dict[str, str]] = []
    for line in lines:
        key, colon, value = line.partition(":")
        key = key.strip().lower()
        if blocks and not colon and key.startswith("["):
            blocks[-1]["states"] = ", ".join(part for part in (blocks[-1].get("states"), line.strip().strip("[]")) if part)
        if not colon:
            continue
        if key == "sensor id":
            blocks.append({key: value.strip()})
        elif blocks:
            blocks[-1].setdefault(key, value.strip())
    return [row for row in map(_block_row, blocks) if row is not None]


def _block_row(block: dict[str, str]) -> _Row | None:
    name = block["sensor id"].rpartition(" (0x")[0] or block["sensor id"]
    reading, _, unit = block.get("sensor reading", "na").partition(" ")
    status = block.get("status", "na").lower()
    if unit.startswith("("):
        unit = unit.partition(")")[2]
    if any(key.startswith("sensor type (discrete") for key in block):
        reading, unit = block.get("states", reading), "discrete"
    elif _number(reading) is None:
        reading, unit = "na", ""
    if not name:
        return None
    limits = tuple(block.get(key, "na") for key in _GET_THRESHOLDS)
    return _Row(name, reading, unit.strip(), status if _is_status(status) else "na", limits)


def _sensor(row: _Row) -> IpmiSensor:
    unit_word = row.unit.lower()
    status = row.status[1:] if row.status in {"lnc", "lcr", "lnr", "unc", "ucr", "unr"} else row.status
    if unit_word == "discrete":
        state = "" if row.reading.lower() in _NOTHING else row.reading
        return IpmiSensor(row.name, None, "", status, discrete_state=state)
    unit = _UNITS.get(unit_word, row.unit)
    limits = tuple(_number(cell) for cell in row.limits) or _NO_LIMITS
    value = _number(row.reading)
    if unit in {"°F", "K"}:
        value = _celsius(value, unit)
        limits = tuple(_celsius(limit, unit) for limit in limits)
        unit = "°C"
    lower_nr, lower_cr, lower_nc, upper_nc, upper_cr, upper_nr = limits
    problem = _problem(row, value, unit, status)
    return IpmiSensor(
        row.name,
        None if problem else value,
        unit,
        status,
        lower_nr,
        lower_cr,
        lower_nc,
        upper_nc,
        upper_cr,
        upper_nr,
        problem=problem,
        doubted=value if status == "nr" and not _outside(value, unit) else None,
    )


def _problem(row: _Row, value: float | None, unit: str, status: str) -> str:
    """Why the reading is not to be believed; empty when it is."""
    if status in {"na", "ns", "us"}:
        return f"no reading (status {status})"
    if value is None:
        return "no reading" if row.reading.lower() in _NOTHING else f"{row.reading[:40]!r} is no number"
    if _outside(value, unit):
        low, high = _LIMITS[unit]
        return f"{value:g} {unit} lies outside {low:g} to {high:g}"
    if status == "nr":
        return f"{value:g} {unit} came with status nr (beyond its last limit, or the sensor is not there)".replace("  ", " ")
    return ""


def _outside(value: float | None, unit: str) -> bool:
    limits = _LIMITS.get(unit)
    return value is not None and limits is not None and not limits[0] <= value <= limits[1]


def _celsius(value: float | None, unit: str) -> float | None:
    if value is None:
        return None
    return round((value - 32.0) / 1.8 if unit == "°F" else value - 273.15, 3)


def _number(cell: str) -> float | None:
    """A finite decimal number; the tool never groups digits, so a comma is some locale's decimal point."""
    body = cell.replace(",", ".")
    if not body or body[-1] not in "0123456789." or not all(letter in "0123456789.+-eE" for letter in body):
        return None
    try:
        value = float(body)
    except ValueError:
        return None
    return value if value - value == 0 else None
