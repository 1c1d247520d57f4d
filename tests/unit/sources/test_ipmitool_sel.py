"""The BMC's event log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.ipmitool_sel import SelEntry, parse, parse_info
from support.bmc import ipmitool_output


def test_info() -> None:
    info = parse_info(ipmitool_output("supermicro.sel_info"))
    assert (info.entries, info.used_percent, info.overflow) == (5, 0.0, False)
    assert info.last_add == "11/30/26 UTC 21:14:09"


def test_share_by_bytes_where_the_bmc_does_not_state_it() -> None:
    # 3600 entries of 16 bytes are 57600; 57600 / (57600 + 6400) = 90 %.
    info = parse_info(ipmitool_output("huawei.sel_info"))
    assert (info.entries, info.used_percent, info.overflow) == (3600, 90.0, True)


@pytest.mark.parametrize(
    ("lines", "used"),
    [
        ("Percent Used : 42%", 42.0),
        ("Percent Used : 101%", None),
        ("# of Alloc Units : 400\n# Free Units : 100", 75.0),
        ("# of Alloc Units : 100\n# Free Units : 400", None),
        ("# of Alloc Units : 0\n# Free Units : 0", None),
        ("Free Space : 65535 bytes or unspecified", None),
        ("Free Space : unknown", None),
        ("", None),
    ],
)
def test_share_in_use(lines: str, used: float | None) -> None:
    assert parse_info(f"Entries : 8\n{lines}\n".encode()).used_percent == used


def test_an_empty_log_with_no_room_has_no_share() -> None:
    assert parse_info(b"Entries : 0\nFree Space : 0 bytes\n").used_percent is None


@pytest.mark.parametrize("raw", [b"", b"Entries : unknown\n", b"Get SEL Info command failed\n", b"Entries : 99999999999\n"])
def test_info_without_a_count_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="sel info"):
        parse_info(raw)


def test_entries_before_the_clock_was_set_are_kept() -> None:
    """prometheus-community/ipmi_exporter#198."""
    first = parse(ipmitool_output("supermicro.sel_elist"))[0]
    assert first == SelEntry(
        1,
        "Pre-Init 0000000015",
        dated=False,
        sensor="Physical Security Chassis Intru",
        event="General Chassis intrusion",
        asserted=True,
        critical=False,
    )


def test_post_init_dates_are_no_dates() -> None:
    entry = parse(b"5 | PostInit | PostInit | Fan FAN1 | Lower Critical going low | Asserted\n")[0]
    assert (entry.dated, entry.critical) == (False, True)


def test_numbers_are_hexadecimal_and_only_what_began_is_critical() -> None:
    entries = parse(ipmitool_output("supermicro.sel_elist"))
    assert [(entry.number, entry.asserted, entry.critical) for entry in entries] == [
        (1, True, False),
        (2, True, False),
        (3, True, True),
        (4, False, False),
        (10, True, False),
    ]


@pytest.mark.parametrize(
    ("event", "critical"),
    [
        ("Upper Non-critical going high", False),
        ("Upper Critical going high", True),
        ("Lower Non-recoverable going low", True),
        ("Correctable ECC", False),
        ("Uncorrectable ECC", True),
        ("Failure detected ()", True),
        ("Predictive failure", False),
        ("Redundancy Lost", True),
        ("Fully Redundant", False),
        ("IERR", True),
        ("Log area reset/cleared", False),
        ("Drive Fault", True),
        ("OEM record dd", False),
    ],
)
def test_what_is_critical(event: str, critical: bool) -> None:  # noqa: FBT001 - a column of the table above
    assert parse(f"   1 | 11/30/2026 | 22:20:41 | Sensor X | {event} | Asserted\n".encode())[0].critical is critical


def test_without_the_last_column_an_event_is_one_that_began() -> None:
    entry = parse(b"1 | 11/30/2026 | 22:20:41 | Memory | Uncorrectable ECC\n")[0]
    assert (entry.asserted, entry.critical) == (True, True)


@pytest.mark.parametrize("raw", [b"", b"\n", b"SEL has no entries\n"])
def test_an_empty_log(raw: bytes) -> None:
    assert parse(raw) == []


@pytest.mark.parametrize("raw", [b"Get SEL Info command failed\n", b"zz | 11/30/2026 | 1 | a | b | Asserted\n", b"1 | 2 | 3\n"])
def test_other_text_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="sel elist"):
        parse(raw)


@given(st.binary(max_size=300))
def test_any_bytes(raw: bytes) -> None:
    for read in (parse, parse_info):
        try:
            read(raw)
        except ParseError:
            continue


@given(st.lists(st.tuples(st.integers(1, 0xFFFF), st.booleans()), min_size=1, max_size=20))
def test_entries_round_trip(events: list[tuple[int, bool]]) -> None:
    raw = "".join(
        f"{number:4x} | 11/30/2026 | 22:20:41 | Fan FAN1 | Lower Critical going low | {'Asserted' if began else 'Deasserted'}\n"
        for number, began in events
    ).encode()
    assert [(entry.number, entry.asserted, entry.critical) for entry in parse(raw)] == [
        (number, began, began) for number, began in events
    ]
