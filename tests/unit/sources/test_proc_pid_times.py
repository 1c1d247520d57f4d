"""CPU time of one process out of its stat line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_pid_times import ProcessTimes, parse

LINE = (
    b"412 (xhpl) R 400 412 400 0 -1 4194304 10 0 0 0 8300 120 7 3 20 0 2 0 99000 1000 200 18446744073709551615 1 1 0"
    b" 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)


def test_a_line_of_a_worker() -> None:
    assert parse(LINE) == ProcessTimes("xhpl", 400, 99_000, 8_420, 10, 1, kernel_thread=False)


def test_a_kernel_thread_and_a_shortened_line() -> None:
    line = b"15 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 1 4 0 0 20 0 1 0 30"
    assert parse(line) == ProcessTimes("ksoftirqd/0", 2, 30, 5, 0, None, kernel_thread=True)


def test_a_name_may_hold_parentheses_and_line_breaks() -> None:
    assert parse(LINE.replace(b"(xhpl)", b"(a) S 1 (\nb)")).name == "a) S 1 (\nb"


@pytest.mark.parametrize(
    "raw", [b"", b"412 xhpl R 400", b"412 (xhpl) R 400 412", LINE.replace(b" 8300 ", b" -1 "), LINE.replace(b" 7 ", b" x ")]
)
def test_anything_else_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="/proc/PID/stat"):
        parse(raw)


@given(st.binary(max_size=300))
def test_any_bytes_give_times_or_a_parse_error(raw: bytes) -> None:
    try:
        times = parse(raw)
    except ParseError:
        return
    assert min(times.own_ticks, times.child_ticks, times.start_ticks) >= 0


@given(st.text(max_size=15), st.lists(st.integers(0, 2**60), min_size=4, max_size=4), st.integers(0, 2**40))
def test_whatever_was_written_is_read(name: str, times: list[int], start: int) -> None:
    raw = f"7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 {' '.join(map(str, times))} 20 0 1 0 {start}".encode("utf-8", "replace")
    read = parse(raw)
    assert (read.own_ticks, read.child_ticks, read.start_ticks) == (times[0] + times[1], times[2] + times[3], start)
