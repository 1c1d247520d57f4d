"""/proc/uptime."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_uptime import Uptime, parse


def test_the_two_numbers() -> None:
    assert parse(b"350735.47 234388.90\n") == Uptime(350735.47, 234388.9)


@pytest.mark.parametrize("raw", [b"", b"1.0", b"a b", b"nan 1", b"inf 1", b"-1 1", b"1 -1", b"1 inf"])
def test_what_is_no_uptime(raw: bytes) -> None:
    with pytest.raises(ParseError, match="/proc/uptime, line 1"):
        parse(raw)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        uptime = parse(raw)
    except ParseError:
        return
    assert 0 <= uptime.up_s < float("inf")
