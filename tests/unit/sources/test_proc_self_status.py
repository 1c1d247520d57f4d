import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_self_status import parse_allowed_cpus


def test_reads_the_list() -> None:
    assert parse_allowed_cpus(b"Name:\tx\nCpus_allowed:\t8f\nCpus_allowed_list:\t0-3,7\nMems_allowed_list:\t0\n") == [
        0,
        1,
        2,
        3,
        7,
    ]


@pytest.mark.parametrize("raw", [b"", b"Name:\tx\n", b"Cpus_allowed_list:\t\n", b"Cpus_allowed_list:\t0-x\n"])
def test_no_processor_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError):
        parse_allowed_cpus(raw)


@given(st.binary(max_size=100) | st.binary(max_size=20).map(lambda tail: b"Cpus_allowed_list:" + tail))
def test_any_bytes_give_processors_or_a_parse_error(raw: bytes) -> None:
    try:
        assert parse_allowed_cpus(raw)
    except ParseError:
        return


@given(st.sets(st.integers(0, 4095), min_size=1, max_size=10))
def test_every_set_comes_back(cpus: set[int]) -> None:
    raw = b"Name:\tx\nCpus_allowed_list:\t%s\n" % ",".join(map(str, cpus)).encode()
    assert parse_allowed_cpus(raw) == sorted(cpus)
