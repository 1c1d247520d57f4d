import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.cgroup_cpu import parse_max, parse_quota


def test_v2() -> None:
    assert parse_max(b"150000 100000\n", "f") == 1.5
    assert parse_max(b"max 100000\n", "f") is None


def test_v1() -> None:
    assert parse_quota(b"50000\n", b"100000\n", "f") == 0.5
    assert parse_quota(b"-1\n", b"100000\n", "f") is None


@pytest.mark.parametrize(
    "raw", [b"", b"150000\n", b"a b\n", b"150000 0\n", b"0 100000\n", b"-1 100000\n", b"1 2 3\n", b"9" * 5000 + b" 1"]
)
def test_anything_else_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="period"):
        parse_max(raw, "f")


@given(st.binary(max_size=30), st.binary(max_size=10))
def test_any_bytes_give_a_limit_or_a_parse_error(raw: bytes, period: bytes) -> None:
    with contextlib.suppress(ParseError):
        limit = parse_max(raw, "f")
        assert limit is None or limit > 0
    with contextlib.suppress(ParseError):
        limit = parse_quota(raw, period, "f")
        assert limit is None or limit > 0


@given(st.integers(1, 10**9), st.integers(1000, 10**6))
def test_both_versions_agree(quota: int, period: int) -> None:
    assert parse_max(b"%d %d\n" % (quota, period), "f") == parse_quota(b"%d\n" % quota, b"%d\n" % period, "f") == quota / period
