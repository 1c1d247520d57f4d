"""What the numbers of libdcmi.so mean."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData
from nodeproof.model.catalogue import component_specs
from nodeproof.sources import dcmi
from nodeproof.sources.npu_cells import Reading

_HBM = {"memory_size": 65536, "freq": 1600, "memory_usage": 32768, "temp": 45, "bandwith_util_rate": 7}


def _values(**raw: Any) -> dict[str, Reading]:
    return {one.name: one.value for one in dcmi.values(raw)}


def _state(value: Reading) -> Absence:
    assert isinstance(value, NoData)
    return value.state


@pytest.mark.parametrize(
    ("cell", "name", "expected"),
    [
        ({"power": [0, 942]}, "power_draw", 94.2),
        ({"voltage": [0, 85]}, "voltage", 0.85),
        ({"temperature": [0, -5]}, "temperature", -5.0),
        ({"util.2": [0, 99]}, "utilization", 99.0),
        ({"util.13": [0, 42]}, "npu_util", 42.0),
        ({"freq.7": [0, 1800]}, "aicore_freq", 1800.0),
        ({"sensor.11": [0, 61]}, "soc_max_temp", 61.0),
        ({"lp.0": [0, 850]}, "aicore_voltage", 0.85),
        ({"hbm": [0, _HBM]}, "memory_usage", 50.0),
        ({"hbm": [0, _HBM]}, "hbm_used_memory", 32768.0),
        ({"aicpu": [0, {"cur_freq": 1000}]}, "aicpu_freq", 1000.0),
        ({"ecc.2": [0, {"double_bit_error_cnt": 3}]}, "hbm_double_ecc_errors_total", 3.0),
    ],
)
def test_units(cell: dict[str, Any], name: str, expected: float) -> None:
    assert _values(**cell)[name] == expected


@pytest.mark.parametrize(
    ("cell", "name", "state"),
    [
        ({"power": [-8255, None]}, "power_draw", Absence.UNSUPPORTED),
        ({"power": [-8002, None]}, "power_draw", Absence.NO_PERMISSION),
        ({"power": [-8006, None]}, "power_draw", Absence.READ_ERROR),
        ({"power": [-1, None]}, "power_draw", Absence.READ_ERROR),
        ({"power": [0, 2**31 - 1]}, "power_draw", Absence.UNKNOWN),
        ({"power": [0, None]}, "power_draw", Absence.READ_ERROR),
        ({}, "power_draw", Absence.UNSUPPORTED),
        ({"util.2": [0, 2**32 - 1]}, "utilization", Absence.UNKNOWN),
        ({"util.2": [0, 101]}, "utilization", Absence.UNKNOWN),
        ({"lp.3": [0, 0x00A10055]}, "ddr_voltage", Absence.UNKNOWN),
        ({"lp.3": [-8255, None]}, "ddr_voltage", Absence.UNSUPPORTED),
        ({"hbm": [0, _HBM | {"memory_size": 0}]}, "hbm_used_memory", Absence.NOT_APPLICABLE),
        ({"hbm": [0, _HBM | {"memory_usage": 2**63}]}, "memory_usage", Absence.UNKNOWN),
        ({"errors": [-8006, None]}, "error_code", Absence.READ_ERROR),
    ],
)
def test_what_is_no_value(cell: dict[str, Any], name: str, state: Absence) -> None:
    assert _state(_values(**cell)[name]) is state


@pytest.mark.parametrize("memory", [[0, {"memory_size": 0}], [-8255, None]])
def test_a_card_without_ddr_has_nothing_of_it(memory: list[Any]) -> None:
    found = _values(memory=memory, **{"ecc.0": [-8255, None], "util.1": [0, 3]})
    assert _state(found["ddr_double_ecc_errors_total"]) is Absence.NOT_APPLICABLE
    assert _state(found["ddr_util"]) is Absence.NOT_APPLICABLE


def test_a_card_with_ddr_alone_uses_that_memory() -> None:
    memory = {"memory_size": 21534, "memory_available": 10767}
    found = _values(hbm=[-8255, None], memory=[0, memory], **{"util.1": [0, 50]})
    assert (found["memory_usage"], found["ddr_util"]) == (50.0, 50.0)
    nothing = _values(hbm=[0, _HBM | {"memory_size": 0}], memory=[0, {"memory_size": 0, "memory_available": 0}])
    assert _state(nothing["memory_usage"]) is Absence.UNKNOWN


@pytest.mark.parametrize(
    ("code", "value", "status", "dropped"),
    [(0, 0, 1.0, 0.0), (0, 1, 2.0, 0.0), (0, 2, 3.0, 0.0), (0, 3, 4.0, 0.0)],
)
def test_health(code: int, value: int, status: float, dropped: float) -> None:
    found = _values(health=[code, value])
    assert (found["health_status"], found["card_drop"]) == (status, dropped)


def test_a_chip_that_is_not_ready_is_lost_and_one_that_cannot_be_told_is_not() -> None:
    assert _values(health=[-8012, None])["card_drop"] == 1.0
    assert _values(health=[-8008, None])["card_drop"] == 1.0
    assert _state(_values(health=[-8006, None])["card_drop"]) is Absence.READ_ERROR
    assert _state(_values(health=[0, 9])["health_status"]) is Absence.UNKNOWN


def test_error_codes_are_told_once_each_and_zeros_are_none() -> None:
    found = [one for one in dcmi.values({"errors": [0, [0x80C98000, 0, 0x40F84E00, 0x80C98000]]}) if one.name == "error_code"]
    assert found[0].value == 2.0
    assert found[0].labels == (("error_codes", "0x80c98000,0x40f84e00"),)


def _deep(**raw: Any) -> list[dcmi.DcmiValue]:
    return list(dcmi.values({"ntc": [0, [21, 22, 23, 24]], **raw}))


def test_what_is_asked_for_rarely() -> None:
    found = {
        (one.name, one.labels): one.value for one in _deep(fans=[0, [[0, 60], [-8255, None]]], processes=[0, [[7, 1], [9, 2]]])
    }
    assert found["ntc4_temp", ()] == 24.0
    assert found["fan_speed", (("fan", "0"),)] == 60.0
    assert _state(found["fan_speed", (("fan", "1"),)]) is Absence.UNSUPPORTED
    assert found["process_info", (("process_pids", "7,9"),)] == 2.0
    none = {one.name: one.value for one in _deep(ntc=[-8255, None], fans=[0, []], processes=[0, []])}
    assert _state(none["fan_speed"]) is Absence.NOT_APPLICABLE
    assert _state(none["ntc1_temp"]) is Absence.UNSUPPORTED
    assert none["process_total"] == 0.0
    hidden = {one.name: one.value for one in _deep(fans=[-8255, None], processes=[-8013, None])}
    assert _state(hidden["process_total"]) is Absence.UNSUPPORTED
    assert _state(hidden["fan_speed"]) is Absence.UNSUPPORTED


def test_every_name_has_a_row_in_the_catalogue() -> None:
    rows = component_specs("npu")
    assert {one.name for one in _deep()} <= set(rows)


_CODES = st.sampled_from([0, 0, 0, -8255, -8012])
_VALUES: st.SearchStrategy[Any] = st.one_of(st.none(), st.integers(), st.just({}), st.lists(st.integers(), max_size=4))
_CELL = st.one_of(st.none(), st.lists(st.integers(-9000, 0), max_size=1), st.tuples(_CODES, _VALUES))
_KEYS = st.sampled_from(["health", "errors", "temperature", "power", "hbm", "memory", "util.2", "lp.0", "fans"])


@given(st.dictionaries(_KEYS, _CELL))
def test_any_answer_gives_numbers_within_limits_or_absences(raw: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(raw))
    for one in dcmi.values(plain):
        assert isinstance(one.value, (float, NoData))
