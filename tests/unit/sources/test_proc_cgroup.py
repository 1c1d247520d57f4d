"""``/proc/self/cgroup`` and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_cgroup import CgroupPaths, parse, parse_limit

_HYBRID = b"9:name=systemd:/\n4:memory:/docker/3386\n3:cpu,cpuacct:/docker/3386\n0::/system.slice/x.service\n"


def test_a_hybrid_host_has_both_kinds() -> None:
    assert parse(_HYBRID) == CgroupPaths(
        {"memory": "/docker/3386", "cpu": "/docker/3386", "cpuacct": "/docker/3386"}, "/system.slice/x.service"
    )


def test_v2_alone() -> None:
    assert parse(b"0::/\n") == CgroupPaths({}, "/")


def test_a_path_may_hold_colons() -> None:
    assert parse(b"4:memory:/a:b:c\n").v1 == {"memory": "/a:b:c"}


@pytest.mark.parametrize("bad", [b"x:memory:/", b"4:memory", b"4:memory:relative", b"", b"\xff\xfe"])
def test_a_damaged_line_costs_only_itself(bad: bytes) -> None:
    assert parse(bad + b"\n0::/\n") == CgroupPaths({}, "/")


@pytest.mark.parametrize("raw", [b"", b"1:name=systemd:/\n", b"nothing"])
def test_nothing_usable_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="/proc/self/cgroup"):
        parse(raw)


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        paths = parse(raw)
    except ParseError:
        return
    assert all(path.startswith("/") for path in paths.v1.values())


@pytest.mark.parametrize(
    ("raw", "limit"),
    [
        (b"max\n", None),
        (b"9223372036854771712\n", None),  # 2^63 - 4096: no limit, pages of 4 KiB
        (b"9223372036854710272\n", None),  # 2^63 - 65536: no limit, pages of 64 KiB
        (b"536870912\n", 536870912),
        (b"0\n", 0),
    ],
)
def test_limits(raw: bytes, limit: int | None) -> None:
    assert parse_limit(raw, "memory.max") == limit


@pytest.mark.parametrize("raw", [b"", b"-1", b"maximum", b"1 2", b"9" * 30])
def test_what_is_no_limit_is_an_error_that_names_the_file(raw: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        parse_limit(raw, "/sys/fs/cgroup/memory.max")
    assert raised.value.source == "/sys/fs/cgroup/memory.max"


@given(st.binary(max_size=40))
def test_any_bytes_are_a_limit_or_an_error(raw: bytes) -> None:
    try:
        limit = parse_limit(raw, "x")
    except ParseError:
        return
    assert limit is None or 0 <= limit < 1 << 62
