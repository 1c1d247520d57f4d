import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.sys_cpu_cache import kind, parse_size_kib


@pytest.mark.parametrize(
    ("raw", "kib"),
    [(b"32K\n", 32), (b"1280K\n", 1280), (b"2M\n", 2048), (b"1G\n", 1_048_576), (b"32768\n", 32), (b"48k\n", 48)],
)
def test_sizes_of_every_suffix(raw: bytes, kib: int) -> None:
    assert parse_size_kib(raw, "size") == kib


@pytest.mark.parametrize("raw", [b"", b"K", b"32X", b"-32K", b"0K", b"32 K", b"3.5M", b"99999G", b"\xffK"])
def test_anything_else_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="size"):
        parse_size_kib(raw, "size")


def test_kinds() -> None:
    assert kind(b"1\n", b"Data\n") == "l1d"
    assert kind(b"1\n", b"Instruction\n") == "l1i"
    assert kind(b"1\n", b"Unified\n") == "l1d"
    assert kind(b"2\n", b"Unified\n") == "l2"
    assert kind(b"3\n", b"Unified\n") == "l3"
    assert kind(b"4\n", b"Unified\n") == ""
    assert kind(b"1\n", b"Separate\n") == ""


@given(st.binary(max_size=30))
def test_any_bytes_give_a_size_or_a_parse_error(raw: bytes) -> None:
    try:
        assert parse_size_kib(raw, "size") > 0
    except ParseError:
        return


@given(st.integers(1, 10_000), st.sampled_from([("K", 1), ("M", 1024)]))
def test_every_size_comes_back(number: int, suffix: tuple[str, int]) -> None:
    assert parse_size_kib(f"{number}{suffix[0]}\n".encode(), "size") == number * suffix[1]
