"""ELF facts, of programs made here byte by byte and of the interpreter that runs the tests."""

import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources import elf

NEEDED, STRTAB, STRSZ, SONAME, RPATH, RUNPATH = 1, 5, 10, 14, 15, 29


def made(strings: bytes, entries: list[tuple[int, int]], *, bits: int = 64, order: str = "<", machine: int = 62) -> bytes:
    """An ELF file with one loaded segment, a dynamic section and an interpreter."""
    wide = bits == 64
    header_size, entry_size = (64, 56) if wide else (52, 32)
    interp = b"/lib/ld.so\0"
    at_interp = header_size + 3 * entry_size
    at_strings = at_interp + len(interp)
    at_dynamic = at_strings + len(strings)
    base = 0x400000
    pairs = [*entries, (STRTAB, base + at_strings), (STRSZ, len(strings)), (0, 0), (NEEDED, 0)]
    dynamic = b"".join(struct.pack(f"{order}{'qQ' if wide else 'iI'}", *pair) for pair in pairs)
    total = at_dynamic + len(dynamic)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    if wide:
        rest = struct.pack(f"{order}HHIQQQIHHHHHH", 2, machine, 1, 0, header_size, 0, 0, header_size, entry_size, 3, 0, 0, 0)
    else:
        rest = struct.pack(f"{order}HHIIIIIHHHHHH", 2, machine, 1, 0, header_size, 0, 0, header_size, entry_size, 3, 0, 0, 0)

    def segment(kind: int, offset: int, size: int) -> bytes:
        if wide:
            return struct.pack(f"{order}IIQQQQQQ", kind, 5, offset, base + offset, base + offset, size, size, 8)
        return struct.pack(f"{order}IIIIIIII", kind, offset, base + offset, base + offset, size, size, 5, 8)

    table = segment(1, 0, total) + segment(2, at_dynamic, len(dynamic)) + segment(3, at_interp, len(interp))
    return ident + rest + table + interp + strings + dynamic


STRINGS = b"\0libmpi.so.40\0libc.so.6\0ompi_mpi_comm_world\0/opt/mpi/lib:/usr/lib\0libown.so.1\0"


@pytest.mark.parametrize(("bits", "order"), [(64, "<"), (64, ">"), (32, "<"), (32, ">")])
def test_libraries_loader_and_search_path(bits: int, order: str) -> None:
    place = STRINGS.index
    entries = [(NEEDED, place(b"libmpi")), (NEEDED, place(b"libc")), (RUNPATH, place(b"/opt")), (SONAME, place(b"libown"))]
    facts = elf.parse(made(STRINGS, entries, bits=bits, order=order))
    assert facts.needed == ("libmpi.so.40", "libc.so.6")
    assert facts.search_path == ("/opt/mpi/lib", "/usr/lib")
    assert facts.soname == "libown.so.1"
    assert facts.interpreter == "/lib/ld.so"
    assert (facts.machine, facts.bits, facts.little_endian) == ("x86_64", bits, order == "<")
    assert b"\0ompi_" in facts.strings
    assert not facts.is_static


def test_runpath_goes_before_rpath_and_an_unknown_machine_is_a_number() -> None:
    strings = b"\0/a\0/b\0"
    facts = elf.parse(made(strings, [(RPATH, 1), (RUNPATH, 4)], machine=9999))
    assert facts.search_path == ("/b",)
    assert facts.machine == "9999"
    assert elf.parse(made(strings, [(RPATH, 1)])).search_path == ("/a",)


def test_a_static_program_needs_nothing() -> None:
    raw = bytearray(made(b"\0", []))
    struct.pack_into("<I", raw, 64 + 56, 6)  # the dynamic segment becomes one of another kind
    facts = elf.parse(bytes(raw))
    assert facts.is_static
    assert facts.needed == ()
    assert facts.strings == b""


def test_a_string_table_outside_of_the_file_gives_no_names() -> None:
    raw = made(b"\0libc.so.6\0", [(STRTAB, 0x10), (NEEDED, 1)])
    assert elf.parse(raw).needed == ("",)


@pytest.mark.parametrize("raw", [b"", b"#!/bin/sh\n" * 20, b"\x7fELF" + bytes(60), b"\x7fELF\x02\x01" + b"\xff" * 60])
def test_what_is_no_program_is_told_as_such(raw: bytes) -> None:
    with pytest.raises(ParseError):
        elf.parse(raw)


@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_damage_is_a_parse_error_or_an_answer(noise: bytes, place: int) -> None:
    raw = made(STRINGS, [(NEEDED, 1)])
    damaged = raw[:place] + noise + raw[place + len(noise) :]
    for data in (damaged, damaged[: len(damaged) // 2], b"\x7fELF\x02\x01" + noise):
        try:
            elf.parse(data)
        except ParseError:
            continue


def test_the_interpreter_of_these_tests_needs_the_c_library() -> None:
    facts = elf.parse(Path(sys.executable).resolve().read_bytes())
    assert any(name.startswith("libc.") for name in facts.needed) or facts.is_static
