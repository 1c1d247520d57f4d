import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources.smartctl_text import parse
from support.smartctl import smartctl_output

_HEAD = b"smartctl 6.5 2016-05-07 r4318 [x86_64-linux-3.10.0] (local build)\nCopyright (C) 2002-16, Bruce Allen\n\n"


def test_a_sata_disk_of_a_version_without_json() -> None:
    report = parse(smartctl_output("v6-sata.txt"), 0)
    assert (report.status, report.temperature_c) == ("PASSED", 38.0)
    assert report.counts == {"reallocated_sectors": 3, "power_on_time": 180, "failing_attributes": 0}


@pytest.mark.parametrize(
    ("text", "exit_status", "status"),
    [
        (b"SMART overall-health self-assessment test result: FAILED!\n", 8, "FAILED"),
        (b"SMART overall-health self-assessment test result: PASSED\n", 8, "FAILED"),
        (b"SMART overall-health self-assessment test result: PASSED\n", 64, "PASSED"),
        (b"SMART Health Status: OK\n", 0, "PASSED"),
        (b"SMART Health Status: FAILURE PREDICTION THRESHOLD EXCEEDED [asc=5d, ascq=0]\n", 0, "FAILED"),
        (b"SMART Health Status: HARDWARE IMPENDING FAILURE [asc=5d, ascq=10]\n", 0, "FAILED"),
    ],
)
def test_verdicts(text: bytes, exit_status: int, status: str) -> None:
    assert parse(_HEAD + text, exit_status).status == status


def test_an_unknown_status_of_scsi_is_no_verdict() -> None:
    report = parse(_HEAD + b"SMART Health Status: something new\nCurrent Drive Temperature:     32 C\n", 0)
    assert (report.status, report.temperature_c) == ("", 32.0)
    assert report.no_status is not None
    assert report.no_status.state is Absence.UNKNOWN


def test_temperature_of_nvme() -> None:
    text = b"SMART overall-health self-assessment test result: PASSED\nTemperature:                        30 Celsius\n"
    assert parse(_HEAD + text, 0).temperature_c == 30.0


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (b"Smartctl open device: /dev/sda failed: Permission denied\n", Absence.NO_PERMISSION),
        (b"Device is in STANDBY mode, exit(2)\n", Absence.UNKNOWN),
        (b"/dev/sda: Unknown USB bridge [0x1:0x2]\n", Absence.UNSUPPORTED),
    ],
)
def test_defect_13_refusals_are_no_failed_disk(text: bytes, state: Absence) -> None:
    with pytest.raises(NoData) as caught:
        parse(_HEAD + text, 2)
    assert caught.value.state is state
    assert "Copyright" not in caught.value.reason


def test_nothing_usable_is_an_error() -> None:
    with pytest.raises(ParseError, match="smartctl -H -A"):
        parse(_HEAD, 0)


@given(st.binary(max_size=300), st.integers(0, 255))
def test_arbitrary_bytes(raw: bytes, exit_status: int) -> None:
    try:
        report = parse(raw, exit_status)
    except (ParseError, NoData):
        return
    assert report.status in {"", "PASSED", "FAILED"}
