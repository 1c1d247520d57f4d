"""``dmidecode --type 1,16,17``: SMBIOS as text, for machines whose kernel does not show the tables (dmidecode(8)).

``Handle 0x0040, DMI type 17, 92 bytes`` begins a structure, the next line names it, and lines such as ``<tab>Size: 16 GB``
follow; lines with two tabs belong to a list. Versions differ in words: ``Configured Clock Speed: 2400 MHz`` became
``Configured Memory Speed: 2400 MT/s`` in 3.2, and sizes are in whatever unit divides them.
"""

from collections.abc import Mapping

from nodeproof.errors import ParseError
from nodeproof.sources.smbios import (
    Board,
    Chassis,
    Firmware,
    MemoryArray,
    MemoryModule,
    Processor,
    Smbios,
    System,
    meaningful,
)

__all__ = ["TYPES", "parse"]

TYPES = "0,1,2,3,4,16,17"
"""The structure types we use, as ``dmidecode --type`` takes them."""

_UNITS_BYTES = {"bytes": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}
_MAX_DIGITS = 18


def parse(raw: bytes, /) -> Smbios:
    """Read every structure of a known type. Raises ParseError when there is none (no tables, no permission)."""
    by_kind: dict[str, list[dict[str, str]]] = {}
    fields: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").split("\n"):
        if line.startswith("Handle "):
            fields = {}
            by_kind.setdefault(_kind(line), []).append(fields)
        elif line.startswith("\t") and not line.startswith("\t\t"):
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
    known = {kind: structures for kind, structures in by_kind.items() if kind in TYPES.split(",")}
    if not known:
        raise ParseError(
            "dmidecode", 0, raw[:80].decode("utf-8", "replace"), "a line such as 'Handle 0x0040, DMI type 17, 92 bytes'"
        )
    return Smbios(
        next(map(_firmware, known.get("0", ())), None),
        next(map(_system, known.get("1", ())), None),
        next(map(_board, known.get("2", ())), None),
        next(map(_chassis, known.get("3", ())), None),
        tuple(map(_processor, known.get("4", ()))),
        tuple(map(_memory_array, known.get("16", ()))),
        tuple(map(_memory_module, known.get("17", ()))),
    )


def _kind(handle_line: str) -> str:
    _, _, rest = handle_line.partition("DMI type ")
    return rest.partition(",")[0].strip()


def _text(fields: Mapping[str, str], key: str) -> str:
    return meaningful(fields.get(key, ""))


def _number(fields: Mapping[str, str], *keys: str) -> int | None:
    """The number that the first of ``keys`` begins with (``2400 MT/s``); None for ``Unknown``, 0 and absent ones."""
    for key in keys:
        words = fields.get(key, "").split()
        if words and words[0].isdecimal() and len(words[0]) <= _MAX_DIGITS:
            return int(words[0]) or None
    return None


def _bytes(text: str) -> int | None:
    words = text.split()
    if len(words) < 2 or not words[0].isdecimal() or len(words[0]) > _MAX_DIGITS or words[1] not in _UNITS_BYTES:
        return None
    return int(words[0]) * _UNITS_BYTES[words[1]]


def _firmware(fields: Mapping[str, str]) -> Firmware:
    return Firmware(_text(fields, "Vendor"), _text(fields, "Version"), _text(fields, "Release Date"))


def _system(fields: Mapping[str, str]) -> System:
    return System(
        _text(fields, "Manufacturer"), _text(fields, "Product Name"), _text(fields, "Version"), _text(fields, "Serial Number")
    )


def _board(fields: Mapping[str, str]) -> Board:
    return Board(_text(fields, "Manufacturer"), _text(fields, "Product Name"), _text(fields, "Version"))


def _chassis(fields: Mapping[str, str]) -> Chassis:
    return Chassis(_text(fields, "Manufacturer"), _text(fields, "Type"))


def _processor(fields: Mapping[str, str]) -> Processor:
    # "Populated, Enabled", "Populated, Disabled By BIOS", "Unpopulated"
    status = fields.get("Status", "")
    return Processor(
        _text(fields, "Socket Designation"),
        _text(fields, "Manufacturer"),
        _text(fields, "Version"),
        populated=status.startswith("Populated"),
        enabled=status.endswith(", Enabled"),
        core_count=_number(fields, "Core Count"),
        core_enabled=_number(fields, "Core Enabled"),
        thread_count=_number(fields, "Thread Count"),
        max_speed_mhz=_number(fields, "Max Speed"),
    )


def _memory_array(fields: Mapping[str, str]) -> MemoryArray:
    correction = fields.get("Error Correction Type", "")
    return MemoryArray(
        _text(fields, "Use"),
        correction if correction == "None" else meaningful(correction),
        _bytes(fields.get("Maximum Capacity", "")),
        _number(fields, "Number Of Devices"),
    )


def _memory_module(fields: Mapping[str, str]) -> MemoryModule:
    size = fields.get("Size", "")
    return MemoryModule(
        _text(fields, "Locator"),
        _text(fields, "Bank Locator"),
        0 if size.startswith("No Module") else _bytes(size),
        _text(fields, "Form Factor"),
        _text(fields, "Type"),
        _number(fields, "Speed"),
        _number(fields, "Configured Memory Speed", "Configured Clock Speed"),
        _text(fields, "Manufacturer"),
        _text(fields, "Part Number"),
        _number(fields, "Rank"),
        _number(fields, "Total Width"),
        _number(fields, "Data Width"),
    )
