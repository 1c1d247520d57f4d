"""``smartctl --json=c -x DEVICE``: one JSON object for ATA, SCSI and NVMe alike (smartctl(8), json_format_version 1.0).

``{"smartctl":{"version":[7,3],"exit_status":4},"device":{"type":"sat","protocol":"ATA"},"smart_status":{"passed":true}}``

The exit status is a mask of eight bits (smartctl(8), EXIT STATUS): only the first two mean that nothing was read, and only bit 3
is a verdict on the disk. It stands in the JSON as well, so that it need not be believed from the process alone.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources import smart_attributes
from nodeproof.sources.smart_attributes import Attribute

__all__ = ["EXIT_BITS", "Asleep", "CriticalWarning", "SmartReport", "exit_notes", "parse", "refusal"]

EXIT_BITS = (
    "command_line",
    "open_failed",
    "command_failed",
    "disk_failing",
    "prefail_attribute",
    "attribute_at_threshold_once",
    "error_log",
    "selftest_log",
)
"""Meaning of bits 0 to 7 of the exit status."""

_COMMAND_LINE, _OPEN_FAILED, _COMMAND_FAILED, _DISK_FAILING = 1, 2, 4, 8
_SENSORS_DISAGREE_K = 25.0
_TEMPERATURE_C = (-60.0, 150.0)
_LIMIT_C = (1.0, 150.0)
"""Believable thresholds: 0 K and 0xFFFF K, and 0, mean that none is set (NVMe Base Specification, Composite Temperature)."""
_MAX_HOURS = 1_000_000
_RIGHTS_REMEDY = "run as root, or give the service the capabilities CAP_SYS_RAWIO and CAP_SYS_ADMIN"


class Asleep(NoData):
    """The disk is in standby, and was left there."""

    def __init__(self) -> None:
        super().__init__(Absence.UNKNOWN, "the disk sleeps (standby) and was not woken")


class CriticalWarning:
    """Bits of the NVMe critical warning (NVMe Base Specification, SMART / Health Information log)."""

    TEMPERATURE = 2
    ALL = 0xFF


class SmartReport(NamedTuple):
    """What one disk said of itself; None = it does not say."""

    status: str
    """``PASSED``, ``FAILED``, or ``WARNING`` (too hot or too cold, and nothing else); empty = see ``no_status``."""
    no_status: NoData | None
    temperature_c: float | None
    limits_c: Mapping[str, float]
    """``warning`` and ``critical``, as far as they are set."""
    sensors_c: Mapping[int, float]
    """Further sensors of an NVMe disk, by their number from 1."""
    counts: Mapping[str, float]
    """By the name of the metric without ``smart_``."""
    spare_percent: float | None
    spare_threshold_percent: float | None
    critical_warning: int | None
    attributes: tuple[Attribute, ...]
    notes: tuple[str, ...]
    """Remarks that are no verdict, as words of ``EXIT_BITS`` and ``sensors_disagree``."""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    interface: str = ""
    """``SATA``, ``SAS``, ``PCIe``, ``USB`` or another protocol's name."""


def parse(raw: bytes, /) -> SmartReport:
    """Read one answer. Raises NoData when smartctl could not get at the disk, ParseError when the text is no JSON of smartctl."""
    document = _document(raw)
    exit_status = _integer(document, "smartctl", "exit_status") or 0
    messages = _messages(document)
    if exit_status & (_COMMAND_LINE | _OPEN_FAILED) or _asleep(messages):
        raise refusal(messages)
    nvme = _object(document, "nvme_smart_health_information_log")
    attributes = _attributes(document)
    warning = _whole(nvme.get("critical_warning"), CriticalWarning.ALL)
    sensors = {
        number: value
        for number, entry in enumerate(_list(nvme, "temperature_sensors"), start=1)
        if (value := _temperature(entry)) is not None
    }
    temperature = _drive_temperature(document, nvme, attributes)
    status, no_status = _status(document, exit_status, warning, messages)
    notes = exit_notes(exit_status)
    if _spread([*sensors.values(), *([] if temperature is None else [temperature])]) >= _SENSORS_DISAGREE_K:
        notes = (*notes, "sensors_disagree")
    return SmartReport(
        status,
        no_status,
        temperature,
        _limits(document),
        sensors,
        _counts(document, nvme, attributes),
        _percent(nvme.get("available_spare")),
        _percent(nvme.get("available_spare_threshold")),
        warning,
        attributes,
        notes,
        _text(document, "model_name") or _text(document, "scsi_model_name"),
        _text(document, "serial_number"),
        _text(document, "firmware_version") or _text(document, "scsi_revision"),
        _interface(document),
    )


def exit_notes(exit_status: int, /) -> tuple[str, ...]:
    """The bits above the first two that are set, by name, bit 3 excepted: that one is the verdict."""
    return tuple(
        word for bit, word in enumerate(EXIT_BITS) if exit_status >> bit & 1 and bit >= 2 and (1 << bit) != _DISK_FAILING
    )


def _asleep(messages: str) -> bool:
    return "Device is in STANDBY" in messages or "Device is in SLEEP" in messages


def refusal(messages: str, /) -> NoData:
    """Why smartctl got nothing out of a device, from what it says; none of it is a verdict on the disk."""
    said = messages[:200]
    if _asleep(messages):
        return Asleep()
    if "Permission denied" in messages or "Operation not permitted" in messages:
        return NoData(Absence.NO_PERMISSION, "smartctl may not open the device", remedy=_RIGHTS_REMEDY)
    if "megaraid" in messages.lower():
        return NoData(
            Absence.UNKNOWN,
            f"smartctl: {said}",
            remedy="behind a RAID controller: `smartctl --scan-open` lists its disks, `smartctl -d megaraid,N` reads them",
        )
    if "USB bridge" in messages:
        return NoData(
            Absence.UNSUPPORTED, f"smartctl: {said}", remedy="try `smartctl -d sat` by hand; not every bridge passes SMART"
        )
    if "Unable to detect device type" in messages:
        return NoData(Absence.UNSUPPORTED, f"smartctl: {said}")
    return NoData(Absence.UNKNOWN, f"smartctl could not open the device: {said or 'it does not say why'}")


def _document(raw: bytes) -> dict[str, object]:
    begin, end = raw.find(b"{"), raw.rfind(b"}")  # a library may warn on standard output before the object
    try:
        document = msgspec.json.decode(raw[begin : end + 1]) if begin >= 0 else None
    except (msgspec.DecodeError, RecursionError):
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("smartctl"), dict):
        raise ParseError("smartctl --json", 0, raw[:80].decode("utf-8", "replace"), "one JSON object with the key smartctl")
    return document


def _messages(document: dict[str, object]) -> str:
    entries = _list(_object(document, "smartctl"), "messages")
    return "; ".join(str(entry.get("string", "")) for entry in entries if isinstance(entry, dict))


def _status(document: dict[str, object], exit_status: int, warning: int | None, messages: str) -> tuple[str, NoData | None]:
    passed = _object(document, "smart_status").get("passed")
    if warning == CriticalWarning.TEMPERATURE:
        # smartctl calls an NVMe disk FAILED for any warning; one that is merely too hot has not failed.
        return "WARNING", None
    if exit_status & _DISK_FAILING or passed is False:
        return "FAILED", None
    if passed is True:
        return "PASSED", None
    support = _object(document, "smart_support")
    if support.get("available") is False:
        return "", NoData(Absence.UNSUPPORTED, "the device has no SMART")
    if support.get("enabled") is False:
        return "", NoData(Absence.UNSUPPORTED, "SMART is switched off in the disk", remedy="smartctl -s on DEVICE")
    return "", NoData(Absence.UNKNOWN, f"smartctl gave no verdict{': ' + messages[:200] if messages else ''}")


def _attributes(document: dict[str, object]) -> tuple[Attribute, ...]:
    rows: list[Attribute] = []
    for entry in _list(_object(document, "ata_smart_attributes"), "table"):
        if not isinstance(entry, dict):
            continue
        number = _whole(entry.get("id"), 255)
        if number is None:
            continue
        raw = _object(entry, "raw")
        rows.append(
            Attribute(
                number,
                str(entry.get("name", "")),
                _whole(entry.get("value"), 255),
                _whole(entry.get("worst"), 255),
                _whole(entry.get("thresh"), 255),
                _object(entry, "flags").get("prefailure") is True,
                str(entry.get("when_failed", "")),
                str(raw.get("string", raw.get("value", ""))),
            )
        )
    return tuple(rows)


def _drive_temperature(document: dict[str, object], nvme: dict[str, object], attributes: tuple[Attribute, ...]) -> float | None:
    for candidate in (_object(document, "temperature").get("current"), nvme.get("temperature")):
        value = _temperature(candidate)
        if value is not None:
            return value
    by_number = {row.number: row for row in attributes}
    for number in (194, 190):
        if number in by_number:
            return smart_attributes.celsius(by_number[number])
    return None


def _limits(document: dict[str, object]) -> dict[str, float]:
    drive = _object(document, "temperature")
    composite = _object(document, "nvme_composite_temperature_threshold")
    limits: dict[str, float] = {}
    for name, candidates in (
        ("warning", (composite.get("warning"), drive.get("op_limit_max"))),
        ("critical", (composite.get("critical"), drive.get("drive_trip"), drive.get("limit_max"))),
    ):
        for candidate in candidates:
            value = _number(candidate)
            if name not in limits and value is not None and _LIMIT_C[0] <= value <= _LIMIT_C[1]:
                limits[name] = value
    return limits


_ATA_COUNTS = {
    5: "reallocated_sectors",
    197: "pending_sectors",
    198: "offline_uncorrectable",
    199: "crc_errors",
}
_NVME_COUNTS = {
    "media_errors": "media_errors",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "num_err_log_entries": "error_log_entries",
}
_MAX_COUNT = float(1 << 63)


def _counts(document: dict[str, object], nvme: dict[str, object], attributes: tuple[Attribute, ...]) -> dict[str, float]:
    found: dict[str, float | None] = {}
    for row in attributes:
        if row.number in _ATA_COUNTS:
            found[_ATA_COUNTS[row.number]] = smart_attributes.count(row)
    if attributes:
        found["failing_attributes"] = sum(map(smart_attributes.failing, attributes))
    for key, name in _NVME_COUNTS.items():
        found[name] = _count(nvme.get(key))
    if "scsi_grown_defect_list" in document:
        found["reallocated_sectors"] = _count(document["scsi_grown_defect_list"])
    if "scsi_error_counter_log" in document:
        log = _object(document, "scsi_error_counter_log")
        errors = [_count(_object(log, kind).get("total_uncorrected_errors")) for kind in ("read", "write", "verify")]
        found["media_errors"] = sum(known) if (known := [value for value in errors if value is not None]) else None
    if "ata_smart_error_log" in document:
        log = _object(document, "ata_smart_error_log")
        found["error_log_entries"] = next(
            (value for kind in ("extended", "summary") if (value := _count(_object(log, kind).get("count"))) is not None), None
        )
    found["power_on_time"] = _hours(document, attributes)
    found["percentage_used"] = _used(document, nvme)
    return {name: value for name, value in found.items() if value is not None}


def _hours(document: dict[str, object], attributes: tuple[Attribute, ...]) -> float | None:
    stated = _count(_object(document, "power_on_time").get("hours"))
    if stated is not None and stated <= _MAX_HOURS:
        return stated
    return next((hours for row in attributes if row.number == 9 and (hours := smart_attributes.hours(row)) is not None), None)


def _used(document: dict[str, object], nvme: dict[str, object]) -> float | None:
    """Share of the rated life that is used up; may pass 100 (255 = more than can be told)."""
    for candidate in (
        nvme.get("percentage_used"),
        _object(document, "endurance_used").get("current_percent"),
        document.get("scsi_percentage_used_endurance_indicator"),
    ):
        value = _whole(candidate, 255)
        if value is not None:
            return float(value)
    return None


def _interface(document: dict[str, object]) -> str:
    device = _object(document, "device")
    protocol = str(device.get("protocol", ""))
    if str(device.get("type", "")).startswith("usb") or "usb" in str(device.get("info_name", "")).lower():
        return "USB"
    if protocol == "NVMe":
        return "PCIe"
    if "sata_version" in document or protocol == "ATA":
        return "SATA"
    transport = _text(_object(document, "scsi_transport_protocol"), "name")
    return "SAS" if transport.startswith("SAS") else transport or protocol


def _spread(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0


def _temperature(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and _TEMPERATURE_C[0] <= number <= _TEMPERATURE_C[1] else None


def _percent(value: object) -> float | None:
    number = _whole(value, 100)
    return None if number is None else float(number)


def _count(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number < _MAX_COUNT else None


def _whole(value: object, most: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _integer(document: Mapping[str, object], outer: str, key: str) -> int | None:
    return _whole(_object(document, outer).get(key), 255)


def _object(document: Mapping[str, object], key: str) -> dict[str, object]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _list(document: Mapping[str, object], key: str) -> list[object]:
    value = document.get(key)
    return value if isinstance(value, list) else []


def _text(document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    return value.strip() if isinstance(value, str) else ""
