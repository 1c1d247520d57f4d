import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_diskstats import DiskCounters, parse

_CASE_53 = (
    b"  3     0   39082680 hda 446216 784926 9550688 4382310 424847 312726 5922052 19310380 0 3376340 23705160\n"
    b"  3     1 hda1 35486 0 35496 38030\n"
    b"  8     0 sda 61540896 14301543 2070222521 18032078 107627996 33672188 4122914856 94277324 0 74681256 32698424\n"
    b"  8    16 sdb 117611 95370 6965839 38221 261613 160604 8232403 192966 0 176554 129885 0 0 0 0\n"
    b"259     0 nvme0n1 19720 20636 1419157 7884 5400 3811 206626 5450 0 9807 6914 0 0 0 0 354 1203\n"
    b"  8    32 sdc 0 0 0 0 46 0 977 34 0 2 0 0 0 0\n"
    b"253     0 dm-name with space 1 0 8 0 0 0 0 0 0 0 0\n"
)
"""Case 53: one line a kernel (2.4, old partition, 2.6, 4.18, 5.5, lxcfs, a name with spaces)."""


def test_case_53_every_kernel_is_understood_and_none_takes_the_others_down() -> None:
    stats = parse(_CASE_53)
    assert list(stats.devices) == ["hda1", "sda", "sdb", "nvme0n1", "sdc", "dm-name with space"]
    assert stats.skipped == 1  # the line of Linux 2.4
    assert stats.devices["hda1"] == DiskCounters(35486, 0, 35496, 38030)
    assert stats.devices["sda"] == DiskCounters(
        61540896, 2070222521, 107627996, 4122914856, 18032078, 94277324, 0, 74681256, 32698424
    )
    assert stats.devices["sdb"] == DiskCounters(117611, 6965839, 261613, 8232403, 38221, 192966, 0, 176554, 129885, 0, 0, 0)
    assert stats.devices["nvme0n1"] == DiskCounters(19720, 1419157, 5400, 206626, 7884, 5450, 0, 9807, 6914, 0, 0, 0, 354, 1203)
    assert stats.devices["sdc"] == DiskCounters(0, 0, 46, 977, 0, 34, 0, 2, 0)
    assert stats.devices["dm-name with space"] == DiskCounters(1, 8, 0, 0, 0, 0, 0, 0, 0)


def test_fields_of_kernels_to_come_are_passed_over() -> None:
    line = b"8 0 sda " + b" ".join(b"%d" % n for n in range(1, 18))
    assert parse(line + b" 18 19 x\n") == parse(line + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        b"8 0 sdb 1 2 3 4 x 6 7 8 9 10 11",
        b"8 0 sdb 1 2 3 4 5",
        b"8 0 sdb 99999999999999999999 2 3 4 5 6 7 8 9 10 11",
        b"8 0 sdb 111111111111111111111 2 3 4 5 6 7 8 9 10 11",
        b"8 x sdb 1 2 3 4 5 6 7 8 9 10 11",
        b"8 0 12 1 2 3 4 5 6 7 8 9 10 11",
        b"8 0 sdb -1 2 3 4",
        b"8 0",
    ],
)
def test_a_damaged_line_costs_itself_only(line: bytes) -> None:
    good = b"8 16 sda 1 2 3 4 5 6 7 8 9 10 11\n"
    stats = parse(line + b"\n" + good)
    assert list(stats.devices) == ["sda"]
    assert stats.skipped == 1


def test_only_the_named_devices_are_read() -> None:
    raw = b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 1 sda1 1 2 3 4 5 6 7 8 9 10 11\n"
    assert list(parse(raw, {b"sda"}).devices) == ["sda"]
    assert parse(raw, frozenset()).devices == {}


def test_a_machine_without_disks_is_no_error() -> None:
    assert parse(b"") == ({}, 0)


def test_text_of_another_kind_is_named() -> None:
    with pytest.raises(ParseError, match=r"/proc/diskstats: found '<html>'"):
        parse(b"<html>")


@given(st.binary(max_size=300))
def test_arbitrary_bytes_bring_counters_or_a_parse_error(raw: bytes) -> None:
    try:
        stats = parse(raw)
    except ParseError:
        return
    for counters in stats.devices.values():
        assert all(0 <= number < 1 << 64 for number in counters if number is not None)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{2,4}[0-9]{0,2}", fullmatch=True),
        st.lists(st.integers(0, (1 << 64) - 1), min_size=11, max_size=20),
        max_size=5,
    )
)
def test_what_the_kernel_prints_comes_back(devices: dict[str, list[int]]) -> None:
    raw = "".join(f"   8 {minor:7d} {name} {' '.join(map(str, row))}\n" for minor, (name, row) in enumerate(devices.items()))
    found = parse(raw.encode()).devices
    assert list(found) == list(devices)
    for name, row in devices.items():
        assert found[name][:4] == (row[0], row[2], row[4], row[6])
        assert found[name].busy_ms == row[9]
        assert found[name].sectors_discarded == (row[13] if len(row) >= 15 else None)
        assert found[name].flushes == (row[15] if len(row) >= 17 else None)
