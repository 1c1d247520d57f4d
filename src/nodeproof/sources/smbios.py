"""SMBIOS tables, ``/sys/firmware/dmi/tables/DMI``: what the firmware says this machine is made of (DMTF DSP0134 3.7).

The file is a row of structures: type, length of the formatted part (with these four bytes), handle of two bytes, the rest of the
formatted part, then its strings, each ended by a zero byte, and one more zero byte (two when there are none). Numbers are
little-endian. ``11 28 40 00 ...`` begins a memory device (type 17) of 40 bytes, handle 0x0040. Type 127 ends the row. A field is
there when the formatted part is long enough: that is how versions of the standard differ.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = [
    "Board",
    "Chassis",
    "Firmware",
    "MemoryArray",
    "MemoryModule",
    "Processor",
    "Smbios",
    "System",
    "meaningful",
    "parse",
]

_KIB = 1024
_MIB = 1024 * 1024
_END_OF_TABLE = 127
_FILLERS = {
    "",
    "0x0000",
    "<bad index>",
    "<out of spec>",
    "default string",
    "empty",
    "n/a",
    "na",
    "no dimm",
    "none",
    "not available",
    "not provided",
    "not specified",
    "null",
    "o.e.m.",
    "other",
    "system manufacturer",
    "system product name",
    "system serial number",
    "system version",
    "to be filled by o.e.m.",
    "undefined",
    "unknown",
    "unspecified",
}
"""What firmware, or dmidecode in its place, says when nobody filled a field in."""


class Firmware(NamedTuple):
    """BIOS or UEFI (type 0). Unknown strings are empty, here and below."""

    vendor: str
    version: str
    release_date: str
    """As the maker wrote it, mostly ``mm/dd/yyyy``."""


class System(NamedTuple):
    """The machine (type 1)."""

    manufacturer: str
    product_name: str
    version: str
    serial_number: str


class Board(NamedTuple):
    """The main board (type 2)."""

    manufacturer: str
    product_name: str
    version: str


class Chassis(NamedTuple):
    """The housing (type 3)."""

    manufacturer: str
    kind: str
    """``Rack Mount Chassis``, ``Blade`` ..."""


class Processor(NamedTuple):
    """One processor socket (type 4)."""

    socket: str
    manufacturer: str
    version: str
    """Model, as the maker writes it."""
    populated: bool
    enabled: bool
    """Running, and not disabled by a user, by firmware or by an error at power-on."""
    core_count: int | None
    core_enabled: int | None
    thread_count: int | None
    max_speed_mhz: int | None


class MemoryArray(NamedTuple):
    """The slots behind one or more controllers (type 16)."""

    use: str
    """``System Memory``, ``Video Memory``, ``Flash Memory`` ..."""
    error_correction: str
    """``None``, ``Single-bit ECC``, ``Multi-bit ECC`` ...; empty when unknown."""
    max_capacity_bytes: int | None
    slots: int | None


class MemoryModule(NamedTuple):
    """One memory slot and what is in it (type 17)."""

    locator: str
    """What is printed beside the slot: ``DIMM_A1``."""
    bank: str
    size_bytes: int | None
    """0 = empty slot; None = the firmware does not know."""
    form_factor: str
    memory_type: str
    """``DDR4``, ``DDR5``, ``HBM3``; empty when unknown."""
    rated_speed_mts: int | None
    """What the module can do, in megatransfers a second."""
    configured_speed_mts: int | None
    """What it was set to."""
    manufacturer: str
    part_number: str
    rank: int | None
    total_width_bits: int | None
    data_width_bits: int | None


class Smbios(NamedTuple):
    """Everything we use of the tables, in their order; None or empty = the firmware does not say."""

    firmware: Firmware | None
    system: System | None
    board: Board | None
    chassis: Chassis | None
    processors: tuple[Processor, ...]
    memory_arrays: tuple[MemoryArray, ...]
    memory_modules: tuple[MemoryModule, ...]


def meaningful(text: str) -> str:
    """``text`` on one line without white space around it; empty when it is a filler such as ``To Be Filled By O.E.M.``."""
    tidy = " ".join(text.split())
    return "" if tidy.casefold() in _FILLERS else tidy


class _Structure(NamedTuple):
    """One structure of the row."""

    kind: int
    data: bytes
    """The formatted part with its header: offsets are those of the standard."""
    strings: tuple[str, ...]

    def number(self, offset: int, size: int) -> int | None:
        """The unsigned number at ``offset``; None when this version of the structure has no such field."""
        if offset + size > len(self.data):
            return None
        return int.from_bytes(self.data[offset : offset + size], "little")

    def text(self, offset: int) -> str:
        """The string that the byte at ``offset`` counts out, from 1; 0 = none."""
        index = self.number(offset, 1)
        return meaningful(self.strings[index - 1]) if index and index <= len(self.strings) else ""


def parse(raw: bytes, /) -> Smbios:
    """Read the whole row, or its sound beginning when it was cut off. Raises ParseError when no structure is whole."""
    by_kind: dict[int, list[_Structure]] = {}
    for structure in _structures(raw):
        by_kind.setdefault(structure.kind, []).append(structure)
    if not by_kind:
        raise ParseError("SMBIOS", 0, raw[:16].hex(" "), "a row of structures (DSP0134)")
    return Smbios(
        next(map(_firmware, by_kind.get(0, ())), None),
        next(map(_system, by_kind.get(1, ())), None),
        next(map(_board, by_kind.get(2, ())), None),
        next(map(_chassis, by_kind.get(3, ())), None),
        tuple(map(_processor, by_kind.get(4, ()))),
        tuple(map(_memory_array, by_kind.get(16, ()))),
        tuple(map(_memory_module, by_kind.get(17, ()))),
    )


def _structures(raw: bytes) -> Iterator[_Structure]:
    at = 0
    while at + 4 <= len(raw):
        kind, length = raw[at], raw[at + 1]
        end = raw.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            return  # cut off or damaged: without this length the next structure cannot be found
        if kind == _END_OF_TABLE:
            return
        strings = raw[at + length : end].split(b"\0") if end > at + length else []
        yield _Structure(kind, raw[at : at + length], tuple(text.decode("utf-8", "replace") for text in strings))
        at = end + 2


def _firmware(item: _Structure) -> Firmware:
    return Firmware(item.text(0x04), item.text(0x05), item.text(0x08))


def _system(item: _Structure) -> System:
    return System(item.text(0x04), item.text(0x05), item.text(0x06), item.text(0x07))


def _board(item: _Structure) -> Board:
    return Board(item.text(0x04), item.text(0x05), item.text(0x06))


def _names(joined: str) -> tuple[str, ...]:
    return tuple(joined.split(", "))


_CHASSIS_KINDS = _names(
    "Other, Unknown, Desktop, Low Profile Desktop, Pizza Box, Mini Tower, Tower, Portable, Laptop, Notebook, Hand Held, "
    "Docking Station, All In One, Sub Notebook, Space-saving, Lunch Box, Main Server Chassis, Expansion Chassis, Sub Chassis, "
    "Bus Expansion Chassis, Peripheral Chassis, RAID Chassis, Rack Mount Chassis, Sealed-case PC, Multi-system, CompactPCI, "
    "AdvancedTCA, Blade, Blade Enclosing, Tablet, Convertible, Detachable, IoT Gateway, Embedded PC, Mini PC, Stick PC"
)
_ARRAY_USES = _names("Other, Unknown, System Memory, Video Memory, Flash Memory, Non-volatile RAM, Cache Memory")
_CORRECTIONS = _names("Other, Unknown, None, Parity, Single-bit ECC, Multi-bit ECC, CRC")
_FORM_FACTORS = _names(
    "Other, Unknown, SIMM, SIP, Chip, DIP, ZIP, Proprietary Card, DIMM, TSOP, Row Of Chips, RIMM, SODIMM, SRIMM, FB-DIMM, Die"
)
_MEMORY_TYPES = _names(
    "Other, Unknown, DRAM, EDRAM, VRAM, SRAM, RAM, ROM, Flash, EEPROM, FEPROM, EPROM, CDRAM, 3DRAM, SDRAM, SGRAM, RDRAM, DDR, "
    "DDR2, DDR2 FB-DIMM, Reserved, Reserved, Reserved, DDR3, FBD2, DDR4, LPDDR, LPDDR2, LPDDR3, LPDDR4, "
    "Logical non-volatile device, HBM, HBM2, DDR5, LPDDR5, HBM3"
)
"""Names of the enumerations of DSP0134, tables 17, 72, 73, 76 and 77; the first stands for 1."""


def _named(names: tuple[str, ...], value: int | None) -> str:
    """Name of an enumeration's value; empty for unknown ones, and for the first two of each: Other and Unknown."""
    return names[value - 1] if value is not None and 3 <= value <= len(names) else ""


def _chassis(item: _Structure) -> Chassis:
    kind = item.number(0x05, 1)
    # The highest bit tells of a lock.
    return Chassis(item.text(0x04), _named(_CHASSIS_KINDS, None if kind is None else kind & 0x7F))


def _processor(item: _Structure) -> Processor:
    status = item.number(0x18, 1) or 0
    return Processor(
        item.text(0x04),
        item.text(0x07),
        item.text(0x10),
        populated=bool(status & 0x40),
        enabled=status & 0x07 == 1,
        core_count=_count(item, 0x23, 0x2A),
        core_enabled=_count(item, 0x24, 0x2C),
        thread_count=_count(item, 0x25, 0x2E),
        max_speed_mhz=item.number(0x14, 2) or None,
    )


def _count(item: _Structure, offset: int, wide_offset: int) -> int | None:
    """A count of one byte that says 255 when it is more; then, from 3.0 on, it stands in two bytes elsewhere. 0 = unknown."""
    count = item.number(offset, 1)
    if count == 0xFF:
        wide = item.number(wide_offset, 2)
        return wide if wide and wide != 0xFFFF else 255
    return count or None


def _memory_array(item: _Structure) -> MemoryArray:
    capacity_kib = item.number(0x07, 4)
    capacity = item.number(0x0F, 8) if capacity_kib == 0x8000_0000 else (capacity_kib or 0) * _KIB
    return MemoryArray(
        _named(_ARRAY_USES, item.number(0x05, 1)),
        _named(_CORRECTIONS, item.number(0x06, 1)),
        capacity or None,
        item.number(0x0D, 2) or None,
    )


def _memory_module(item: _Structure) -> MemoryModule:
    rank = (item.number(0x1B, 1) or 0) & 0x0F
    return MemoryModule(
        item.text(0x10),
        item.text(0x11),
        _module_size(item),
        _named(_FORM_FACTORS, item.number(0x0E, 1)),
        _named(_MEMORY_TYPES, item.number(0x12, 1)),
        _speed(item, 0x15, 0x54),
        _speed(item, 0x20, 0x58),
        item.text(0x17),
        item.text(0x1A),
        rank or None,
        _width(item, 0x08),
        _width(item, 0x0A),
    )


def _module_size(item: _Structure) -> int | None:
    size = item.number(0x0C, 2)
    if size is None or size == 0xFFFF:
        return None
    if size == 0x7FFF:
        extended = item.number(0x1C, 4)
        return None if extended is None else (extended & 0x7FFF_FFFF) * _MIB
    return (size & 0x7FFF) * _KIB if size & 0x8000 else size * _MIB


def _speed(item: _Structure, offset: int, wide_offset: int) -> int | None:
    """Megatransfers a second; 0 = unknown, 0xFFFF = more than fit, then they stand elsewhere."""
    speed = item.number(offset, 2)
    if speed == 0xFFFF:
        speed = (item.number(wide_offset, 4) or 0) & 0x7FFF_FFFF
    return speed or None


def _width(item: _Structure, offset: int) -> int | None:
    width = item.number(offset, 2)
    return width if width and width != 0xFFFF else None
