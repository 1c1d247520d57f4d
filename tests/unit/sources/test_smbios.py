"""SMBIOS tables, and the text that dmidecode makes of them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources import dmidecode, smbios
from nodeproof.sources.smbios import Board, Chassis, Firmware, MemoryArray, MemoryModule, Processor, System
from support import hosts_memory
from support import smbios as make

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_KUNPENG = _FIXTURES / "hosts" / "aarch64-kunpeng" / "sys" / "firmware" / "dmi" / "tables" / "DMI"
_GIB = 1 << 30


def test_a_large_server_piece_by_piece() -> None:
    tables = smbios.parse(hosts_memory.dmi_table())
    assert tables.firmware == Firmware("American Megatrends International, LLC.", "2.6a", "03/14/2024")
    assert tables.system == System("Supermicro", "AS -2124BT", "0123456789", "TEST-SERIAL-0001")
    assert tables.board == Board("Supermicro", "H12DST-B", "1.02")
    assert tables.chassis == Chassis("Supermicro", "Rack Mount Chassis")
    model = "AMD EPYC 7763 64-Core Processor"
    cpu = Processor("CPU1", "Advanced Micro Devices, Inc.", model, True, True, 64, 64, 128, 3500)
    assert tables.processors == (cpu, cpu._replace(socket="CPU2"))
    assert tables.memory_arrays == (MemoryArray("System Memory", "Multi-bit ECC", 4096 * _GIB, 16),)
    assert len(tables.memory_modules) == 16
    assert tables.memory_modules[9] == MemoryModule(
        "DIMM 0", "P1 CHANNEL B", 64 * _GIB, "DIMM", "DDR4", 3200, 2933, "Samsung", "M393A8G40BB4-CWE", 2, 72, 64
    )


def test_the_tool_and_the_table_of_one_machine_say_the_same() -> None:
    table = smbios.parse(_KUNPENG.read_bytes())
    text = dmidecode.parse((_FIXTURES / "commands" / "dmidecode" / "kunpeng.txt").read_bytes())
    assert text == table
    assert sum(bool(module.size_bytes) for module in table.memory_modules) == 8
    assert len(table.memory_modules) == 16


@pytest.mark.parametrize(
    ("size_mib", "size_bytes"),
    [
        (0, 0),  # empty slot
        (None, None),  # the firmware does not know
        (512, 512 << 20),
        (16384, 16 * _GIB),
        (32766, 32766 << 20),  # the last that fits into the narrow field
        (32767, 32767 << 20),  # the first in the wide one
        (262144, 256 * _GIB),
    ],
)
def test_sizes_of_modules(size_mib: int | None, size_bytes: int | None) -> None:
    table = make.table(make.memory_device(0x1100, "A1", "", size_mib=size_mib))
    assert smbios.parse(table).memory_modules[0].size_bytes == size_bytes


def test_a_size_in_kib() -> None:
    device = bytearray(make.memory_device(0x1100, "A1", "", size_mib=0))
    device[0x0C:0x0E] = (0x8000 | 512).to_bytes(2, "little")
    assert smbios.parse(make.table(bytes(device))).memory_modules[0].size_bytes == 512 * 1024


def test_speeds_beyond_sixteen_bits_stand_elsewhere_and_zero_is_unknown() -> None:
    fast = make.memory_device(0x1100, "A1", "", size_mib=1024, rated_mts=70_000, configured_mts=66_000, kind=0x22)
    module = smbios.parse(make.table(fast)).memory_modules[0]
    assert (module.rated_speed_mts, module.configured_speed_mts, module.memory_type) == (70_000, 66_000, "DDR5")
    unknown = smbios.parse(make.table(make.memory_device(0x1100, "A1", "", size_mib=1024, kind=2))).memory_modules[0]
    assert (unknown.rated_speed_mts, unknown.configured_speed_mts, unknown.memory_type) == (None, None, "")


def test_an_old_and_short_module_has_no_newer_fields() -> None:
    # Version 2.1 ends after the memory type: 0x15 bytes.
    body = make.memory_device(0x1100, "A1", "B", size_mib=2048, rank=2)[4:0x15]
    module = smbios.parse(make.table(make.structure(17, 0x1100, body, ("A1", "B")))).memory_modules[0]
    assert module.size_bytes == 2 * _GIB
    assert (module.rated_speed_mts, module.manufacturer, module.rank) == (None, "", None)


def test_a_wide_size_that_the_structure_is_too_short_for_is_unknown() -> None:
    body = make.memory_device(0x1100, "A1", "", size_mib=65536)[4:0x15]
    assert smbios.parse(make.table(make.structure(17, 0x1100, body, ("A1",)))).memory_modules[0].size_bytes is None
    assert smbios.parse(make.table(make.structure(17, 0x1100, body[:4], ()))).memory_modules[0].size_bytes is None


def test_counts_of_cores_beyond_a_byte() -> None:
    wide = make.processor(4, "CPU1", "M", "X", cores=384, enabled_cores=300, threads=768, mhz=0)
    cpu = smbios.parse(make.table(wide)).processors[0]
    assert (cpu.core_count, cpu.core_enabled, cpu.thread_count, cpu.max_speed_mhz) == (384, 300, 768, None)
    # Version 2.5 has no wide fields: all that can be said is 255.
    old = make.structure(4, 4, wide[4:0x28], ("CPU1", "M", "X"))
    assert smbios.parse(make.table(old)).processors[0].core_count == 255
    unknown = make.processor(4, "CPU1", "M", "X", cores=0, enabled_cores=0, threads=0, mhz=0)
    assert smbios.parse(make.table(unknown)).processors[0].core_count is None


def test_an_empty_and_a_disabled_socket() -> None:
    empty, disabled = (bytearray(make.processor(4, "CPU1", "M", "X", cores=1, enabled_cores=1, threads=1, mhz=1)) for _ in "ab")
    empty[0x18], disabled[0x18] = 0x00, 0x43
    cpus = smbios.parse(make.table(bytes(empty), bytes(disabled))).processors
    assert [(cpu.populated, cpu.enabled) for cpu in cpus] == [(False, False), (True, False)]


@pytest.mark.parametrize(
    ("code", "name"), [(3, "None"), (4, "Parity"), (5, "Single-bit ECC"), (6, "Multi-bit ECC"), (2, ""), (0, ""), (99, "")]
)
def test_kinds_of_correction(code: int, name: str) -> None:
    table = make.table(make.memory_array(0x1000, correction=code, capacity_gib=1, slots=0))
    assert smbios.parse(table).memory_arrays[0] == MemoryArray("System Memory", name, _GIB, None)


def test_a_chassis_with_a_lock() -> None:
    assert smbios.parse(make.table(make.chassis("M", 0x80 | 0x17))).chassis == Chassis("M", "Rack Mount Chassis")
    short = make.structure(3, 3, b"\x00", ())
    assert smbios.parse(make.table(short)).chassis == Chassis("", "")


@pytest.mark.parametrize("filler", ["To Be Filled By O.E.M.", "Not Specified", "Default string", "  ", "Unknown", "NO DIMM"])
def test_what_stands_where_nobody_filled_in_is_nothing(filler: str) -> None:
    assert smbios.meaningful(filler) == ""
    assert smbios.meaningful(" Samsung \t Electronics\n") == "Samsung Electronics"


def test_a_string_number_that_is_out_of_range_is_no_string() -> None:
    table = make.table(make.structure(1, 1, bytes([9, 0, 0, 0]), ("only one",)))
    assert smbios.parse(table).system == System("", "", "", "")


def test_a_table_cut_off_keeps_its_sound_beginning() -> None:
    whole = hosts_memory.dmi_table()
    modules = [len(smbios.parse(whole[:length]).memory_modules) for length in range(200, len(whole), 97)]
    assert modules == sorted(modules)
    assert modules[0] == 0
    assert modules[-1] >= 14


def test_what_follows_the_end_of_the_table_is_not_read() -> None:
    module = make.memory_device(0x1100, "A1", "", size_mib=1)
    assert len(smbios.parse(make.table(module) + module).memory_modules) == 1


@pytest.mark.parametrize("raw", [b"", b"\x11", b"\x11\x02\x00\x00\x00\x00", b"\x11\x5c" + bytes(2), b"\xff" * 64, make.end()])
def test_no_structure_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="SMBIOS"):
        smbios.parse(raw)


@given(st.binary(max_size=400))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        tables = smbios.parse(raw)
    except ParseError:
        return
    assert all(module.size_bytes is None or module.size_bytes >= 0 for module in tables.memory_modules)


@given(st.data())
@settings(max_examples=60)
def test_damage_anywhere_in_a_good_table_is_borne(data: st.DataObject) -> None:
    raw = bytearray(_KUNPENG.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        tables = smbios.parse(bytes(raw))
    except ParseError:
        return
    assert len(tables.memory_modules) <= len(raw) // 6


_WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12).filter(smbios.meaningful)


@given(st.lists(st.tuples(_WORDS, _WORDS, st.integers(0, 1 << 22), st.integers(0, 100_000)), min_size=1, max_size=12))
def test_what_the_standard_lays_down_comes_back(slots: list[tuple[str, str, int, int]]) -> None:
    table = make.table(
        *(
            make.memory_device(0x1100 + number, locator, bank, size_mib=size, rated_mts=speed, configured_mts=speed)
            for number, (locator, bank, size, speed) in enumerate(slots)
        )
    )
    read = [
        (module.locator, module.bank, module.size_bytes, module.rated_speed_mts, module.configured_speed_mts)
        for module in smbios.parse(table).memory_modules
    ]
    assert read == [(locator, bank, size << 20, speed or None, speed or None) for locator, bank, size, speed in slots]
