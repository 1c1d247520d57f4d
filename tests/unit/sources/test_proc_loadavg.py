import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_loadavg import LoadAverage, parse


def test_reads_the_line() -> None:
    assert parse(b"0.35 0.25 0.15 2/287 12345\n") == LoadAverage(0.35, 0.25, 0.15, 2, 287)


@pytest.mark.parametrize("raw", [b"", b"0.35 0.25\n", b"a b c 2/287 1\n", b"0.35 0.25 0.15 2 1\n", b"0.35 0.25 0.15 /287 1\n"])
def test_anything_else_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="three averages"):
        parse(raw)


@pytest.mark.parametrize(
    "raw", [b"nan 0.25 0.15 2/287 1\n", b"inf 0.25 0.15 2/287 1\n", b"-1 0.25 0.15 2/287 1\n", b"0.1 0.2 0.3 -2/287 1\n"]
)
def test_what_no_kernel_says_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError):
        parse(raw)


@given(st.binary(max_size=80))
def test_any_bytes_give_a_load_or_a_parse_error(raw: bytes) -> None:
    try:
        load = parse(raw)
    except ParseError:
        return
    assert min(load) >= 0


@given(st.lists(st.integers(0, 10**7), min_size=3, max_size=3), st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_the_kernel_prints_comes_back(hundredths: list[int], running: int, total: int) -> None:
    a, b, c = (number / 100 for number in hundredths)
    assert parse(f"{a:.2f} {b:.2f} {c:.2f} {running}/{total} 1\n".encode()) == (a, b, c, running, total)
