import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_stat import CpuTimes, parse

_FILE = b"""cpu  5000 20 3000 190000 800 0 60 120 40 0
cpu0 2000 20 1000 96000 300 0 50 20 0 0
cpu1 3000 0 2000 94000 500 0 10 100 40 0
intr 115812 0 0 0 14
ctxt 231328
btime 1789996400
processes 7475
procs_running 2
procs_blocked 1
softirq 81626 0 14859 3
"""


def test_reads_times_and_counters() -> None:
    stat = parse(_FILE)
    # guest (the ninth column) is part of user and stands in no field of its own
    assert stat.cpus == {
        "total": CpuTimes(5000, 20, 3000, 190_000, 800, 0, 60, 120),
        "0": CpuTimes(2000, 20, 1000, 96_000, 300, 0, 50, 20),
        "1": CpuTimes(3000, 0, 2000, 94_000, 500, 0, 10, 100),
    }
    assert stat[1:] == (231_328, 1_789_996_400, 115_812, 81_626, 7475, 2, 1)


def test_old_and_future_kernels() -> None:
    assert parse(b"cpu0 1 2 3 4\n").cpus == {"0": CpuTimes(1, 2, 3, 4, 0, 0, 0, 0)}
    assert parse(b"cpu0 1 2 3 4 5 6 7 8 9 10 11 12\n").cpus == {"0": CpuTimes(1, 2, 3, 4, 5, 6, 7, 8)}


@pytest.mark.parametrize(
    "line",
    [
        b"cpu9 1 2 3",
        b"cpu9 1 2 3 x",
        b"cpu9 1 2 3 -4",
        b"cpu9 1 2 3 18446744073709551616",
        b"cpu9 1 2 3 " + b"9" * 5000,
        b"cpufreq 1 2 3 4",
        b"cpu\xff 1 2 3 4",
        b"ctxt",
        b"ctxt many",
        b"ctxt " + b"9" * 5000,
    ],
)
def test_a_damaged_line_costs_itself_only(line: bytes) -> None:
    stat = parse(b"cpu0 1 2 3 4\n" + line + b"\n")
    assert list(stat.cpus) == ["0"]
    assert stat.context_switches is None


def test_no_processor_at_all_is_an_error() -> None:
    with pytest.raises(ParseError, match="lines that begin with cpu"):
        parse(b"intr 5\nctxt 7\n")


_PARTS = st.sampled_from([b"cpu", b"cpu0", b" ", b"1", b"-1", b"\n", b"ctxt ", b"99999999999999999999", b"\xc3"])


@given(st.binary(max_size=200) | st.lists(_PARTS, max_size=40).map(b"".join))
def test_any_bytes_give_times_or_a_parse_error(raw: bytes) -> None:
    try:
        stat = parse(raw)
    except ParseError:
        return
    assert all(0 <= ticks < 2**64 for times in stat.cpus.values() for ticks in times)


@given(st.dictionaries(st.integers(0, 4096), st.tuples(*[st.integers(0, 2**64 - 1)] * 8), min_size=1, max_size=20))
def test_what_the_kernel_prints_comes_back(rows: dict[int, tuple[int, ...]]) -> None:
    raw = "".join(f"cpu{cpu} {' '.join(map(str, row))} 0 0\n" for cpu, row in rows.items()).encode()
    assert parse(raw).cpus == {str(cpu): CpuTimes(*row) for cpu, row in rows.items()}
