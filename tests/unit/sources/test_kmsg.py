"""One record of /dev/kmsg."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.kmsg import KmsgRecord, parse
from support.kernel_log import fixture, record


def test_a_record_of_the_kernel() -> None:
    raw = b"4,2001,5550000001,-;NVRM: Xid (PCI:0000:01:00): 31, pid=99"
    assert parse(raw) == KmsgRecord(0, 4, 2001, 5_550_000_001, False, "NVRM: Xid (PCI:0000:01:00): 31, pid=99", {})


def test_facility_and_level_come_from_one_number() -> None:
    parsed = parse(b"12,2002,5550000002,-;text")  # 12 = 1 * 8 + 4: facility user, level warning
    assert (parsed.facility, parsed.level) == (1, 4)


def test_dictionary_lines_belong_to_their_record_and_are_no_messages() -> None:
    """Case 18: continuation and dictionary lines were taken for messages."""
    raw = b"\n".join(fixture("forged.txt").encode().splitlines()[-3:])
    parsed = parse(raw)
    assert parsed.sequence == 2004
    assert parsed.text == "text with escaped byte \n and tab"
    assert parsed.fields == {"SUBSYSTEM": "pci", "DEVICE": "+pci:0000:01:00.0"}


@pytest.mark.parametrize(("flag", "continued"), [(b"-", False), (b"c", True), (b"+", True)])
def test_fragments_are_marked(flag: bytes, continued: bool) -> None:  # noqa: FBT001 - a table's column
    assert parse(b"6,2003,5550000003," + flag + b";part one").continued is continued


def test_further_header_fields_are_tolerated() -> None:
    assert parse(b"6,339,5140900,-,caller=T1,new=x;Freeing").text == "Freeing"
    assert parse(b"6,339,5140900;Freeing").text == "Freeing"


def test_escapes_and_undecodable_bytes() -> None:
    assert parse(rb"6,1,2,-;caf\xc3\xa9 \x5cx41 \xff end\x").text == "café \\x41 \ufffd end\\x"


def test_dictionary_lines_without_equals_or_space_are_passed_over() -> None:
    assert parse(b"6,1,2,-;text\n SUBSYSTEM\nDEVICE=b1:2\n A=b=c\n").fields == {"A": "b=c"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"6,1,2,-",
        b"6,1;t",
        b"a,1,2,-;t",
        b"6,-1,2,-;t",
        b"6,1,,-;t",
        b"6,1," + b"9" * 21 + b",-;t",
        b"6,1," + b"9" * 20 + b",-;t",
    ],
)
def test_what_is_no_record_says_what_was_expected(raw: bytes) -> None:
    with pytest.raises(ParseError, match="/dev/kmsg: found "):
        parse(raw)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        parsed = parse(raw)
    except ParseError:
        return
    assert parsed.sequence >= 0


@given(st.text(max_size=100), st.integers(0, 2**40), st.integers(0, 23), st.integers(0, 7))
def test_round_trip_through_the_kernels_escapes(text: str, sequence: int, facility: int, level: int) -> None:
    text = text.encode("utf-8", "ignore").decode()
    parsed = parse(record(text, sequence=sequence, time_us=sequence, facility=facility, level=level))
    assert parsed == KmsgRecord(facility, level, sequence, sequence, False, text, {})
