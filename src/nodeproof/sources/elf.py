"""What an ELF program or library says of itself: machine, libraries it needs, and where they are looked for (elf(5)).

``ldd`` answers by running the program's loader, which is code from the file; this reads the dynamic section and runs nothing::

    0x0000000000000001 (NEEDED)  Shared library: [libmpi.so.40]        as readelf -d shows it
"""

import struct
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["ElfFacts", "parse"]

_MAGIC = b"\x7fELF"
_LOAD, _DYNAMIC, _INTERP = 1, 2, 3
_NEEDED, _STRTAB, _STRSZ, _SONAME, _RPATH, _RUNPATH = 1, 5, 10, 14, 15, 29
_MACHINES = {
    3: "x86",
    20: "ppc",
    21: "ppc64",
    22: "s390",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv",
    258: "loongarch",
}
_MOST_HEADERS = 1024
_MOST_ENTRIES = 65536
_MAX_NAME = 4096


class ElfFacts(NamedTuple):
    """What was read."""

    machine: str
    """``x86_64``, ``aarch64``, or the number where it has no name here."""
    bits: int
    little_endian: bool
    interpreter: str
    """The loader; empty for a static program and for a library."""
    needed: tuple[str, ...]
    soname: str
    search_path: tuple[str, ...]
    """RPATH or RUNPATH."""
    strings: bytes
    """The dynamic string table: names of libraries and of every symbol that it takes or gives."""

    @property
    def is_static(self) -> bool:
        """Whether it brings all of its libraries along."""
        return not self.needed


class _Layout(NamedTuple):
    order: str
    bits: int


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


def parse(raw: bytes, /, source: str = "ELF file") -> ElfFacts:
    """Read ``raw``. Raises ParseError when it is no ELF file, or cut where it matters."""
    if raw[:4] != _MAGIC or len(raw) < 64:
        raise ParseError(source, 0, raw[:4].hex(), "the four bytes 7f 45 4c 46 and a header behind them")
    bits, order = {1: 32, 2: 64}.get(raw[4]), {1: "<", 2: ">"}.get(raw[5])
    if bits is None or order is None:
        raise ParseError(source, 0, raw[4:6].hex(), "a class of 1 or 2 and a byte order of 1 or 2")
    layout = _Layout(order, bits)
    try:
        return _facts(raw, layout)
    except (struct.error, OverflowError):
        raise ParseError(source, 0, f"{len(raw)} bytes", "the tables that its header tells of") from None


def _facts(raw: bytes, layout: _Layout) -> ElfFacts:
    machine = struct.unpack_from(f"{layout.order}H", raw, 18)[0]
    segments = _segments(raw, layout)
    entries = _dynamic(raw, layout, segments)
    first = dict(reversed(entries))
    start = _offset(segments, first.get(_STRTAB, 0))
    strings = raw[start : start + first.get(_STRSZ, 0)] if start is not None and _STRTAB in first else b""
    paths = _string(strings, first[_RUNPATH] if _RUNPATH in first else first[_RPATH]) if {_RUNPATH, _RPATH} & set(first) else ""
    interpreter = next((raw[part.offset : part.offset + part.size] for part in segments if part.kind == _INTERP), b"")
    return ElfFacts(
        machine=_MACHINES.get(machine, str(machine)),
        bits=layout.bits,
        little_endian=layout.order == "<",
        interpreter=interpreter[:_MAX_NAME].rstrip(b"\0").decode("utf-8", "replace"),
        needed=tuple(_string(strings, value) for tag, value in entries if tag == _NEEDED),
        soname=_string(strings, first[_SONAME]) if _SONAME in first else "",
        search_path=tuple(part for part in paths.split(":") if part),
        strings=strings,
    )


def _segments(raw: bytes, layout: _Layout) -> list[_Segment]:
    order = layout.order
    if layout.bits == 64:
        table, size, count = (*struct.unpack_from(f"{order}Q", raw, 32), *struct.unpack_from(f"{order}HH", raw, 54))
    else:
        table, size, count = (*struct.unpack_from(f"{order}I", raw, 28), *struct.unpack_from(f"{order}HH", raw, 42))
    found = []
    for number in range(min(count, _MOST_HEADERS)):
        place = table + number * size
        if layout.bits == 64:
            kind, _, offset, address, _, length = struct.unpack_from(f"{order}IIQQQQ", raw, place)
        else:
            kind, offset, address, _, length = struct.unpack_from(f"{order}IIIII", raw, place)
        found.append(_Segment(kind, offset, address, length))
    return found


def _dynamic(raw: bytes, layout: _Layout, segments: list[_Segment]) -> list[tuple[int, int]]:
    part = next((one for one in segments if one.kind == _DYNAMIC), None)
    if part is None:
        return []
    shape = f"{layout.order}{'qQ' if layout.bits == 64 else 'iI'}"
    step = struct.calcsize(shape)
    found = []
    for number in range(min(part.size // step, _MOST_ENTRIES)):
        tag, value = struct.unpack_from(shape, raw, part.offset + number * step)
        if tag == 0:
            break
        found.append((tag, value))
    return found


def _offset(segments: list[_Segment], address: int) -> int | None:
    """Place in the file of an address in memory."""
    for part in segments:
        if part.kind == _LOAD and part.address <= address < part.address + part.size:
            return part.offset + address - part.address
    return None


def _string(strings: bytes, place: int) -> str:
    end = strings.find(b"\0", place)
    return strings[place : end if end >= 0 else len(strings)][:_MAX_NAME].decode("utf-8", "replace")
