import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.pressure import Pressure, Stall, parse

_CPU = b"""some avg10=2.83 avg60=1.56 avg300=0.41 total=4304928
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
"""


def test_reads_both_lines() -> None:
    assert parse(_CPU) == Pressure(Stall(2.83, 1.56, 0.41, 4.304928), Stall(0.0, 0.0, 0.0, 0.0))


def test_kernels_before_5_13_have_no_full_line_for_the_cpu() -> None:
    assert parse(_CPU.splitlines()[0]) == Pressure(Stall(2.83, 1.56, 0.41, 4.304928), None)


def test_fields_are_found_by_name() -> None:
    assert parse(b"full total=1000000 avg300=3 avg10=1 new=9 avg60=2\n") == Pressure(None, Stall(1.0, 2.0, 3.0, 1.0))


@pytest.mark.parametrize(
    "line",
    [
        b"some avg10=2.83 avg60=1.56 total=4304928",
        b"some avg10=x avg60=1.56 avg300=0.41 total=4304928",
        b"some avg10=100.01 avg60=1.56 avg300=0.41 total=4304928",
        b"some avg10=nan avg60=1.56 avg300=0.41 total=4304928",
        b"some avg10=1 avg60=1 avg300=1 total=-1",
    ],
)
def test_a_damaged_line_costs_itself_only(line: bytes) -> None:
    assert parse(line + b"\n" + _CPU.splitlines()[1]) == Pressure(None, Stall(0.0, 0.0, 0.0, 0.0))
    with pytest.raises(ParseError, match="a line some or full"):
        parse(line)


def test_nothing_usable_is_an_error() -> None:
    with pytest.raises(ParseError):
        parse(b"")


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([b"some ", b"full ", b"avg10=", b"1", b"\n", b"total=", b"\xff"])).map(b"".join)
)
def test_any_bytes_give_a_pressure_or_a_parse_error(raw: bytes) -> None:
    try:
        found = parse(raw)
    except ParseError:
        return
    assert found.some is not None or found.full is not None


@given(st.lists(st.integers(0, 10_000), min_size=3, max_size=3), st.integers(0, 2**63))
def test_what_the_kernel_prints_comes_back(hundredths: list[int], total_us: int) -> None:
    a, b, c = (number / 100 for number in hundredths)
    line = f"some avg10={a:.2f} avg60={b:.2f} avg300={c:.2f} total={total_us}\n"
    assert parse(line.encode()).some == Stall(a, b, c, total_us / 1_000_000)
