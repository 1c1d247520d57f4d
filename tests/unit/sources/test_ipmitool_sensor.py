"""Sensor tables of ipmitool in each layout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.ipmitool_sensor import IpmiSensor, parse
from support.bmc import ipmitool_output

_CASE_48 = b"""\
CPU1 Temperature | 45.000     | degrees C  | ok    | 0.000     | 0.000     | 0.000     | 70.000    | 75.000    | 80.000
TR1 Temperature  | 0.000      | degrees C  | nr    | 0.000     | 0.000     | 0.000     | 70.000    | 75.000    | 80.000
FAN3             | na         | RPM        | na    | na        | 300.000   | 500.000   | na        | na        | na
PS Redundancy    | 0x0        | discrete   | 0x0180| na        | na        | na        | na        | na        | na
CPU2 Vcore       | 05h | ns  |  3.2 | No Reading
P1-DIMM A|B Temp | 33.000     | degrees C  | ok    | na        | na        | na        | 80.000    | 85.000    | 90.000
"""


def _by_name(raw: bytes) -> dict[str, IpmiSensor]:
    return {sensor.name: sensor for sensor in parse(raw)}


def test_case_48_and_defect_17_absent_readings_are_never_zero() -> None:
    sensors = _by_name(_CASE_48)
    assert {name: sensor.value for name, sensor in sensors.items()} == {
        "CPU1 Temperature": 45.0,
        "TR1 Temperature": None,
        "FAN3": None,
        "PS Redundancy": None,
        "CPU2 Vcore": None,
        "P1-DIMM A|B Temp": 33.0,
    }
    assert sensors["FAN3"].problem == "no reading (status na)"
    assert sensors["CPU2 Vcore"].problem == "no reading (status ns)"
    assert "status nr" in sensors["TR1 Temperature"].problem
    assert sensors["TR1 Temperature"].doubted == 0.0


def test_limits_stand_in_their_places() -> None:
    fan = _by_name(ipmitool_output("supermicro.sensor"))["FAN1"]
    assert fan == IpmiSensor("FAN1", 5400.0, "RPM", "ok", 300.0, 500.0, 700.0, 25300.0, 25400.0, 25500.0)


def test_case_48_a_missing_limit_is_none() -> None:
    fan = _by_name(_CASE_48)["FAN3"]
    assert fan[4:10] == (None, 300.0, 500.0, None, None, None)


def test_discrete_sensors_keep_their_words() -> None:
    status = _by_name(ipmitool_output("supermicro.sensor"))["PS2 Status"]
    assert (status.value, status.unit, status.status, status.discrete_state, status.problem) == (None, "", "0x0bff", "0xb", "")


@pytest.mark.parametrize(
    ("file", "name", "value", "unit"),
    [
        ("dell.sensor", "Fan1A", 7560.0, "RPM"),
        ("dell.sensor", "Pwr Consumption", 224.0, "W"),
        ("dell.sensor", "Current 1", 0.6, "A"),
        ("dell.sensor", "Temp #2", 52.0, "°C"),
        ("hpe.sensor", "01-Inlet Ambient", 21.0, "°C"),
        ("hpe.sensor", "Fan 1", 23.128, "%"),
        ("huawei.sensor", "FAN1 R Speed", 6480.0, "RPM"),
        ("huawei.sensor", "SYS 12V_1", 12.18, "V"),
        ("inspur.sensor", "Total_Power", 402.0, "W"),
        ("lenovo.sdr_elist", "Fan 1A Tach", 4510.0, "RPM"),
        ("lenovo.sdr_elist", "Ambient Temp", 25.0, "°C"),
        ("lenovo.sdr", "Sys Power", 250.0, "W"),
        ("lenovo.sdr", "Planar 12V", 12.1, "V"),
        ("comma.sensor", "12V", 12.063, "V"),
        ("comma.sensor", "FAN1", 5400.0, "RPM"),
        ("get.sensor", "Power", 1824.0, "W"),
    ],
)
def test_layouts_of_makers(file: str, name: str, value: float, unit: str) -> None:
    sensor = _by_name(ipmitool_output(file))[name]
    assert (sensor.value, sensor.unit, sensor.status) == (value, unit, "ok")


@pytest.mark.parametrize(
    ("file", "count"),
    [("supermicro.sensor", 19), ("dell.sensor", 15), ("hpe.sensor", 14), ("huawei.sensor", 20), ("lenovo.sdr_elist", 9)],
)
def test_every_row_is_read(file: str, count: int) -> None:
    assert len(parse(ipmitool_output(file))) == count


def test_sdr_states_and_silence() -> None:
    sensors = _by_name(ipmitool_output("lenovo.sdr_elist"))
    assert sensors["PSU 1"].discrete_state == "Presence detected"
    assert sensors["PSU 1"].problem == ""
    assert sensors["Fan 2A Tach"].value is None
    assert sensors["CPU 2 Vcore"].problem == "no reading (status ns)"
    assert _by_name(ipmitool_output("lenovo.sdr"))["PSU 1"].discrete_state == "0x01"


def test_sensor_get_blocks() -> None:
    sensors = _by_name(ipmitool_output("get.sensor"))
    assert sensors["Power"].upper_cr == 3000.0
    assert (sensors["FAN9"].value, sensors["FAN9"].problem) == (None, "no reading (status na)")
    assert (sensors["PS1 Status"].discrete_state, sensors["PS1 Status"].value) == ("Presence detected", None)


def test_output_of_a_real_ipmitool() -> None:
    """Printed by ipmitool 1.8.19 for a simulated BMC: the three layouts agree."""
    expected = {
        "CPU1 Temp": 47.0,
        "FAN1": 5400.0,
        "FAN3": None,
        "Sys Power": 212.0,
        "TR1 Temp": 85.0,
        "PS1 Status": None,
        "PS2 Status": None,
    }
    for file in ("simulated.sensor", "simulated.sdr_elist", "simulated.sdr"):
        assert {name: sensor.value for name, sensor in _by_name(ipmitool_output(file)).items()} == expected
    table, get = _by_name(ipmitool_output("simulated.sensor")), _by_name(ipmitool_output("simulated.get"))
    assert get["FAN1"] == table["FAN1"]
    assert get["Sys Power"] == table["Sys Power"]
    assert get["PS2 Status"].discrete_state == "Presence detected, Failure detected, Power Supply AC lost"
    assert get["PS2 Status"].discrete_state == _by_name(ipmitool_output("simulated.sdr_elist"))["PS2 Status"].discrete_state
    assert (table["FAN3"].lower_cr, table["FAN3"].unit) == (500.0, "")


def test_sensor_get_without_a_status_proves_nothing() -> None:
    assert parse(b"Host: x\nSensor ID : X (0x1)\nSensor Reading : 5 (+/- 0) Volts\n")[0].value is None


def test_sensor_get_without_a_name_is_no_sensor() -> None:
    with pytest.raises(ParseError):
        parse(b"Sensor ID : \nSensor Reading : 5 (+/- 0) Volts\n")


def test_a_row_cut_off_is_left_out_and_its_neighbours_stay() -> None:
    sensors = _by_name(ipmitool_output("truncated.sensor"))
    assert sensors["FAN1"].value == 5400.0
    assert "FAN2" not in sensors


def test_four_columns() -> None:
    assert parse(b"MEM1 Pwr | 12.5 | Watts | ok\n")[0][:4] == ("MEM1 Pwr", 12.5, "W", "ok")
    assert parse(b"PS1 | 0x1 | discrete | 0x0180\n")[0].discrete_state == "0x1"


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ("260.000 | degrees C | ok", "260 °C lies outside -40 to 200"),
        ("-41.000 | degrees C | ok", "-41 °C lies outside -40 to 200"),
        ("65535.000 | RPM | ok", "65535 RPM lies outside 0 to 60000"),
        ("-1.000 | RPM | ok", "-1 RPM lies outside 0 to 60000"),
        ("100001.000 | Watts | ok", "100001 W lies outside 0 to 100000"),
        ("300.000 | degrees C | nr", "300 °C lies outside -40 to 200"),
        ("na | degrees C | ok", "no reading"),
        ("0x24 | degrees C | ok", "'0x24' is no number"),
        ("1.2.3 | degrees C | ok", "'1.2.3' is no number"),
        ("7.000 | unspecified | nr", "7 came with status nr (beyond its last limit, or the sensor is not there)"),
    ],
)
def test_what_cannot_be_is_rejected_with_its_reason(cells: str, problem: str) -> None:
    sensor = parse(f"X | {cells} | na | na | na | na | na | na\n".encode())[0]
    assert (sensor.value, sensor.problem) == (None, problem)


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        ("200.000 | degrees C", 200.0),
        ("-40.000 | degrees C", -40.0),
        ("0.000 | RPM", 0.0),
        ("60000.000 | RPM", 60000.0),
        ("212.000 | degrees F", 100.0),
        ("300.000 | degrees K", 26.85),
    ],
)
def test_limits_belong_to_what_can_be_and_degrees_become_celsius(cells: str, value: float) -> None:
    assert parse(f"X | {cells} | ok | na | na | na | na | na | na\n".encode())[0].value == value


def test_fahrenheit_limits_are_celsius_too() -> None:
    sensor = parse(b"X | 68.000 | degrees F | ok | na | na | na | na | na | 212.000\n")[0]
    assert (sensor.value, sensor.upper_nr, sensor.unit) == (20.0, 100.0, "°C")


def test_an_extended_status_is_the_plain_one() -> None:
    assert parse(b"X | 99.000 | degrees C | ucr | na | na | na | na | 90 | na\n")[0].status == "cr"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n",
        b"Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n",
        b"Error: Unable to establish IPMI v2 / RMCP+ session\n",
        b" | 5.0 | Volts | ok\n",
        b"a | b | c\n",
        b"\x00\xff\xfe" * 50,
    ],
)
def test_text_without_a_sensor_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="ipmitool sensor"):
        parse(raw)


def test_warnings_before_the_table_do_no_harm() -> None:
    raw = b"Warning: sensor 12 | broken\nGet SDR 0041 command failed\n" + ipmitool_output("dell.sensor")
    assert len(parse(raw)) == 15


@given(st.binary(max_size=400))
def test_any_bytes_give_sensors_or_a_parse_error(raw: bytes) -> None:
    try:
        sensors = parse(raw)
    except ParseError:
        return
    assert sensors
    assert all(sensor.name for sensor in sensors)


@given(
    st.lists(
        st.tuples(
            st.text("ABCfan 0123|._-", min_size=1, max_size=16).map(str.strip).filter(bool),
            st.integers(-50_000, 300_000),
            st.sampled_from(["degrees C", "RPM", "Watts", "Volts"]),
            st.sampled_from(["ok", "nc", "cr", "nr", "na", "ns"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_rows_round_trip(rows: list[tuple[str, int, str, str]]) -> None:
    raw = "".join(
        f"{name:<16} | {thousandths / 1000:<10.3f} | {unit:<10} | {status:<6}| na | na | na | na | na | na\n"
        for name, thousandths, unit, status in rows
    ).encode()
    sensors = parse(raw)
    assert len(sensors) == len(rows)
    for sensor, (name, thousandths, _, status) in zip(sensors, rows, strict=True):
        assert sensor.name.startswith(name)
        assert (sensor.value is None) == bool(sensor.problem)
        if sensor.value is not None:
            assert sensor.value == thousandths / 1000
            assert status in {"ok", "nc", "cr"}
