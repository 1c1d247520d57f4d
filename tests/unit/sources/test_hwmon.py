import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.hwmon import UNITS, Attribute, attribute, parse_flag, parse_value


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("temp1_input", Attribute("temp", 1, "input")),
        ("fan12_alarm", Attribute("fan", 12, "alarm")),
        ("in0_crit", Attribute("in", 0, "crit")),
        ("temp1_crit_alarm", Attribute("temp", 1, "crit_alarm")),
        ("name", None),
        ("temp_input", None),
        ("temp1", None),
        ("temp1_", None),
        ("pwm1_enable", None),
        ("temp12345_input", None),
        ("temp²_input", None),
    ],
)
def test_names_of_files(name: str, expected: Attribute | None) -> None:
    assert attribute(name) == expected


@pytest.mark.parametrize(
    ("raw", "kind", "expected"),
    [
        (b"45125\n", "temp", 45.125),  # millidegrees
        (b"-5000\n", "temp", -5.0),
        (b"5400\n", "fan", 5400.0),
        (b"12096\n", "in", 12.096),  # millivolts
        (b"1500\n", "curr", 1.5),
        (b"125500000\n", "power", 125.5),  # microwatts
        (b"3600000000\n", "energy", 3600.0),
    ],
)
def test_values_in_the_unit_people_use(raw: bytes, kind: str, expected: float) -> None:
    assert parse_value(raw, kind, "f") == expected


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"-273150\n", "temp"),  # cases/monitor/45: limits of an NVMe that are not set, 0 K and 0xFFFF K
        (b"65261850\n", "temp"),
        (b"65535\n", "fan"),
        (b"-1\n", "power"),
        (b"", "temp"),
        (b"N/A\n", "temp"),
        (b"45.5\n", "temp"),
    ],
)
def test_what_no_such_sensor_measures_is_refused(raw: bytes, kind: str) -> None:
    with pytest.raises(ParseError):
        parse_value(raw, kind, "/sys/class/hwmon/hwmon0/x")


def test_flags() -> None:
    assert [parse_flag(raw) for raw in (b"1\n", b"0\n", b"", b"2")] == [True, False, None, None]


@given(st.binary(max_size=60), st.sampled_from(sorted(UNITS)))
def test_any_bytes_give_a_plausible_number_or_a_parse_error(raw: bytes, kind: str) -> None:
    try:
        value = parse_value(raw, kind, "f")
    except ParseError:
        return
    assert value >= -10_000


@given(st.integers(-100_000, 250_000))
def test_every_temperature_comes_back(millidegrees: int) -> None:
    assert parse_value(f"{millidegrees}\n".encode(), "temp", "f") == round(millidegrees / 1000, 3)


@given(st.text(max_size=20))
def test_any_name_has_an_answer(name: str) -> None:
    found = attribute(name)
    assert found is None or found.kind in UNITS
