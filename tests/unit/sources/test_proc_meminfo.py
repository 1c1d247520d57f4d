"""``/proc/meminfo``."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_meminfo import parse

# cases/monitor/51-meminfo-no-space: a big arm64 host, reported against another tool that lost all of its memory metrics.
_CASE_51 = b"""MemTotal:       1055762868 kB
MemFree:        900000000 kB
MemAvailable:   980000000 kB
Buffers:         1000000 kB
Cached:         50000000 kB
ShadowCallStack:10373888 kB
SwapTotal:             0 kB
SwapFree:              0 kB
SReclaimable:     200000 kB
HugePages_Total:       0
"""


def test_case_51_a_name_without_room_before_its_number() -> None:
    info = parse(_CASE_51)
    assert info.sizes_bytes["MemTotal"] == 1055762868 * 1024
    assert info.sizes_bytes["MemAvailable"] == 980000000 * 1024
    assert info.sizes_bytes["ShadowCallStack"] == 10373888 * 1024
    assert info.sizes_bytes["SwapTotal"] == 0
    assert info.counts == {"HugePages_Total": 0}
    assert len(info.sizes_bytes) == 9
    assert info.rejected == ()


def test_lines_of_a_numa_node_lose_the_nodes_name() -> None:
    info = parse(b"Node 3 MemTotal:       66846720 kB\nNode 3 Active(anon):  4 kB\nNode 3 HugePages_Total:     4\n", "node3")
    assert info.sizes_bytes == {"MemTotal": 66846720 * 1024, "Active(anon)": 4096}
    assert info.counts == {"HugePages_Total": 4}


@pytest.mark.parametrize(
    "bad", [b"MemFree: -8 kB", b"MemFree: 18446744073709551608 kB", b"MemFree: 99999999999999999999999 kB", b"MemFree: x kB"]
)
def test_a_wrapped_or_damaged_number_is_named_and_costs_only_itself(bad: bytes) -> None:
    info = parse(bad + b"\nMemTotal: 1024 kB\n")
    assert info.sizes_bytes == {"MemTotal": 1048576}
    assert info.rejected == ("MemFree",)


@pytest.mark.parametrize("other", [b"MemFree:", b"MemFree", b": 5 kB", b"MemFree: 5 pages", b""])
def test_lines_of_another_form_are_passed_over(other: bytes) -> None:
    info = parse(other + b"\nMemTotal: 1 kB\n")
    assert info.sizes_bytes == {"MemTotal": 1024}
    assert info.rejected == ()


@pytest.mark.parametrize("raw", [b"", b"\x00\xff\xfe", b"HugePages_Total: 3\n", b"MemTotal 5 kB"])
def test_nothing_usable_is_an_error_that_names_the_file(raw: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        parse(raw, "node7/meminfo")
    assert raised.value.source == "node7/meminfo"


@given(st.binary(max_size=400))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        info = parse(raw)
    except ParseError:
        return
    assert all(0 <= size < 1 << 64 for size in info.sizes_bytes.values())


_NAMES = st.from_regex(r"[A-Z][A-Za-z]{2,20}(\((anon|file)\))?", fullmatch=True)


@given(st.dictionaries(_NAMES, st.integers(0, (1 << 54) - 1), min_size=1, max_size=60))
def test_what_the_kernel_prints_comes_back(kib: dict[str, int]) -> None:
    text = "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in kib.items())
    assert parse(text.encode()).sizes_bytes == {name: value * 1024 for name, value in kib.items()}


def test_every_line_of_this_machines_own_file_is_understood() -> None:
    raw = Path("/proc/meminfo").read_bytes()
    info = parse(raw)
    assert len(info.sizes_bytes) + len(info.counts) == raw.count(b"\n")
    assert info.rejected == ()
