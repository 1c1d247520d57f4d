"""Tables of nvidia-smi, real and odd."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence
from nodeproof.model.gpu import CardReading, CardState, GpuProcess, Untold, normal_address
from nodeproof.sources import nvidia_smi, nvidia_smi_cards
from nodeproof.sources.nvidia_smi import absent_cell, number, parse_processes, parse_table, valid_fields
from support.gpu import smi_output


def _cards(name: str) -> list[CardReading]:
    return nvidia_smi_cards.cards(parse_table(smi_output(name)))


def test_h100_under_load() -> None:
    (card,) = _cards("h100.csv")
    assert (card.address, card.index, card.state) == ("0000:00:09.0", 0, CardState.ANSWERS)
    assert card.identity == {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "driver": "590.48.01",
        "vbios": "96.00.A5.00.01",
    }
    values = card.values
    assert values["utilization",] == 100
    assert values["memory_utilization",] == 11
    assert values["memory_detail", "total"] == 81559
    assert values["memory_detail", "used"] == 19818
    assert values["memory_usage",] == 24.3  # 100 * 19818 / 81559 = 24.2990
    assert values["power_draw",] == 631.95
    assert values["power_limit",] == 700
    assert (values["temperature",], values["memory_temperature",], values["temperature_headroom",]) == (59, 54, 26)
    assert values["clock_domain_frequency", "sm"] == 1980
    assert values["clock_max_frequency", "memory"] == 2619
    assert values["throttle_reason", "hw_thermal"] == 0
    assert values["throttle_time", "sw_power_cap"] == 0
    assert values["ecc_errors",] == 0
    assert values["ecc_aggregate_errors", "uncorrected", "dram"] == 0
    assert values["row_remap_banks", "max"] == 2560
    assert (values["row_remap_pending",], values["row_remap_failure",]) == (0, 0)
    assert (values["pcie_generation",], values["pcie_width",]) == (5, 16)
    assert (values["performance_state",], values["persistence_mode",], values["mig_mode",]) == (0, 1, 0)
    assert values["fabric_state",] == 2
    assert card.untold["fan_speed",] == Untold(Absence.NOT_APPLICABLE, "this card has no fan of its own")
    assert card.untold["retired_pages", "double_bit"].state is Absence.NOT_APPLICABLE


def test_mig_takes_the_load_of_the_whole_card_away() -> None:
    (card,) = _cards("h100-mig.csv")
    assert card.values["mig_mode",] == 1
    assert card.untold["utilization",].state is Absence.NOT_APPLICABLE
    assert "MIG" in card.untold["utilization",].reason
    assert card.values["memory_usage",] == 13.64  # 100 * 11125 / 81559


def test_a_card_without_error_correction_is_no_blind_spot() -> None:
    (card,) = _cards("rtx2080s.csv")
    assert card.values["fan_speed",] == 38
    assert card.values["throttle_time", "sw_power_cap"] == pytest.approx(15820.333506)
    assert card.values["encoder_utilization",] == 100
    assert card.untold["ecc_errors",] == Untold(Absence.NOT_APPLICABLE, "this card has no error correction")
    assert card.untold["fabric_state",].state is Absence.NOT_APPLICABLE
    assert card.untold["memory_temperature",].state is Absence.UNSUPPORTED
    assert card.values["performance_state",] == 2


def test_l40s_has_its_own_layout() -> None:
    (card,) = _cards("l40s.csv")
    assert card.identity["name"] == "NVIDIA L40S"
    assert card.values["ecc_mode",] == 1
    assert card.values["memory_detail", "total"] == 46068


_FIELDS_01 = (
    "fan.speed,memory.total,memory.used,memory.free,pstate,temperature.gpu,name,uuid,utilization.gpu,utilization.memory,index"
)


def test_case_01_cells_without_a_value_cost_themselves_only() -> None:
    table = parse_table(smi_output("case-01-nvsmi-csv-bracket-na.txt"), tuple(_FIELDS_01.split(",")))
    assert len(table.rows) == 3
    v100, gtx, vgpu = table.rows
    assert v100.number("memory.total") == 32510
    assert v100.number("utilization.gpu") == 0
    assert v100.cells["fan.speed"] == Untold(Absence.UNSUPPORTED, "this card or driver does not tell it")
    assert gtx.number("temperature.gpu") == 44
    assert isinstance(gtx.cells["utilization.gpu"], Untold)
    assert vgpu.number("memory.used") == 0
    assert {row.state for row in table.rows} == {CardState.ANSWERS}


def test_case_03_a_card_that_requires_a_reset_is_no_healthy_one() -> None:
    fields = ("index", "uuid", "utilization.gpu", "memory.used", "power.draw", "temperature.gpu")
    sick, well = parse_table(smi_output("case-03-nvsmi-csv-requires-reset.txt"), fields).rows
    assert (sick.state, sick.reason) == (CardState.RESET_REQUIRED, "GPU requires reset")
    assert isinstance(sick.number("temperature.gpu"), Untold)
    assert sick.number("memory.used") == 0
    assert well.state is CardState.ANSWERS
    assert (well.number("power.draw"), well.number("temperature.gpu")) == (612.4, 74)


def test_case_05_a_lost_card_is_named_by_its_address() -> None:
    table = parse_table(b"Unable to determine the device handle for GPU 0000:0C:00.0: Unknown Error\n")
    assert not table.rows
    (card,) = nvidia_smi_cards.cards(table)
    assert (card.address, card.state, card.reason) == ("0000:0c:00.0", CardState.LOST, "Unknown Error")


def test_case_05_the_other_three_are_read_from_their_own_calls() -> None:
    lines = smi_output("case-05-nvsmi-one-gpu-lost.txt").splitlines()
    rows = parse_table(b"\n".join(lines), ("index", "pci.bus_id", "temperature.gpu")).rows
    assert [(row.text("pci.bus_id"), row.number("temperature.gpu")) for row in rows] == [
        ("00000000:0B:00.0", 41),
        ("00000000:0D:00.0", 40),
        ("00000000:0E:00.0", 43),
    ]


def test_case_10_names_of_processes_may_hold_commas_and_quotes() -> None:
    fields = ("gpu_uuid", "pid", "process_name", "used_memory")
    first, second = smi_uuid_of(0), smi_uuid_of(1)
    assert parse_processes(smi_output("case-10-nvsmi-process-name-comma.txt"), fields) == {
        first: (GpuProcess(4242, 'python3 -c "print(1, 2)"', 1024), GpuProcess(4243)),
        second: (GpuProcess(4244, "", 512), GpuProcess(4245, 'ray::Worker"Dict\\x', None)),
    }


def smi_uuid_of(number_: int) -> str:
    return f"GPU-00000000-0000-0000-0000-{number_:012d}"


def test_case_12_what_is_not_understood_is_no_card() -> None:
    table = parse_table(smi_output("case-12-nvsmi-unparseable-not-available.txt"))
    assert not table.rows
    assert table.message == "Failed to initialize NVML: Driver/library version mismatch"


def test_case_28_links_as_they_are() -> None:
    link = ("pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max")
    fields = ("index", "pstate", "utilization.gpu", *link)
    rows = parse_table(smi_output("case-28-pcie-gen-idle-vs-load.txt"), fields).rows
    assert [[row.number(field) for field in fields[2:]] for row in rows] == [
        [0, 1, 4, 16, 16],
        [100, 2, 5, 16, 16],
        [99, 5, 5, 8, 16],
        [100, 5, 5, 16, 16],
    ]


def test_units_stand_in_the_header_or_behind_the_number() -> None:
    with_both = parse_table(b"index, memory.used [MiB], power.draw [W]\n0, 2048 MiB, 88.5 W\n").rows[0]
    without = parse_table(b"index, memory.used [KiB], power.draw [mW]\n0, 2048, 88500\n").rows[0]
    assert (with_both.number("memory.used"), with_both.number("power.draw")) == (2048, 88.5)
    assert (without.number("memory.used"), without.number("power.draw")) == (2, 88.5)


def test_older_names_of_fields_are_known() -> None:
    row = parse_table(b"gpu_bus_id, clocks_throttle_reasons.hw_slowdown, clocks.gr [MHz]\n00000000:17:00.0, Active, 210 MHz\n")
    (card,) = nvidia_smi_cards.cards(row)
    assert card.values["throttle_reason", "hw_slowdown"] == 1
    assert card.values["clock_frequency",] == 210
    assert card.index is None


def test_one_field_that_is_not_known_is_named() -> None:
    assert parse_table(b'Field "remapped_rows.pending" is not a valid field to query.\n').invalid_field == "remapped_rows.pending"
    known = valid_fields(b'List\n\n"index"\nThe "zero based" index.\n\n"clocks.gr" or "clocks.current.graphics"\nClock.\n')
    assert known == {"index", "clocks.gr", "clocks.current.graphics"}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("[GPU is lost]", CardState.LOST),
        ("GPU is lost", CardState.LOST),
        ("Reset required", CardState.RESET_REQUIRED),
        ("[Unknown Error]", Absence.READ_ERROR),
        ("ERR!", Absence.READ_ERROR),
        ("[Insufficient Permissions]", Absence.NO_PERMISSION),
        ("[Not Found]", Absence.UNKNOWN),
        ("[Requested functionality has been deprecated]", Absence.UNSUPPORTED),
        ("[Something new]", Absence.READ_ERROR),
        ("", Absence.UNKNOWN),
        ("0", None),
        ("Enabled", None),
    ],
)
def test_cells_without_a_value(text: str, meaning: CardState | Absence | None) -> None:
    found = absent_cell(text)
    assert (found.state if isinstance(found, Untold) else found) == meaning


@pytest.mark.parametrize(
    ("field", "text", "key", "state"),
    [
        ("gpu_recovery_action", "Reset", None, CardState.RESET_REQUIRED),
        ("gpu_recovery_action", "Drain P2P", None, CardState.ANSWERS),
        ("gpu_recovery_action", "None", None, CardState.ANSWERS),
        ("pstate", "P99x", "performance_state", CardState.ANSWERS),
        ("pstate", "[N/A]", "performance_state", CardState.ANSWERS),
        ("persistence_mode", "Perhaps", "persistence_mode", CardState.ANSWERS),
        ("memory.used", "many", "memory_usage", CardState.ANSWERS),
        ("memory.used", "1 parsec", "memory_usage", CardState.ANSWERS),
        ("ecc.errors.uncorrected.volatile.total", "[Unknown Error]", "ecc_errors", CardState.ANSWERS),
    ],
)
def test_single_cells(field: str, text: str, key: str | None, state: CardState) -> None:
    raw = f"index, pci.bus_id, memory.total [MiB], {field}\n0, 00000000:17:00.0, 100 MiB, {text}\n".encode()
    (card,) = nvidia_smi_cards.cards(parse_table(raw))
    assert card.state is state
    if key is not None:
        assert (key,) in card.untold
        assert (key,) not in card.values


def test_a_fabric_that_came_to_an_end_without_success_has_failed() -> None:
    raw = b"pci.bus_id, fabric.state, fabric.status\n00000000:17:00.0, Completed, Insufficient Resources\n"
    assert nvidia_smi_cards.cards(parse_table(raw))[0].values["fabric_state",] == 3


def test_ecc_that_is_switched_off_is_a_blind_spot() -> None:
    raw = b"pci.bus_id, ecc.mode.current, ecc.errors.uncorrected.volatile.total\n00000000:17:00.0, Disabled, [N/A]\n"
    absence = nvidia_smi_cards.cards(parse_table(raw))[0].untold["ecc_errors",]
    assert absence.state is Absence.UNSUPPORTED
    assert "nvidia-smi -e 1" in absence.reason


def test_a_card_that_uses_the_hosts_memory_has_none_of_its_own() -> None:
    raw = b"pci.bus_id, temperature.gpu, utilization.gpu [%], memory.total [MiB]\n0000000F:01:00.0, 41, 3 %, [N/A]\n"
    (card,) = nvidia_smi_cards.cards(parse_table(raw))
    assert card.address == "000f:01:00.0"
    assert card.untold["memory_usage",].state is Absence.NOT_APPLICABLE


def test_lines_that_are_no_rows_are_no_cards() -> None:
    raw = b"index, name, temperature.gpu\nWarning, this, happens, often\n0, A, B, C, 41\n1, short\nx, y, z\n"
    table = parse_table(raw)
    assert [row.text("name") for row in table.rows] == ["A, B, C"]
    assert table.message == "Warning, this, happens, often"
    assert parse_processes(b"gpu_uuid, pid, process_name\nx, y, z\nshort\nGPU-1, 12, sh\n") == {"GPU-1": (GpuProcess(12, "sh"),)}
    assert not parse_table(b"index, temperature.gpu\n0, 41, 42\n").rows, "too many cells, and none of them may hold commas"
    both = b"index, pci.bus_id, temperature.gpu\n0, 00000000:0C:00.0, 41\nGPU 0000:0C:00.0: GPU is lost\n"
    assert [card.state for card in nvidia_smi_cards.cards(parse_table(both))] == [CardState.ANSWERS], (
        "a row says more than a message"
    )
    assert not nvidia_smi_cards.cards(table), "without an address a row is nobody's"


@pytest.mark.parametrize("text", ["", "17", "zz:00.0", "0000:17:00", "0000:17:00.9"])
def test_what_is_no_address(text: str) -> None:
    assert normal_address(text) is None


@given(st.binary(max_size=400))
def test_any_bytes_give_a_table(raw: bytes) -> None:
    for table in (parse_table(raw), parse_table(b"index, pci.bus_id, temperature.gpu\n" + raw)):
        for card in nvidia_smi_cards.cards(table):
            assert all(map(math.isfinite, card.values.values()))
    parse_processes(b"gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n" + raw)
    valid_fields(raw)


@given(st.floats(0, 1e6, allow_nan=False).map(lambda value: round(value, 2)), st.sampled_from(["", " W", " MiB", " %", " us"]))
def test_numbers_come_back(value: float, unit: str) -> None:
    scale = 1e-6 if unit == " us" else 1.0
    assert number(f"{value:.2f}{unit}") == pytest.approx(value * scale)
    assert nvidia_smi.number("-") == Untold(Absence.READ_ERROR, "nvidia-smi says '-' in place of a number")
