"""Numbers, sub-codes and severity words of Xids and SXids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.event import Severity
from nodeproof.model.fault import FaultClass
from nodeproof.sources.xid_catalogue import SXIDS, XIDS, sxid_entry, xid_detail, xid_entry

_NVLINK = "NVRM: Xid (PCI:0019:01:00): {}, pid={}, name={}, NETIR {} XC0 i0 Link -1 (0x000fe406 0x0 0x0 0x0 0x0 0x0)"
_RECOVERY = "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x{} ({})"


@pytest.mark.parametrize(
    ("code", "is_", "severity", "stands"),
    [
        ("31", FaultClass.APPLICATION, Severity.INFO, False),
        ("45", FaultClass.APPLICATION, Severity.INFO, False),
        ("48", FaultClass.ECC_UNCORRECTED, Severity.CRITICAL, True),
        ("63", FaultClass.MEMORY_REPAIR, Severity.WARNING, False),
        ("64", FaultClass.MEMORY_REPAIR, Severity.CRITICAL, True),
        ("79", FaultClass.LOST, Severity.CRITICAL, True),
        ("94", FaultClass.ECC_UNCORRECTED, Severity.WARNING, True),
        ("95", FaultClass.ECC_UNCORRECTED, Severity.CRITICAL, True),
        ("119", FaultClass.DRIVER_HUNG, Severity.CRITICAL, True),
        ("14", FaultClass.UNKNOWN, Severity.WARNING, False),
        ("99999", FaultClass.UNKNOWN, Severity.WARNING, False),
    ],
)
def test_numbers(code: str, is_: FaultClass, severity: Severity, stands: bool) -> None:  # noqa: FBT001 - a table
    entry = xid_entry(code, f"NVRM: Xid (PCI:0000:05:00): {code}, x")
    assert (entry.fault_class, entry.severity, entry.stands) == (is_, severity, stands)
    assert entry.action


def test_words_of_nvlink_errors_decide() -> None:
    """Case 14: 145 nonfatal, 149 fatal."""
    mild = xid_entry("145", _NVLINK.format(145, 1, "ray::WorkerDict", "Nonfatal"))
    grave = xid_entry("149", _NVLINK.format(149, 1, "a", "Fatal"))
    assert (mild.severity, mild.fault_class, mild.quiet_s) == (Severity.WARNING, FaultClass.LINK_DEGRADED, 86400.0)
    assert (grave.severity, grave.fault_class, grave.quiet_s) == (Severity.CRITICAL, FaultClass.LINK_DOWN, 0.0)
    detail = xid_detail(_NVLINK.format(149, "'<unknown>'", "<unknown>", "Fatal"))
    assert (detail.unit, detail.severity_word, detail.link) == ("NETIR", "Fatal", "-1")
    assert detail.as_detail() == {"unit": "NETIR", "severity_word": "Fatal", "link": "-1"}


def test_a_program_that_names_itself_after_an_error_changes_nothing() -> None:
    entry = xid_entry("145", _NVLINK.format(145, 7, "NETIR Fatal XC0 i0 Link 1", "Nonfatal"))
    assert entry.severity is Severity.WARNING
    assert xid_detail(_NVLINK.format(145, 7, "x", "Nonfatal")).as_detail() == {
        "pid": "7",
        "process": "x",
        "unit": "NETIR",
        "severity_word": "Nonfatal",
        "link": "-1",
    }


@pytest.mark.parametrize(
    ("action", "severity", "stands"),
    [
        ("GPU Reset Required", Severity.CRITICAL, True),
        ("Node Reboot Required", Severity.CRITICAL, True),
        ("Drain P2P", Severity.CRITICAL, True),
        ("Drain and Reset", Severity.CRITICAL, True),
        ("None", Severity.INFO, False),
        ("Something New", Severity.WARNING, False),
    ],
)
def test_xid_154_says_what_it_wants(action: str, severity: Severity, stands: bool) -> None:  # noqa: FBT001 - a table
    line = _RECOVERY.format(1, action)
    entry = xid_entry("154", line)
    assert (entry.severity, entry.stands, entry.fault_class) == (severity, stands, FaultClass.RESET_REQUIRED)
    assert xid_detail(line).recovery == action


@pytest.mark.parametrize(
    ("code", "word", "severity", "stands"),
    [
        ("20034", "Fatal", Severity.CRITICAL, True),
        ("12028", "Non-fatal", Severity.INFO, False),
        ("19084", "Non-fatal", Severity.WARNING, True),
        ("11004", "Non-fatal", Severity.WARNING, False),
        ("11004", "Fatal", Severity.CRITICAL, True),
        ("20001", "", Severity.WARNING, True),
    ],
)
def test_sxids_by_word_then_number(code: str, word: str, severity: Severity, stands: bool) -> None:  # noqa: FBT001 - a table
    entry = sxid_entry(code, f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {code}, {word}, Link 30 LTSSM Fault Up")
    assert (entry.severity, entry.stands) == (severity, stands)


def test_every_entry_says_what_it_means_and_what_to_do() -> None:
    for number, entry in {**XIDS, **SXIDS}.items():
        assert entry.meaning.endswith("."), number
        assert entry.action.endswith("."), number
        assert entry.stands or not entry.quiet_s, number
        if entry.fault_class is FaultClass.APPLICATION:
            assert entry.severity is Severity.INFO, number
            assert "replace" not in entry.action, number
    assert len(XIDS) > 120


@given(st.text(max_size=300), st.integers(0, 10**5 - 1))
def test_any_line_has_a_meaning(body: str, number: int) -> None:
    line = f"NVRM: Xid (PCI:0000:05:00): {number}, {body}"
    assert xid_entry(str(number), line).meaning
    assert sxid_entry(str(number), line).meaning
    assert all(isinstance(text, str) for text in xid_detail(body))
