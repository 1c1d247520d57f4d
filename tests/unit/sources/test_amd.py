"""What amd-smi, rocm-smi and the amdgpu driver tell."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence
from nodeproof.model.gpu import GpuProcess, Untold, is_blank
from nodeproof.sources.amd_smi import documents, merged, metric_cards, plausible, process_lists, rocm_cards, static_buses
from nodeproof.sources.amdgpu_sysfs import highest_clock_mhz, parse_ras_counts

_FOLDER = Path(__file__).parents[2] / "fixtures" / "commands" / "amd-smi"


def _raw(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


def test_rocm_smi_of_a_data_centre_card() -> None:
    first, second = rocm_cards(documents(_raw("mi100-rocm602.json"))[0])
    assert (first.address, first.index, second.address) == ("0000:83:00.0", 0, "0000:a3:00.0")
    assert first.identity == {
        "name": "Arcturus GL-XL [Instinct MI100]",
        "uuid": "0x0000000000000001",
        "vbios": "113-D3431401-101",
        "driver": "6.3.6",
    }
    values = first.values
    assert (values["temperature",], values["memory_temperature",]) == (55, 53)
    assert (values["power_draw",], values["power_limit",]) == (36, 290)
    assert (values["clock_frequency",], values["clock_domain_frequency", "memory"]) == (300, 1200)
    assert values["memory_detail", "total"] == 32752  # 34342961152 / 1048576
    assert values["memory_usage",] == 0.02  # 100 * 6.4375 / 32752
    assert (values["pcie_generation",], values["pcie_width",]) == (4, 16)
    assert first.untold["fan_speed",].state is Absence.UNSUPPORTED
    assert second.values["power_draw",] == 44


def test_rocm_smi_of_a_workstation_card_in_a_newer_layout() -> None:
    (card,) = rocm_cards(documents(_raw("rx6700xt-rocm612.json"))[0])
    assert card.identity["name"] == "Navi 22 [Radeon RX 6700/6700 XT / 6800M]"
    assert "uuid" not in card.identity
    assert card.values["memory_utilization",] == 0
    assert card.values["memory_usage",] == 12.22  # 100 * 1572745216 / 12868124672


def test_amd_smi_of_a_current_card() -> None:
    buses = static_buses(documents(_raw("mi300x-static.json"))[0])
    assert set(buses) == {0, 1}
    found, note = documents(_raw("mi300x-metric.json"))
    assert note == "WARNING: AMD GPU device(s) is/are in a low-power state."
    first, second = metric_cards(found, buses)
    assert first.identity["driver"] == "6.10.5"
    values = first.values
    assert (values["utilization",], values["memory_utilization",]) == (87, 41)
    assert (values["temperature",], values["memory_temperature",], values["power_draw",]) == (71, 58, 542)
    assert values["memory_usage",] == 25
    assert values["energy",] == 987654.321
    assert (values["pcie_generation",], values["pcie_width",], values["pcie_replays",]) == (5, 16, 4)
    assert (values["ecc_errors",], values["ecc_volatile_errors", "corrected", "total"]) == (1, 12)
    assert values["ecc_volatile_errors", "uncorrected", "umc"] == 1
    assert (values["throttle_reason", "sw_power_cap"], values["throttle_reason", "sw_thermal"]) == (1, 0)
    assert ("throttle_reason", "hw_thermal") not in values
    assert first.untold["decoder_utilization",].state is Absence.UNSUPPORTED
    assert second.untold["temperature",] == Untold(
        Absence.UNKNOWN, "2112 degrees cannot be: the firmware was read while it wrote"
    )
    assert second.untold["memory_temperature",].state is Absence.UNSUPPORTED
    assert second.untold["utilization",].state is Absence.UNSUPPORTED
    assert second.values["power_draw",] == 90
    assert ("memory_usage",) in second.untold


def test_what_is_no_card_is_passed_over() -> None:
    assert merged([7, "x", {"gpu_data": [3, {"gpu": True}, {"gpu": "0"}, {}]}]) == {}
    assert metric_cards([{"gpu": 5}], {0: ("0000:05:00.0", {})}) == []
    rows = {"PCI Bus": "0000:05:00.0", "pcie clock level": "0 (1.2.3GT/s x8)"}
    (card,) = rocm_cards([{"cardX": rows, "other": rows, "card1": {}}])
    assert (card.index, card.values["pcie_width",]) == (None, 8)
    assert ("pcie_generation",) not in card.values
    assert "pcie_width" not in str(rocm_cards([{"card0": {"PCI Bus": "0000:05:00.0"}}])[0].values)


def test_processes_of_a_card() -> None:
    assert process_lists(documents(_raw("mi300x-process.json"))[0]) == {
        0: (GpuProcess(4242, "python3", 1024),),
        1: (GpuProcess(4243, "", 512),),
    }


def test_case_23_torn_reads_are_rejected() -> None:
    samples = [float(word) for word in _raw("23-amd-temp-torn-read.txt").split()]
    kept = [sample for sample in samples if not isinstance(plausible(("memory_temperature",), sample), Untold)]
    assert kept == [54, 55, 55, 56, 57, 56]
    assert max(kept) == 57


def test_case_25_warnings_nothing_and_several_documents() -> None:
    parts = _raw("25-amdsmi-json-preamble.txt").split(b"----\n")
    first, note = documents(parts[0])
    assert note.startswith("WARNING: User is missing")
    (card,) = metric_cards(first, {0: ("0000:05:00.0", {})})
    assert card.values["power_draw",] == 140
    assert ("utilization",) in card.untold
    assert documents(parts[1]) == ([], "WARNING: No JSON data to report")
    assert documents(parts[2]) == ([], "")
    assert documents(b'[WARN] low power\n{"a": 1}') == ([{"a": 1}], "[WARN] low power")
    assert merged(documents(parts[3])[0]) == {0: {"gpu": 0, "memory": "NPS1", "accelerator_type": "SPX"}}


def test_case_21_blanks_of_driver_layers_are_no_values() -> None:
    blanks = [9223372036854775794, 9223372036854775792, 140737488355328.0, 2147483632]
    assert all(is_blank(value) for value in blanks)
    assert not any(is_blank(value) for value in (0, 72.917, 2147483631, 2147483648, 140737488355327.0))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 1.5), ({"value": 2, "unit": "GB"}, 2048), ({"value": "4", "unit": "GHz"}, 4000), ({"value": 3000, "unit": "mW"}, 3)],
)
def test_units_of_numbers(text: object, value: float) -> None:
    document = [{"gpu": 0, "mem_usage": {"used_vram": text}, "bus": {"bdf": "0000:05:00.0"}}]
    (card,) = metric_cards(document, static_buses(document))
    assert card.values["memory_detail", "used"] == value


@pytest.mark.parametrize("bad", [True, None, [], {}, {"value": None}, 10**400, "", "fast", float("nan")])
def test_what_is_no_number(bad: object) -> None:
    (card,) = metric_cards([{"gpu": 0, "usage": {"gfx_activity": bad}}], {0: ("0000:05:00.0", {})})
    assert ("utilization",) in card.untold


@given(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda sub: st.lists(sub) | st.dictionaries(st.text(), sub),
        max_leaves=8,
    ),
)
def test_any_output_gives_cards_or_none(raw: bytes, document: object) -> None:
    text = json.dumps([{"gpu": 0, "usage": document, "ecc_blocks": document, "process_list": document, "bus": document}])
    found, _ = documents(raw + text.encode())
    for card in (*metric_cards(found, {0: ("0000:05:00.0", {})}), *rocm_cards([document, {"card0": document}])):
        assert all(map(math.isfinite, card.values.values()))
    process_lists(found)
    static_buses(found)


def test_error_counts_and_clocks_of_the_driver() -> None:
    assert parse_ras_counts(b"ue: 1\nce: 12\n") == {"uncorrected": 1, "corrected": 12}
    assert parse_ras_counts(b"ue: 0\nce: 0\nde: 3\nxx: 4\njunk") == {"uncorrected": 0, "corrected": 0, "deferred": 3}
    assert highest_clock_mhz(b"0: 300Mhz\n1: 495Mhz *\nS: 19Mhz\n2: 1502Mhz\n") == 1502
    assert highest_clock_mhz(b"") is None


@given(st.binary(max_size=100))
def test_any_file_of_the_driver(raw: bytes) -> None:
    parse_ras_counts(raw)
    highest_clock_mhz(raw)
