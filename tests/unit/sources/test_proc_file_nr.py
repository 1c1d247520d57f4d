"""/proc/sys/fs/file-nr."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_file_nr import FileHandles, parse


def test_a_modern_kernel() -> None:
    assert parse(b"1632\t0\t9223372036854775807\n") == FileHandles(1632, 9223372036854775807)


def test_free_handles_of_old_kernels_are_not_in_use() -> None:
    assert parse(b"1632\t32\t100000\n") == FileHandles(1600, 100000)
    assert parse(b"10\t32\t100000\n").used == 0


@pytest.mark.parametrize("raw", [b"", b"1 2", b"1 2 0", b"1 2 x", b"x 2 3", b"1 -2 3"])
def test_what_is_no_count(raw: bytes) -> None:
    with pytest.raises(ParseError, match="file-nr"):
        parse(raw)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        handles = parse(raw)
    except ParseError:
        return
    assert handles.used >= 0
    assert handles.most > 0
