"""``nvidia-smi -q -x`` in three schemas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.gpu import CardReading, CardState
from nodeproof.sources import nvidia_smi_cards, nvidia_smi_xml
from support.gpu import smi_output


def _cards(raw: bytes) -> list[CardReading]:
    return nvidia_smi_cards.cards(nvidia_smi_xml.parse(raw))


def test_case_07_power_under_the_names_of_driver_535() -> None:
    (card,) = _cards(smi_output("case-07-nvsmi-xml-power-535.txt"))
    assert (card.values["power_draw",], card.values["power_limit",]) == (17.89, 220)
    assert card.identity == {
        "name": "NVIDIA GeForce RTX 3070",
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "driver": "535.104.05",
    }


@pytest.mark.parametrize(
    "power",
    [
        "<power_readings><power_draw>17.89 W</power_draw><power_limit>220.00 W</power_limit></power_readings>",
        (
            "<gpu_power_readings><average_power_draw>17.89 W</average_power_draw><instant_power_draw>18.1 W</instant_power_draw>"
            "<current_power_limit>220.00 W</current_power_limit></gpu_power_readings>"
            "<module_power_readings><average_power_draw>99.9 W</average_power_draw></module_power_readings>"
        ),
    ],
)
def test_case_07_the_same_readings_in_an_older_and_a_newer_schema(power: str) -> None:
    (card,) = _cards(f'<nvidia_smi_log><gpu id="00000000:01:00.0">{power}</gpu></nvidia_smi_log>'.encode())
    assert (card.values["power_draw",], card.values["power_limit",]) == (17.89, 220)


def test_a_data_centre_card_cut_into_instances() -> None:
    (card,) = _cards(smi_output("a100-v12.xml"))
    values = card.values
    assert card.address == "0000:01:00.0"
    assert (values["memory_detail", "total"], values["memory_detail", "reserved"]) == (81920, 869)
    assert values["memory_usage",] == 0.06  # 100 * 50 / 81920
    assert (values["mig_mode",], values["ecc_mode",], values["persistence_mode",]) == (1, 1, 0)
    assert (values["pcie_generation",], values["pcie_generation_max",], values["pcie_width",]) == (4, 4, 16)
    assert (values["temperature",], values["memory_temperature",]) == (27, 44)
    assert (values["clock_domain_frequency", "memory"], values["clock_max_frequency", "sm"]) == (1593, 1410)
    assert values["throttle_reason", "hw_thermal"] == 0
    assert "MIG" in card.untold["utilization",].reason


def test_states_of_a_whole_card() -> None:
    def one(body: str) -> CardState:
        return _cards(f'<nvidia_smi_log><gpu id="00000000:01:00.0">{body}</gpu></nvidia_smi_log>'.encode())[0].state

    assert one("<fan_speed>GPU is lost</fan_speed>") is CardState.LOST
    assert one("<utilization><gpu_util>Requires reset</gpu_util></utilization>") is CardState.RESET_REQUIRED
    assert one("<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>") is CardState.RESET_REQUIRED
    assert one("<gpu_recovery_action>None</gpu_recovery_action>") is CardState.ANSWERS
    assert one("<fan_speed>Unknown Error</fan_speed>") is CardState.ANSWERS


@pytest.mark.parametrize("raw", [b"", b"<nvidia_smi_log><gpu id='1'>", b"NVIDIA-SMI has failed", b"<a/><b/>"])
def test_a_document_that_is_none_or_cut_off_has_no_cards(raw: bytes) -> None:
    table = nvidia_smi_xml.parse(raw)
    assert table.rows == ()
    assert table.message.startswith("nvidia-smi -q -x: ")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_table(raw: bytes) -> None:
    nvidia_smi_xml.parse(raw)
    _cards(b'<nvidia_smi_log><driver_version>1</driver_version><gpu id="00000000:01:00.0">' + raw + b"</gpu></nvidia_smi_log>")
