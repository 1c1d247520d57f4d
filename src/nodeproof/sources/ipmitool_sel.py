"""The BMC's own event log (ipmitool(1); lib/ipmi_sel.c).

``sel info``::

    Entries          : 23
    Percent Used     : 4%
    Overflow         : false

``sel elist``, oldest first; the number is hexadecimal. Before the BMC knew the time it writes ``Pre-Init`` instead of a date::

       1 | 11/30/2026 | 22:20:41 | Power Supply PS1 Status | Failure detected () | Asserted
       2 |  Pre-Init  |0000000015| Temperature CPU1 Temp | Upper Critical going high | Asserted | Reading 95 > Threshold 90
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["SelEntry", "SelInfo", "parse", "parse_info"]

_CRITICAL = (
    "uncorrectable",
    "non-recoverable",
    "upper critical",
    "lower critical",
    "transition to critical",
    "failure detected",
    "power supply ac lost",
    "input lost",
    "power unit failure",
    "failure status asserted",
    "redundancy lost",
    "non-redundant",
    "thermal trip",
    "ierr",
    "mcerr",
    "machine check",
    "bus fatal error",
    "fatal nmi",
    "drive fault",
    "rebuild failed",
    "in failed array",
    "frb1/bist failure",
    "frb2/hang in post failure",
    "frb3/processor startup/init failure",
    "fault status",
)
"""Words of sensor-specific and threshold events that mean something broke or is about to (IPMI 2.0, tables 42-2 and 42-3)."""
_RECORD_BYTES = 16
"""Size of one record (IPMI 2.0, 32.1)."""


class SelInfo(NamedTuple):
    """State of the log as a whole."""

    entries: int
    used_percent: float | None
    """None when the BMC tells neither its share in use nor how much is free."""
    overflow: bool | None
    """Whether events were dropped because it is full."""
    last_add: str
    """The BMC's own time of the newest entry; with ``entries`` it tells whether anything is new."""
    last_delete: str


class SelEntry(NamedTuple):
    """One event."""

    number: int
    when: str
    """Date and time as the BMC writes them (its own clock, often local time), or ``Pre-Init 0000000015``."""
    dated: bool
    """False when the BMC did not know the time."""
    sensor: str
    event: str
    asserted: bool
    """False for the end of a condition."""
    critical: bool
    """Whether it is the beginning of something that calls for a technician."""


def parse_info(raw: bytes, /) -> SelInfo:
    """Read ``sel info``. Raises ParseError without a count of entries."""
    fields: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip().lower(), value.strip())
    entries = _whole(fields.get("entries", ""))
    if entries is None:
        raise ParseError("ipmitool sel info", 0, raw.decode("utf-8", "replace").strip(), "Entries : 23")
    overflow = {"true": True, "false": False}.get(fields.get("overflow", "").lower())
    last_add, last_delete = fields.get("last add time", ""), fields.get("last del time", "")
    return SelInfo(entries, _used_percent(fields, entries), overflow, last_add, last_delete)


def _used_percent(fields: dict[str, str], entries: int) -> float | None:
    """By the BMC's own share, else by units, else by bytes."""
    said = _whole(fields.get("percent used", "").rstrip("%"))
    if said is not None and said <= 100:
        return float(said)
    total, free = _whole(fields.get("# of alloc units", "")), _whole(fields.get("# free units", ""))
    if total and free is not None and free <= total:
        return round(100.0 * (total - free) / total, 1)
    free_bytes = _whole(fields.get("free space", "").partition(" ")[0])
    # The field holds 16 bits: its largest value means "that much or more" (IPMI 2.0, 31.2).
    if free_bytes is not None and free_bytes < 0xFFFF and entries + free_bytes:
        used = entries * _RECORD_BYTES
        return round(100.0 * used / (used + free_bytes), 1)
    return None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def parse(raw: bytes, /) -> list[SelEntry]:
    """Read ``sel elist`` or ``sel list``, in the log's order; lines that are no event are passed over.

    An empty answer, or the tool's ``SEL has no entries``, is an empty log. Raises ParseError when other text holds no event.
    """
    text = raw.decode("utf-8", "replace")
    entries = [entry for entry in map(_entry, text.split("\n")) if entry is not None]
    if not entries and text.strip() and "no entries" not in text.lower():
        raise ParseError(
            "ipmitool sel elist", 0, text.strip(), "lines such as '1 | 11/30/2026 | 22:20:41 | Fan FAN1 | ... | Asserted'"
        )
    return entries


def _entry(line: str) -> SelEntry | None:
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) < 5:
        return None
    try:
        number = int(cells[0], 16)
    except ValueError:
        return None
    dated = any(mark in cells[1] for mark in "/-.") and cells[1][:1].isdigit()
    when = f"{cells[1]} {cells[2]}".strip()
    event = cells[4].removesuffix("()").strip()
    low = event.lower()
    # Without the last column (old versions leave it out) an event is one that began.
    asserted = not any(cell.lower() == "deasserted" for cell in cells[5:])
    critical = asserted and any(mark in low for mark in _CRITICAL)
    return SelEntry(number, when, dated, cells[3], event, asserted, critical)
