import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.cpu_list import parse


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"0-3,5,7-9\n", [0, 1, 2, 3, 5, 7, 8, 9]),
        (b"0\n", [0]),
        (b"3-4,0-1\n", [0, 1, 3, 4]),
        (b"1,1-2\n", [1, 2]),
        (b"\n", []),
        (b"", []),
        (b" \n", []),
        (b"0-1\n\0", [0, 1]),
    ],
)
def test_lists(raw: bytes, expected: list[int]) -> None:
    assert parse(raw) == expected


@pytest.mark.parametrize("raw", [b"a", b"3-1", b"0-", b"-3", b"0,,1", b"0-1-2", b"0-99999999", b"70000", b"0;1", b"\xb2"])
def test_half_a_list_is_no_list(raw: bytes) -> None:
    with pytest.raises(ParseError, match="/sys/x"):
        parse(raw, "/sys/x")


@given(st.binary(max_size=60) | st.text("0123456789,-\n", max_size=30).map(str.encode))
def test_any_bytes_give_an_ascending_list_or_a_parse_error(raw: bytes) -> None:
    try:
        numbers = parse(raw)
    except ParseError:
        return
    assert numbers == sorted(set(numbers))


@given(st.sets(st.integers(0, 65_535), max_size=40))
def test_every_set_comes_back(cpus: set[int]) -> None:
    assert parse(",".join(map(str, cpus)).encode()) == sorted(cpus)


@given(st.integers(0, 60_000), st.integers(0, 5000))
def test_every_range_comes_back(first: int, more: int) -> None:
    assert parse(f"{first}-{first + more}\n".encode()) == list(range(first, first + more + 1))
