"""``npu-smi info`` in the layouts of three kinds of card, and in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData
from nodeproof.sources import npu_cells, npu_smi
from support.hosts_npu import A2, A3, Chip, table, table_950
from support.npu import npu_smi_output


def test_case_36_two_chips_of_a_card_are_two_and_its_power_counts_once() -> None:
    found = npu_smi.parse(npu_smi_output("case-36.txt"))
    assert [(chip.npu_id, chip.chip_id, chip.phy_id) for chip in found.chips] == [(0, 0, 0), (0, 1, 1), (1, 0, 2)]
    power = [chip.readings["power"] for chip in found.chips]
    assert (power[0], power[2]) == (162.6, 168.1)
    assert isinstance(power[1], NoData)
    assert power[1].state is Absence.NOT_APPLICABLE
    assert [chip.bus_id for chip in found.chips] == ["0000:9d:00.0", "0000:9f:00.0", "0000:99:00.0"]
    assert found.chips[2].readings["aicore"] == 12.0
    assert (found.version, found.faults, found.processes) == ("26.0.rc2", (), None)


def test_a2_tells_no_physical_id_and_none_is_guessed() -> None:
    found = npu_smi.parse(table(A2))
    assert [(chip.npu_id, chip.chip_id) for chip in found.chips] == [(card, 0) for card in range(8)]
    assert {chip.phy_id for chip in found.chips} == {None}
    third = found.chips[3]
    assert (third.name, third.health) == ("910B3", "OK")
    assert (third.readings["power"], third.readings["temperature"], third.readings["aicore"]) == (94.5, 41.0, 30.0)
    assert (third.readings["hbm_used"], third.readings["hbm_total"]) == (3276.0 + 3 * 6554, 65536.0)
    assert found.processes == (
        npu_smi.NpuProcess(0, 0, 4100, "python3", 12417.0),
        npu_smi.NpuProcess(1, 0, 4101, "python3", 12417.0),
    )


def test_a3_has_sixteen_chips_on_eight_cards() -> None:
    found = npu_smi.parse(table(A3))
    assert [chip.phy_id for chip in found.chips] == list(range(16))
    assert {chip.npu_id for chip in found.chips} == set(range(8))
    assert found.processes == (npu_smi.NpuProcess(7, 1, 7000, "python3", 12417.0),)


def test_a_950_has_its_name_in_another_column_and_no_chip_numbers() -> None:
    first = Chip(0, 0, "0000:71:00.0", "Ascend950PR", power="276.0", aicore="99", hbm="8824 / 131072")
    chips = [first, first._replace(npu=1, bus="0000:72:00.0")]
    found = npu_smi.parse(table_950(chips))
    assert [(chip.npu_id, chip.chip_id, chip.name) for chip in found.chips] == [(0, 0, "Ascend950PR"), (1, 0, "Ascend950PR")]
    assert found.chips[0].readings["npu"] == 99.0
    assert (found.chips[1].readings["hbm_used"], found.chips[1].readings["hbm_total"]) == (8824.0, 131072.0)
    assert found.faults == ()


def test_a_310_has_ddr_memory_alone() -> None:
    text = b"""\
| NPU     Name      | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device    | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===================+=================+======================================================+
| 6       310P3     | OK              | NA           50                0    / 0              |
| 0       0         | 0000:82:00.0    | 0            1074 / 21534                            |
"""
    chip = npu_smi.parse(text).chips[0]
    assert (chip.npu_id, chip.phy_id) == (6, None)
    assert (chip.readings["memory_used"], chip.readings["memory_total"]) == (1074.0, 21534.0)
    assert "hbm_used" not in chip.readings
    assert isinstance(chip.readings["power"], NoData)
    assert chip.readings["power"].state is Absence.UNSUPPORTED


def _readings(**cells: str) -> dict[str, object]:
    chip = npu_smi.parse(table([Chip(**(A2[0]._asdict() | cells))])).chips[0]
    return dict(chip.readings)


@pytest.mark.parametrize(
    ("cells", "name", "state"),
    [
        ({"temperature": "NA"}, "temperature", Absence.UNSUPPORTED),
        ({"temperature": "-"}, "temperature", Absence.UNKNOWN),
        ({"temperature": "2147483647"}, "temperature", Absence.UNKNOWN),
        ({"temperature": "4294967295"}, "temperature", Absence.UNKNOWN),
        ({"temperature": "41,5"}, "temperature", Absence.READ_ERROR),
        ({"temperature": "999"}, "temperature", Absence.UNKNOWN),
        ({"power": "6553.5"}, "power", Absence.UNKNOWN),
        ({"aicore": "808334905"}, "aicore", Absence.UNKNOWN),
        ({"hbm": "NA / NA"}, "hbm_used", Absence.UNSUPPORTED),
        ({"hbm": "NA"}, "hbm_used", Absence.UNSUPPORTED),
        ({"hbm": "70000 / 65536"}, "hbm_used", Absence.UNKNOWN),
        ({"hbm": "0 / 0"}, "hbm_total", Absence.NOT_APPLICABLE),
    ],
)
def test_what_is_no_number_is_absent_and_its_neighbours_stay(cells: dict[str, str], name: str, state: Absence) -> None:
    readings = _readings(**cells)
    value = readings[name]
    assert isinstance(value, NoData)
    assert value.state is state
    numbers = {name for name, value in readings.items() if isinstance(value, float)}
    assert len(numbers) >= 3


def test_a_chip_with_a_torn_cell_keeps_its_identity() -> None:
    raw = table([A2[3]]).replace(b"30          0    / 0          22938 / 65536", b"30          22938 / 65536                   ")
    chip = npu_smi.parse(raw).chips[0]
    assert (chip.npu_id, chip.chip_id, chip.bus_id) == (3, 0, "0000:82:00.0")
    torn = [chip.readings[name] for name in ("aicore", "hbm_used", "hbm_total")]
    assert all(isinstance(value, NoData) and value.state is Absence.READ_ERROR for value in torn)
    assert chip.readings["temperature"] == 41.0


def test_a_name_of_two_words_is_one_name() -> None:
    assert npu_smi.parse(table([A2[0]._replace(name="910 B3")])).chips[0].name == "910 B3"


def test_a_torn_table_costs_the_torn_chips_and_says_so() -> None:
    lines = table(A2[:4]).decode().splitlines(keepends=True)
    second_row = next(number for number, line in enumerate(lines) if "0000:C2:00.0" in line)
    found = npu_smi.parse("".join(lines[:second_row] + lines[second_row + 1 :]).encode())
    assert [chip.npu_id for chip in found.chips] == [0, 2, 3]
    assert found.faults == ("the second row of NPU '1     910B3' is missing",)


def test_an_answer_cut_short_is_no_whole_listing() -> None:
    raw = table(A2[:2])
    cut = raw[: raw.index(b"0000:C2:00.0")]
    found = npu_smi.parse(cut)
    assert [chip.npu_id for chip in found.chips] == [0]
    assert found.faults


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| x     910B3 | OK | 1 2 0 / 0 |\n| 0 | 0000:01:00.0 | 0 0 / 0 1 / 2 |", "'x     910B3' is no number of an NPU"),
        ("| 1 910B3 | OK |\n| 0 | 0000:01:00.0 | 0 0 / 0 1 / 2 |", "a row of NPU '1 910B3' does not fit its headings"),
        ("| 0 910B3 | OK | 1 2 0 / 0 |\n| 0 | 0000:01:00.0 | 0 0 / 0 1 / 2 |", "NPU 0 has no chip '0', or has it twice"),
    ],
)
def test_a_row_that_cannot_be_used_is_told(row: str, fault: str) -> None:
    raw = table([A2[0]]).decode()
    head = raw[: raw.index("+" + "-" * 27 + "+", raw.index("65536"))]
    found = npu_smi.parse((head + row + "\n").encode())
    assert [chip.npu_id for chip in found.chips] == [0]
    assert found.faults == (fault,)


def test_health_and_address_that_are_not_told_are_empty() -> None:
    chip = npu_smi.parse(table([A2[0]._replace(health="NA", bus="NA")])).chips[0]
    assert (chip.health, chip.bus_id) == ("", "")


def test_process_rows_that_are_none_are_left_out() -> None:
    raw = table([A2[0]]).decode().replace("4100 ", "n/a  ")
    assert npu_smi.parse(raw.encode()).processes == ()
    raw = table([A2[0]]).decode().replace("| 12417 ", "| NA    ").replace("0       0 ", "0         ")
    assert npu_smi.parse(raw.encode()).processes == (npu_smi.NpuProcess(0, 0, 4100, "python3", None),)
    short = table([A2[0]]).decode().replace("| 4100 ", "| 4100 | x ")
    assert npu_smi.parse(short.encode()).processes == ()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\ndcmi module initialize failed. ret is -8005\n", "ret is -8005"),
        (b"", "npu-smi info printed nothing"),
        (b"+----+\n", "npu-smi info printed nothing"),
    ],
)
def test_an_answer_without_a_table_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(NoData, match=reason):
        npu_smi.parse(raw)


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_table_or_an_absence(raw: bytes) -> None:
    try:
        found = npu_smi.parse(raw)
    except NoData:
        return
    assert len(found.chips) <= 4096


_A3_TABLE = table(A3)
_FIRST_ROW = _A3_TABLE.index(b"| 0     Ascend910")


def _numbers(raw: bytes) -> dict[tuple[int, int], dict[str, float]]:
    found = npu_smi.parse(raw)
    return {
        (chip.npu_id, chip.chip_id): {name: value for name, value in chip.readings.items() if isinstance(value, float)}
        for chip in found.chips
    }


@given(st.integers(_FIRST_ROW, len(_A3_TABLE) - 1), st.integers(0, 255))
def test_a_changed_byte_costs_one_chip_at_most_and_moves_nothing(at: int, byte: int) -> None:
    raw = bytearray(_A3_TABLE)
    raw[at] = byte
    right, found = _numbers(_A3_TABLE), _numbers(bytes(raw))
    assert len([key for key in found if found[key] != right.get(key)]) <= 1
    assert len(found) >= 14


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(sorted(npu_cells.LIMITS)))
def test_what_is_believed_lies_within_its_limits(value: float, unit: str) -> None:
    found = npu_cells.believable(value, unit, "it")
    low, high = npu_cells.LIMITS[unit]
    assert isinstance(found, NoData) or low <= found <= high
