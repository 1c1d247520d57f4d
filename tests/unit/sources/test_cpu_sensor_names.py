import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.sources.cpu_sensor_names import CORE, PACKAGE, bmc_metric, first_number, hwmon_part, is_cpu_chip, is_memory_chip


@pytest.mark.parametrize(
    ("name", "unit", "metric"),
    [
        ("CPU1 Temp", "°C", "temperature"),
        ("CPU1 Core Temp", "°C", "temperature"),
        ("CPU1 MEM Temp", "°C", "mem_temperature"),  # names both: the memory beside the processor
        ("MEM1 Temp", "°C", "mem_temperature"),
        ("P1-DIMMA1 Temp", "°C", "mem_temperature"),
        ("CPU1 Pwr", "W", "power"),
        ("CPU Power", "W", "power"),
        ("MEM1 Pwr", "W", ""),
        ("CPU1 VR Temp", "°C", ""),  # its voltage regulator, hotter by nature
        ("CPU1 Temp Margin", "°C", ""),  # counts down to the limit
        ("CPU1 DTS", "°C", ""),
        ("Server CPU Temp", "°C", "temperature"),
        ("CPU1 Temp", "", ""),
        ("Inlet Temp", "°C", ""),
        ("FAN1", "RPM", ""),
    ],
)
def test_which_metric_a_bmc_sensor_is(name: str, unit: str, metric: str) -> None:
    assert bmc_metric(name, unit) == metric


@pytest.mark.parametrize(
    ("name", "number"), [("CPU1 Temp", "1"), ("CPU12 MEM 3 Temp", "12"), ("CPU Temp", "0"), ("", "0"), ("CPU²", "0")]
)
def test_first_number(name: str, number: str) -> None:
    assert first_number(name) == number


def test_chips() -> None:
    assert [
        name for name in ("coretemp", "k10temp", "cpu0_thermal", "nvme", "acpitz", "nct6779", "cpu_board") if is_cpu_chip(name)
    ] == [
        "coretemp",
        "k10temp",
        "cpu0_thermal",
    ]
    assert [name for name in ("jc42", "spd5118", "nvme") if is_memory_chip(name)] == ["jc42", "spd5118"]


def test_parts() -> None:
    assert hwmon_part("Core 12", {"Core 12"}) == CORE
    assert hwmon_part("Package id 0", set()) == PACKAGE
    assert hwmon_part("Tctl", {"Tctl", "Tccd1"}) == PACKAGE
    assert hwmon_part("Tctl", {"Tctl", "Tdie"}) == ""  # an offset of up to 27 degrees is in it
    assert hwmon_part("Tdie", {"Tctl", "Tdie"}) == PACKAGE


@given(st.text(max_size=30), st.sampled_from(["°C", "W", "", "V"]))
def test_any_name_has_an_answer(name: str, unit: str) -> None:
    assert bmc_metric(name, unit) in {"", "temperature", "mem_temperature", "power"}
    assert first_number(name).isascii()
    assert first_number(name).isdigit()
