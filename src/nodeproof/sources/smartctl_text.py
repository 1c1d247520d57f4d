"""``smartctl -H -A DEVICE`` in text: what versions before 7.0 can give, which know no ``--json``.

``SMART overall-health self-assessment test result: PASSED`` (ATA, NVMe), ``SMART Health Status: OK`` (SCSI), and for ATA the
table of :mod:`nodeproof.sources.smart_attributes`.
"""

import re

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources import smart_attributes
from nodeproof.sources.smart_attributes import Attribute
from nodeproof.sources.smartctl import SmartReport, exit_notes, refusal

__all__ = ["parse"]

_ATA_VERDICT = re.compile(r"self-assessment test result: (PASSED|FAILED)")
_SCSI_VERDICT = re.compile(r"SMART Health Status: (.+)")
_SCSI_FAILURES = ("FAIL", "IMPENDING", "EXCEEDED")
"""Words of the additional sense codes that foretell failure (SPC-4, ASC 0x5D)."""
_TEMPERATURE = re.compile(r"^(?:Current Drive )?Temperature:\s+(\d{1,3}) C", re.MULTILINE | re.ASCII)
_COUNTS = {5: "reallocated_sectors", 197: "pending_sectors", 198: "offline_uncorrectable", 199: "crc_errors"}


def parse(raw: bytes, exit_status: int, /) -> SmartReport:
    """Read one answer. Raises NoData when smartctl could not get at the disk, ParseError when nothing in the text is usable."""
    text = raw.decode("utf-8", "replace")
    if exit_status & 3:
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("smartctl ", "Copyright"))]
        raise refusal("; ".join(lines))
    try:
        attributes = tuple(smart_attributes.parse(raw))
    except ParseError:
        attributes = ()
    status = _status(text, exit_status)
    by_number = {row.number: row for row in attributes}
    shown = _TEMPERATURE.search(text)
    temperature = (
        float(shown[1]) if shown else next((smart_attributes.celsius(by_number[n]) for n in (194, 190) if n in by_number), None)
    )
    if not status and not attributes and temperature is None:
        raise ParseError("smartctl -H -A", 0, text[:80], "a verdict, a temperature or a table of attributes")
    no_status = None if status else NoData(Absence.UNKNOWN, "smartctl gave no verdict")
    return SmartReport(
        status, no_status, temperature, {}, {}, _counts(attributes), None, None, None, attributes, exit_notes(exit_status)
    )


def _status(text: str, exit_status: int) -> str:
    ata = _ATA_VERDICT.search(text)
    scsi = _SCSI_VERDICT.search(text)
    if exit_status & 8 or (ata and ata[1] == "FAILED"):
        return "FAILED"
    if ata:
        return "PASSED"
    if scsi and scsi[1].strip() == "OK":
        return "PASSED"
    return "FAILED" if scsi and any(word in scsi[1] for word in _SCSI_FAILURES) else ""


def _counts(attributes: tuple[Attribute, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in attributes:
        value = smart_attributes.hours(row) if row.number == 9 else smart_attributes.count(row)
        name = "power_on_time" if row.number == 9 else _COUNTS.get(row.number)
        if name and value is not None:
            found[name] = value
    if attributes:
        found["failing_attributes"] = sum(map(smart_attributes.failing, attributes))
    return found
