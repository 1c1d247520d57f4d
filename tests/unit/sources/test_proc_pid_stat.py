"""/proc/PID/stat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_pid_stat import STATES, ProcessStat, parse

_TAIL = " 2 0 0 0 -1 69238880 0 0 0 0 0 12 0 0 20 0 7 0 4321 0 0 18446744073709551615 0 0"


def test_a_kernel_thread() -> None:
    assert parse(b"412 (kworker/0:1) D" + _TAIL.encode()) == ProcessStat("kworker/0:1", "D", 7, 4321)


@pytest.mark.parametrize("name", ["a b", "(sd-pam)", ") R 1 (", "x) Z 1 2 3", "a\nb", ""])
def test_a_name_may_hold_anything(name: str) -> None:
    assert parse(f"1 ({name}) S{_TAIL}".encode()) == ProcessStat(name, "S", 7, 4321)


def test_an_undecodable_name_is_replaced() -> None:
    assert parse(b"1 (\xff) Z" + _TAIL.encode()).name == "\ufffd"


def test_a_negative_count_of_threads_is_none() -> None:
    assert parse(b"1 (a) Z" + _TAIL.replace(" 7 ", " -1 ").encode()).threads == 0


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"1 (a) S",
        b"1 a S" + _TAIL.encode(),
        b")1(" + _TAIL.encode(),
        b"1 (a) \xff" + _TAIL.encode(),
        b"1 (a) S" + _TAIL.replace("4321", "x").encode(),
    ],
)
def test_what_is_no_stat_line(raw: bytes) -> None:
    with pytest.raises(ParseError, match="/proc/PID/stat"):
        parse(raw)


def test_each_state_has_a_word() -> None:
    assert (STATES["D"], STATES["Z"], STATES["I"], STATES["R"]) == ("disk_sleep", "zombie", "idle", "running")


@given(st.binary(max_size=200))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        assert parse(raw).threads >= 0
    except ParseError:
        return


@given(st.binary(max_size=16), st.sampled_from(sorted(STATES)), st.integers(0, 10**6), st.integers(0, 2**62))
def test_what_the_kernel_writes_is_read_back(name: bytes, state: str, threads: int, start: int) -> None:
    raw = b"9 (" + name + f") {state} 2 0 0 0 -1 0 0 0 0 0 0 12 0 0 20 0 {threads} 0 {start} 0".encode()
    assert parse(raw) == ProcessStat(name.decode("utf-8", "replace"), state, threads, start)
