import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources.smartctl import EXIT_BITS, Asleep, exit_notes, parse
from support.smartctl import smartctl_output


def _refused(name: str) -> NoData:
    with pytest.raises(NoData) as caught:
        parse(smartctl_output(name))
    return caught.value


def test_case_41_a_command_that_failed_costs_no_values() -> None:
    report = parse(smartctl_output("case-41.1.json"))
    assert (report.status, report.temperature_c, report.counts) == ("PASSED", 31.0, {"power_on_time": 43512.0})
    assert report.notes == ("command_failed",)


def test_case_41_a_raid_controller_is_no_verdict_and_names_the_way() -> None:
    absence = _refused("case-41.2.json")
    assert absence.state is Absence.UNKNOWN
    assert "megaraid,N" in absence.remedy


def test_case_41_bit_3_is_a_failing_disk() -> None:
    report = parse(smartctl_output("case-41.3.json"))
    assert (report.status, report.temperature_c, report.notes) == ("FAILED", 39.0, ())


def test_case_41_entries_in_the_error_log_are_a_remark() -> None:
    report = parse(smartctl_output("case-41.4.json"))
    assert (report.status, report.notes) == ("PASSED", ("error_log",))


@pytest.mark.parametrize("bit", range(8))
def test_case_41_each_bit_alone(bit: int) -> None:
    raw = json.dumps({"smartctl": {"exit_status": 1 << bit}, "smart_status": {"passed": True}}).encode()
    if bit < 2:
        with pytest.raises(NoData):
            parse(raw)
        return
    report = parse(raw)
    assert report.status == ("FAILED" if bit == 3 else "PASSED")
    assert report.notes == (() if bit == 3 else (EXIT_BITS[bit],))


def test_all_bits_at_once() -> None:
    assert exit_notes(0xFF) == (
        "command_failed",
        "prefail_attribute",
        "attribute_at_threshold_once",
        "error_log",
        "selftest_log",
    )


def test_a_sata_disk() -> None:
    report = parse(smartctl_output("sata-hdd.json"))
    assert (report.model, report.serial, report.firmware, report.interface) == ("EXAMPLE HDD4000", "EX0001", "A1B2", "SATA")
    assert (report.status, report.no_status, report.temperature_c) == ("PASSED", None, 36.0)
    assert report.limits_c == {"warning": 60.0, "critical": 65.0}
    assert report.counts == {
        "reallocated_sectors": 8,
        "pending_sectors": 2,
        "offline_uncorrectable": 1,
        "crc_errors": 12,
        "failing_attributes": 0,
        "error_log_entries": 3,
        "power_on_time": 13140,
    }
    assert (report.critical_warning, report.spare_percent, report.sensors_c, report.notes) == (None, None, {}, ())


def test_a_sata_ssd_tells_its_endurance() -> None:
    report = parse(smartctl_output("sata-ssd.json"))
    assert report.counts["percentage_used"] == 17
    assert report.counts["error_log_entries"] == 2
    assert report.notes == ("error_log",)


def test_a_sas_disk() -> None:
    report = parse(smartctl_output("sas-hdd.json"))
    assert (report.model, report.firmware, report.interface) == ("EXAMPLE SAS2400", "EF06", "SAS")
    assert report.limits_c == {"critical": 65.0}
    # uncorrected: 2 read + 1 written + 0 verified
    assert report.counts == {"reallocated_sectors": 4, "media_errors": 3, "power_on_time": 12437, "percentage_used": 3}


def test_an_nvme_disk_that_is_worn_has_not_failed() -> None:
    report = parse(smartctl_output("nvme.json"))
    assert (report.status, report.interface, report.temperature_c) == ("PASSED", "PCIe", 34.0)
    assert report.counts == {
        "media_errors": 0,
        "unsafe_shutdowns": 5,
        "error_log_entries": 77,
        "power_on_time": 10407,
        "percentage_used": 101,
    }
    assert (report.spare_percent, report.spare_threshold_percent, report.critical_warning) == (98.0, 10.0, 0)
    assert report.sensors_c == {1: 34.0, 3: 41.0}  # sensor 2 is absent, sensor 4 at 0 K is not set
    assert report.limits_c == {"warning": 75.0, "critical": 80.0}


def test_case_45_a_disk_that_is_hot_warns_and_its_sensors_disagree() -> None:
    report = parse(smartctl_output("nvme-hot.json"))
    assert (report.status, report.critical_warning, report.temperature_c) == ("WARNING", 2, 84.0)
    assert report.notes == ("sensors_disagree",)  # 84 and 40


@pytest.mark.parametrize("threshold", [-273, 0, 65262, 65261.85, None, "75", True])
def test_case_45_thresholds_that_are_not_set(threshold: object) -> None:
    raw = {"smartctl": {"exit_status": 0}, "nvme_composite_temperature_threshold": {"warning": threshold, "critical": threshold}}
    assert parse(json.dumps(raw).encode()).limits_c == {}


def test_an_nvme_disk_that_turned_read_only_has_failed() -> None:
    report = parse(smartctl_output("nvme-read-only.json"))
    assert (report.status, report.critical_warning, report.counts["percentage_used"]) == ("FAILED", 11, 255)


def test_attributes_at_their_threshold_count_when_they_foretell_failure() -> None:
    report = parse(smartctl_output("failing.json"))
    assert report.status == "FAILED"
    assert report.counts["failing_attributes"] == 2  # 5 and 184; 202 is wear
    assert report.notes == ("prefail_attribute",)


@pytest.mark.parametrize(
    ("name", "state", "word"),
    [
        ("megaraid.json", Absence.UNKNOWN, "MegaRaid"),
        ("usb-bridge.json", Absence.UNSUPPORTED, "USB bridge"),
        ("permission.json", Absence.NO_PERMISSION, "may not open"),
        ("no-device-type.json", Absence.UNSUPPORTED, "device type"),
    ],
)
def test_defect_13_what_could_not_be_read_is_no_failed_disk(name: str, state: Absence, word: str) -> None:
    absence = _refused(name)
    assert absence.state is state
    assert word in absence.reason
    if state is Absence.NO_PERMISSION:
        assert "CAP_SYS_RAWIO" in absence.remedy


@pytest.mark.parametrize("exit_status", [0, 2])
def test_a_sleeping_disk_is_known_for_one(exit_status: int) -> None:
    raw = smartctl_output("standby.json").replace(b'"exit_status":2', b'"exit_status":%d' % exit_status)
    with pytest.raises(Asleep) as caught:
        parse(raw)
    assert caught.value.state is Absence.UNKNOWN


@pytest.mark.parametrize(
    ("name", "state"), [("smart-disabled.json", Absence.UNSUPPORTED), ("smart-absent.json", Absence.UNSUPPORTED)]
)
def test_no_smart_is_no_verdict(name: str, state: Absence) -> None:
    report = parse(smartctl_output(name))
    assert report.status == ""
    assert report.no_status is not None
    assert report.no_status.state is state


def test_no_verdict_and_no_reason_is_unknown() -> None:
    raw = b'{"smartctl":{"exit_status":4,"messages":[{"string":"SMART Status command failed"},7]}}'
    report = parse(raw)
    assert report.no_status is not None
    assert report.no_status.state is Absence.UNKNOWN
    assert "SMART Status command failed" in report.no_status.reason


def test_open_failed_without_a_word_is_unknown() -> None:
    with pytest.raises(NoData, match="it does not say why"):
        parse(b'{"smartctl":{"exit_status":2}}')


def test_a_warning_printed_before_the_object_does_no_harm() -> None:
    assert parse(b"libusb: warning\n" + smartctl_output("nvme.json") + b"\n").status == "PASSED"


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"{}", b'{"smartctl":[]}', b"smartctl 6.5\n", b'{"a":' * 3000, smartctl_output("nvme.json")[:200]]
)
def test_what_is_no_answer_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="smartctl --json"):
        parse(raw)


@pytest.mark.parametrize(
    ("device", "interface"),
    [
        ({"type": "usbjmicron", "protocol": "ATA"}, "USB"),
        ({"type": "sat", "info_name": "/dev/sda [USB NVMe]", "protocol": "NVMe"}, "USB"),
        ({"type": "sat", "protocol": "ATA"}, "SATA"),
        ({"type": "scsi", "protocol": "SCSI"}, "SCSI"),
        ({}, ""),
    ],
)
def test_interfaces(device: dict[str, str], interface: str) -> None:
    assert parse(json.dumps({"smartctl": {"exit_status": 0}, "device": device}).encode()).interface == interface


def _with(**more: Any) -> bytes:
    return json.dumps({"smartctl": {"exit_status": 0}, **more}).encode()


@pytest.mark.parametrize("number", [194, 190])
def test_temperature_out_of_the_table_where_nothing_else_tells(number: int) -> None:
    row = {"id": number, "value": 62, "raw": {"value": 38, "string": "38 (Min/Max 20/45)"}}
    assert parse(_with(ata_smart_attributes={"table": [row, "torn", {"id": 999}]})).temperature_c == 38.0


def test_temperature_of_the_health_log_alone() -> None:
    assert parse(_with(nvme_smart_health_information_log={"temperature": 40})).temperature_c == 40.0


@pytest.mark.parametrize("value", [-273, 65262, True, None, "30", 10**400])
def test_temperatures_that_no_disk_can_have(value: object) -> None:
    assert parse(_with(temperature={"current": value})).temperature_c is None


def test_hours_fall_back_on_the_table_when_the_stated_ones_cannot_be() -> None:
    row = {"id": 9, "raw": {"value": 127865471384782, "string": "127865471384782"}}
    table = {"table": [{"id": 9, "raw": {"string": "lots"}}, row]}
    assert parse(_with(power_on_time={"hours": 10**9}, ata_smart_attributes=table)).counts["power_on_time"] == 15566


def test_raw_values_without_text() -> None:
    table = {"table": [{"id": 5, "raw": {"value": 7}}]}
    assert parse(_with(ata_smart_attributes=table)).counts["reallocated_sectors"] == 7


def test_counters_that_are_none_are_left_out() -> None:
    more = {"scsi_grown_defect_list": -1, "scsi_error_counter_log": {"read": {}}, "ata_smart_error_log": {}}
    assert parse(_with(**more)).counts == {}


@given(st.binary(max_size=200))
def test_arbitrary_bytes(raw: bytes) -> None:
    with pytest.raises((ParseError, NoData)):
        parse(raw)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "temperature",
                    "current",
                    "table",
                    "id",
                    "raw",
                    "string",
                    "value",
                    "flags",
                    "passed",
                    "hours",
                    "count",
                    "read",
                    "exit_status",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "smart_status",
                "temperature",
                "ata_smart_attributes",
                "nvme_smart_health_information_log",
                "scsi_error_counter_log",
                "scsi_grown_defect_list",
                "power_on_time",
                "device",
                "model_name",
                "nvme_composite_temperature_threshold",
                "ata_smart_error_log",
            ]
        ),
        _JSON,
        max_size=6,
    ),
    st.integers(0, 255),
)
def test_any_json_of_that_shape_gives_believable_numbers(document: dict[str, Any], exit_status: int) -> None:
    raw = (
        json.dumps({**document, "smartctl": {"exit_status": exit_status}}, allow_nan=False, default=str)
        if _finite(document)
        else "{}"
    )
    try:
        report = parse(raw.encode())
    except (ParseError, NoData):
        return
    assert report.temperature_c is None or -60 <= report.temperature_c <= 150
    assert all(value >= 0 for value in report.counts.values())
    assert (report.status == "") == (report.no_status is not None)


def _finite(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True
