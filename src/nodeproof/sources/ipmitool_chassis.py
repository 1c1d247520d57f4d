"""State of the chassis and its power supplies (ipmitool(1); IPMI 2.0, 28.2 Get Chassis Status and table 42-3, type 08h).

``chassis status``::

    System Power         : on
    Main Power Fault     : false
    Chassis Intrusion    : inactive
    Cooling/Fan Fault    : false

``sdr type "Power Supply"``::

    PS1 Status       | C8h | ok  | 10.1 | Presence detected, Failure detected
    PS Redundancy    | 77h | ok  |  7.1 | Fully Redundant

The column ``ok`` only says that the sensor answered: a failed supply has it too. The state is in the words.
"""

from enum import IntEnum
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["ChassisStatus", "PowerSupply", "PsuState", "Redundancy", "parse", "parse_power_supplies"]

_TRUTH = {
    "true": True,
    "active": True,
    "on": True,
    "false": False,
    "inactive": False,
    "off": False,
}
_FAULTS = (
    ("power overload", "power_overload"),
    ("main power fault", "main_power"),
    ("power control fault", "power_control"),
    ("drive fault", "drive"),
    ("cooling/fan fault", "cooling"),
)


class ChassisStatus(NamedTuple):
    """What ``chassis status`` tells."""

    power_on: bool | None
    intrusion: bool | None
    """Whether the cover is, or was, open; None when this chassis has no such switch or does not say."""
    faults: dict[str, bool]
    """By fault (``power_overload main_power power_control drive cooling``), only those the BMC names."""


class PsuState(IntEnum):
    """How a power supply is, the graver the greater."""

    OK = 0
    WARNING = 1
    FAILED = 2


class Redundancy(IntEnum):
    """How much a set of power supplies can lose."""

    FULL = 0
    DEGRADED = 1
    LOST = 2


class PowerSupply(NamedTuple):
    """One row of ``sdr type "Power Supply"``."""

    name: str
    state: PsuState | None
    """None: the words do not prove that it is there and well."""
    redundancy: Redundancy | None
    """Of a sensor that watches the set; None when its words tell none."""
    of_set: bool
    """Whether it watches the set instead of one supply."""
    absent: bool
    """The BMC says that the slot is empty."""
    text: str
    """The BMC's own words, for the reason."""


_FAILED = (
    "failure detected",
    "ac lost",
    "dc lost",
    "input lost",
    "out-of-range",
    "out of range",
    "power supply inactive",
    "non-recoverable",
    "transition to critical",
)
_WARNING = ("predictive failure", "config error", "non-critical")
_PRESENT = ("presence detected", "device present", "device inserted/device present", "present")
_ABSENT = ("device absent", "device removed/device absent", "absent", "not present")
_WELL = ("transition to ok", "ok")
_REDUNDANCY = (
    ("fully redundant", Redundancy.FULL),
    ("redundancy lost", Redundancy.LOST),
    ("non-redundant", Redundancy.LOST),
    ("non redundant", Redundancy.LOST),
    ("redundancy degraded", Redundancy.DEGRADED),
)


def parse(raw: bytes, /) -> ChassisStatus:
    """Read ``chassis status``. Raises ParseError when no known line is there."""
    fields: dict[str, bool | None] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip().lower(), _TRUTH.get(value.strip().lower()))
    faults = {name: fault for key, name in _FAULTS if (fault := fields.get(key)) is not None}
    status = ChassisStatus(fields.get("system power"), fields.get("chassis intrusion"), faults)
    if status.power_on is None and status.intrusion is None and not faults:
        raise ParseError("ipmitool chassis status", 0, raw.decode("utf-8", "replace").strip(), "System Power : on")
    return status


def parse_power_supplies(raw: bytes, /) -> list[PowerSupply]:
    """Read ``sdr type "Power Supply"``; numbers such as the power drawn are left to the sensor table.

    An empty answer means that the BMC watches none. Raises ParseError when there is text without a single row.
    """
    text = raw.decode("utf-8", "replace")
    rows = [cells for cells in (_cells(line) for line in text.split("\n")) if cells is not None]
    if not rows and text.strip():
        raise ParseError("ipmitool sdr type", 0, text.strip(), "rows such as 'PS1 Status | C8h | ok | 10.1 | Presence detected'")
    return [_supply(name, status, words) for name, status, words in rows if not _is_measurement(words)]


def _cells(line: str) -> tuple[str, str, str] | None:
    """Name, status and words; names may hold the separator, so from the right."""
    cells = [cell.strip() for cell in line.rsplit("|", 4)]
    if len(cells) != 5 or not cells[0] or cells[1][-1:].lower() != "h":
        return None
    return cells[0], cells[2].lower(), cells[4]


def _is_measurement(words: str) -> bool:
    number, _, unit = words.partition(" ")
    return bool(unit) and number.replace(".", "", 1).replace(",", "", 1).isdigit()


def _supply(name: str, status: str, words: str) -> PowerSupply:
    low = words.lower()
    redundancy = next((state for mark, state in _REDUNDANCY if mark in low), None)
    said = [part.strip() for part in low.split(",")]
    absent = any(part in _ABSENT for part in said)
    state: PsuState | None = None
    of_set = redundancy is not None or "redundan" in name.lower()
    if not of_set and status not in {"ns", "na"}:
        state = _state(low, said)
    return PowerSupply(name, state, redundancy, of_set, absent, words or f"nothing but status {status}")


def _state(low: str, said: list[str]) -> PsuState | None:
    """State by the words. Only "presence detected" or an explicit OK proves that a supply is there and well."""
    if any(mark in low.replace("predictive failure", "") for mark in _FAILED):
        return PsuState.FAILED
    if any(mark in low for mark in _WARNING):
        return PsuState.WARNING
    if any(part in _PRESENT or part in _WELL for part in said):
        return PsuState.OK
    return None
