"""What ``npu-smi info -t``, ``-m`` and ``hccs-bw`` say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources import npu_smi_details
from nodeproof.sources.npu_cells import Reading
from nodeproof.sources.npu_smi_details import ChipIds
from support.hosts_npu import A2, A3, details, ids_map
from support.npu import npu_smi_output


def _state(value: Reading) -> Absence:
    assert isinstance(value, NoData)
    return value.state


def test_case_38_one_call_serves_many_metrics_and_na_is_none() -> None:
    blocks = npu_smi_details.parse(npu_smi_output("case-38.txt"))
    readings = npu_smi_details.readings(blocks[0])
    assert {name: value for name, value in readings.items() if isinstance(value, float)} == {
        "hbm_total": 65536.0,
        "hbm_percent": 5.0,
        "aicore": 0.0,
        "vector_core": 0.0,
        "ctrlcpu": 3.0,
        "power": 91.9,
    }
    assert _state(readings["hbm_bandwidth"]) is Absence.UNSUPPORTED
    assert _state(readings["ddr_percent"]) is Absence.NOT_APPLICABLE
    assert _state(readings["ddr_double"]) is Absence.NOT_APPLICABLE


def test_a_value_may_hold_colons() -> None:
    blocks = npu_smi_details.parse(b"\tNPU ID : 0\n\tPCIe Bus Info : 0000:01:00.0\n")
    assert blocks == {0: {"pcie bus info": "0000:01:00.0"}}


def test_blocks_whose_chip_stands_before_or_after_them_and_the_controller_is_none() -> None:
    text = details(A2)["npu-smi info -t common -i 3"]
    readings = npu_smi_details.readings(npu_smi_details.parse(text)[0])
    assert readings["aicore_mhz"] == 803.0
    assert readings["temperature"] == 40.0, "the controller's own is another"
    before = b"NPU ID : 0\nChip Count : 2\n\nChip ID : 0\nTemperature(C) : 31\n\nChip ID : 1\nTemperature(C) : 32\n"
    assert npu_smi_details.parse(before) == {0: {"temperature(c)": "31"}, 1: {"temperature(c)": "32"}}
    after = b"NPU ID : 0\nTemperature(C) : 31\nChip ID : 0\n\nTemperature(C) : 32\nChip ID : 1\n"
    assert npu_smi_details.parse(after) == {0: {"temperature(c)": "31"}, 1: {"temperature(c)": "32"}}
    assert npu_smi_details.parse(b"Temperature(C) : 31\nChip ID : x\nPower Dissipation(W) : 7\nno colon\n : 3\n") == {
        0: {"power dissipation(w)": "7"}
    }


def test_an_answer_without_any_pair_is_an_error() -> None:
    with pytest.raises(ParseError, match="not support"):
        npu_smi_details.parse(b"This device does not support querying ecc\n")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (b"Error Code : NA\n", ()),
        (b"Error Code : 80C98000\n", (0x80C98000,)),
        (b"Error Code : 0x40f84e00 80C98000 0x40F84E00\n", (0x40F84E00, 0x80C98000)),
        (b"Health Status : OK\n", None),
    ],
)
def test_error_codes(text: bytes, codes: tuple[int, ...] | None) -> None:
    assert npu_smi_details.error_codes(npu_smi_details.parse(text)[0]) == codes


def test_the_map_keeps_card_chip_logical_and_physical_id_apart() -> None:
    assert npu_smi_details.chip_ids(ids_map(A2))[5] == ChipIds(5, 0, 5, None)
    assert npu_smi_details.chip_ids(ids_map(A3))[9] == ChipIds(4, 1, 9, None)
    assert len(npu_smi_details.chip_ids(ids_map(A2))) == 8, "controllers are no chips"
    both = (
        b"\tNPU ID          Chip ID         Chip Logic ID   Chip Phy-ID     Chip Name\n"
        b"\t8               0               0               3               Ascend910\n"
        b"\t8               1               -               -               Mcu\n"
        b"\t9               x               1               2               Ascend910\n\n"
    )
    assert npu_smi_details.chip_ids(both) == [ChipIds(8, 0, 0, 3)]
    narrow = b"NPU ID Chip ID Slot ID Chip Phy-ID Chip Name\n0 0 2 5 Ascend950PR\n"
    assert npu_smi_details.chip_ids(narrow) == [ChipIds(0, 0, None, 5)]
    with pytest.raises(ParseError, match="a heading with NPU ID"):
        npu_smi_details.chip_ids(b"dcmi module initialize failed. ret is -8005\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"TX: 305.6\nRX: 280.3\n", {"tx": 305.6, "rx": 280.3}),
        (b"hccs link  tx_bandwidth(GB/S)  rx_bandwidth(GB/S)\n0  1.0  2.0\ntotal  2.0  0.5\n", {"tx": 2048.0, "rx": 512.0}),
        (b"hccs link  rx_bandwidth(GB/S)  tx_bandwidth(GB/S)\ntotal  2.0  0.5\n", {"rx": 2048.0, "tx": 512.0}),
        (b"TX: 305.6\n", {"tx": 305.6}),
    ],
)
def test_hccs_bandwidth_in_either_order_and_unit(text: bytes, expected: dict[str, float]) -> None:
    assert npu_smi_details.hccs_bandwidth(text) == expected


def test_hccs_bandwidth_that_is_none() -> None:
    found = npu_smi_details.hccs_bandwidth(b"hccs link tx_bandwidth(GB/S) rx_bandwidth(GB/S)\ntotal NA 1.0\n")
    assert _state(found["tx"]) is Absence.UNSUPPORTED
    assert found["rx"] == 1024.0
    with pytest.raises(ParseError, match="busy"):
        npu_smi_details.hccs_bandwidth(b"device is busy\n")


@given(st.binary(max_size=600))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for parse in (npu_smi_details.parse, npu_smi_details.chip_ids, npu_smi_details.hccs_bandwidth):
        try:
            found = parse(raw)
        except ParseError:
            continue
        assert found is not None


@given(st.dictionaries(st.sampled_from(sorted(npu_smi_details._FIELDS)), st.text("0123456789.-NA ", max_size=8)))
def test_numbers_that_are_believed_are_finite_and_not_negative_but_for_temperatures(block: dict[str, str]) -> None:
    for name, value in npu_smi_details.readings(block).items():
        assert isinstance(value, NoData) or value >= (-40.0 if "temperature" in name else 0.0)
