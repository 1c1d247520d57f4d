"""Text of dmidecode; that it agrees with the table itself is in ``test_smbios``."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.dmidecode import parse
from nodeproof.sources.smbios import MemoryArray, MemoryModule, System

_OUTPUTS = Path(__file__).parents[2] / "fixtures" / "commands" / "dmidecode"
_GIB = 1 << 30


def test_words_of_older_versions() -> None:
    tables = parse((_OUTPUTS / "old-words.txt").read_bytes())
    assert tables.system == System("Dell Inc.", "PowerEdge R730", "", "TESTSN3")
    assert tables.memory_arrays == (MemoryArray("System Memory", "Multi-bit ECC", 1536 * _GIB, 24),)
    full, empty = tables.memory_modules
    assert full == MemoryModule("A1", "", 16 * _GIB, "DIMM", "DDR4", 2400, 2133, "00AD00B300AD", "HMA42GR7AFR4N-UH", 2, 72, 64)
    assert (empty.locator, empty.size_bytes, empty.memory_type, empty.rated_speed_mts) == ("A2", 0, "", None)
    assert [(cpu.populated, cpu.enabled, cpu.core_count) for cpu in tables.processors] == [(True, True, 14), (False, False, None)]
    assert tables.firmware is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16 GB", 16 * _GIB),
        ("16384 MB", 16 * _GIB),
        ("512 kB", 512 << 10),
        ("1 TB", 1024 * _GIB),
        ("No Module Installed", 0),
        ("Unknown", None),
        ("16", None),
        ("16 GiB", None),
        ("x GB", None),
        ("", None),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    tables = parse(f"Handle 0x1100, DMI type 17, 40 bytes\nMemory Device\n\tSize: {text}\n\tLocator: A1\n".encode())
    assert tables.memory_modules[0].size_bytes == size


def test_an_unknown_kind_of_correction_is_not_told() -> None:
    tables = parse(b"Handle 0x1000, DMI type 16, 23 bytes\n\tUse: System Memory\n\tError Correction Type: Unknown\n")
    assert tables.memory_arrays == (MemoryArray("System Memory", "", None, None),)
    none = parse(b"Handle 0x1000, DMI type 16, 23 bytes\n\tError Correction Type: None\n")
    assert none.memory_arrays[0].error_correction == "None"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"# dmidecode 3.4\n",
        b"/dev/mem: Permission denied\n",
        b"Handle 0x0007, DMI type 7, 27 bytes\n\tSize: 1 MB\n",
        b"Handle broken\n",
        b"\xff\x00",
    ],
)
def test_no_structure_of_ours_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="dmidecode"):
        parse(raw)


@given(st.binary(max_size=300))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        parse(raw)
    except ParseError as error:
        assert error.source == "dmidecode"


@given(st.text(max_size=200), st.sampled_from([0, 1, 2, 3, 4, 16, 17]))
def test_any_text_under_a_handle_makes_a_struct(text: str, kind: int) -> None:
    tables = parse(f"Handle 0x0001, DMI type {kind}, 40 bytes\nThing\n\tSize: {text}\n".encode("utf-8", "replace"))
    assert sum(bool(part) for part in tables) == 1
