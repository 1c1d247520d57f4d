"""Component npu over DCMI: no program is run, a wedged chip is stale alone, a driver that is gone leaves it to npu-smi."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeproof.collectors import npu
from nodeproof.errors import Absence, NoData
from nodeproof.host.commands import Commands
from nodeproof.host.dcmi import DcmiTiming, HelperDcmi
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.model.metric import Batch
from support.dcmi import FakeDcmi, plan, stub_library
from support.hosts_npu import A2, answers_of, write_npu_a2, write_npu_a3
from support.network import Everything
from support.readings import absence, value, values_by

_HBM = {"memory_size": 65536, "memory_usage": 32768, "temp": 45}


def _raw(**changes: Any) -> dict[str, Any]:
    return {"health": [0, 0], "errors": [0, []], "temperature": [0, 40], "power": [0, 942], "hbm": [0, _HBM]} | changes


class Node:
    """A node whose driver a test sets."""

    def __init__(self, root: Path, library: FakeDcmi | HelperDcmi, commands: Commands | None = None) -> None:
        self.clock = ManualClock()
        self.commands = commands or RecordedCommands({})
        self.machine = Machine(RecordedFiles(str(root)), self.commands, self.clock, dcmi=library)
        self.collector = npu.create(self.machine, Everything())

    def collect(self, cycles: int = 1, after_s: float = 3.0) -> Batch:
        """A cycle, after those before it."""
        for _ in range(cycles):
            batch = self.collector.collect()
            self.machine.settle(5.0)
            self.clock.advance(after_s)
        return batch


@pytest.fixture
def library(tmp_path: Path) -> FakeDcmi:
    write_npu_a2(str(tmp_path))
    chips = {
        (card, 0): {"name": "910B3", "bus": chip.bus.lower(), "logic": card, "phy": 7 - card} for card, chip in enumerate(A2)
    }
    return FakeDcmi(chips, {chip: _raw() for chip in chips})


def test_no_program_is_run_where_the_driver_answers(tmp_path: Path, library: FakeDcmi) -> None:
    commands = RecordedCommands(answers_of("npu-a2-8"))
    node = Node(tmp_path, library, commands)
    batch = node.collect(cycles=6)
    assert value(batch, "power_draw", npu_id="2", chip_id="0") == 94.2
    assert value(batch, "memory_usage", npu_id="2", chip_id="0") == 50.0
    assert value(batch, "driver_version", driver_version="24.1.rc3") == 1
    table = [line for line in commands.asked if not line.startswith("hccn_tool") and "topo" not in line and "hccs" not in line]
    assert table == []


def test_the_deep_look_comes_each_half_minute(tmp_path: Path, library: FakeDcmi) -> None:
    node = Node(tmp_path, library)
    node.collect(cycles=24, after_s=3.0)
    assert sum(library.asked) == 3
    assert len(library.asked) >= 20


def test_a_cycle_has_its_own_look(tmp_path: Path, library: FakeDcmi) -> None:
    node = Node(tmp_path, library)
    node.collect(cycles=2)
    library.values[2, 0] = _raw(temperature=[0, 77])
    assert value(node.collect(), "temperature", npu_id="2", chip_id="0") == 77


def test_a_wedged_chip_is_stale_alone(tmp_path: Path, library: FakeDcmi) -> None:
    node = Node(tmp_path, library)
    node.collect(cycles=2)
    del library.values[4, 0]
    batch = node.collect(cycles=2)
    assert absence(batch, "temperature", npu_id="4", chip_id="0").state is Absence.STALE
    assert absence(batch, "card_drop", npu_id="4", chip_id="0").state is Absence.STALE
    assert values_by(batch, "temperature", "npu_id") == {str(card): 40.0 for card in range(8) if card != 4}


def test_a_chip_that_is_not_ready_is_lost_at_once(tmp_path: Path, library: FakeDcmi) -> None:
    node = Node(tmp_path, library)
    library.values[5, 0] = {key: [-8012, None] for key in _raw()}
    batch = node.collect(cycles=2)
    assert values_by(batch, "card_drop", "npu_id") == {str(card): float(card == 5) for card in range(8)}


def test_a_card_that_is_no_longer_listed_is_lost(tmp_path: Path, library: FakeDcmi) -> None:
    node = Node(tmp_path, library)
    node.collect(cycles=2)
    del library.chips[6, 0]
    node.collect(cycles=2, after_s=61.0)
    batch = node.collect(cycles=4, after_s=61.0)
    assert value(batch, "card_drop", npu_id="6", chip_id="0") == 1


def test_a_driver_that_lists_nothing_any_more_is_still_asked_for_its_chips(tmp_path: Path, library: FakeDcmi) -> None:
    node = Node(tmp_path, library)
    node.collect(cycles=2)
    library.failure = NoData(Absence.STALE, "the Ascend driver did not list its cards within 5 s")
    batch = node.collect(cycles=5, after_s=61.0)
    assert len(values_by(batch, "temperature", "npu_id")) == 8
    assert 1.0 not in values_by(batch, "card_drop", "npu_id").values(), "a listing that failed loses nobody"


def test_a_driver_that_is_of_no_use_leaves_it_to_npu_smi(tmp_path: Path, library: FakeDcmi) -> None:
    library.failure = NoData(Absence.READ_ERROR, "dcmi_init of libdcmi.so failed with -8005")
    node = Node(tmp_path, library, RecordedCommands(answers_of("npu-a2-8")))
    batch = node.collect(cycles=4, after_s=6.0)
    assert value(batch, "temperature", npu_id="3", chip_id="0") == 41


def test_ids_are_kept_apart_and_ports_are_asked_by_the_physical_one(tmp_path: Path, library: FakeDcmi) -> None:
    commands = RecordedCommands({"hccn_tool -i 5 -link -g": b"link status: UP\n"})
    node = Node(tmp_path, library, commands)
    batch = node.collect(cycles=3)
    assert value(batch, "roce_link_status", npu_id="2", chip_id="0", status="up") == 1
    labels = [metric.labels for metric in npu.identity(node.machine)]
    assert labels[2] is not None
    assert (labels[2]["npu_id"], labels[2]["logic_id"], labels[2]["phy_id"]) == ("2", "2", "5")


def test_defect_11_every_reading_names_card_and_chip(tmp_path: Path, library: FakeDcmi) -> None:
    batch = Node(tmp_path, library).collect(cycles=3)
    nameless = {"device_count", "device_nodes", "npu_num", "driver_version", "comm_topo"}
    assert {metric.name for metric in batch.metrics if not {"npu_id", "chip_id"} <= set(metric.labels or {})} <= nameless


def test_before_the_first_answer_nothing_is_known_and_nothing_is_well(tmp_path: Path, library: FakeDcmi) -> None:
    class Slow(FakeDcmi):
        """Never answers."""

        def listing(self) -> Any:
            """Not before the test ends."""
            raise NoData(Absence.UNKNOWN, "not yet")

    node = Node(tmp_path, Slow(library.chips, library.values), RecordedCommands(answers_of("npu-a2-8")))
    batch = node.collect()
    assert absence(batch, "temperature").state is Absence.UNKNOWN


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HelperDcmi]:
    plan(tmp_path / "plan", "cards=8 devices=2 sick=6")
    monkeypatch.setenv("DCMI_STUB_PLAN", str(tmp_path / "plan"))
    found = HelperDcmi(DcmiTiming(look_s=1.0), stub_library())
    yield found
    found.close()


def test_twenty_readings_through_the_real_helper(tmp_path: Path, real: HelperDcmi) -> None:
    """Sixteen chips; chip n of the stand-in has 40 + n degrees, 91.5 + n W, 3276 + 6554 n MB."""
    write_npu_a3(str(tmp_path))
    batch = Node(tmp_path, real).collect(cycles=4)
    chip = {"npu_id": "3", "chip_id": "1"}  # n = 7
    assert value(batch, "npu_num") == 16
    assert value(batch, "temperature", **chip) == 47
    assert value(batch, "power_draw", **chip) == 98.5
    assert value(batch, "voltage", **chip) == 0.85
    assert value(batch, "utilization", **chip) == 9  # selector 2 + 7
    assert value(batch, "vector_core_util", **chip) == 19  # selector 12 + 7
    assert value(batch, "aicore_freq", **chip) == 707  # 100 * 7 + 7
    assert value(batch, "aicore_rated_freq", **chip) == 907
    assert value(batch, "hbm_used_memory", **chip) == 49154  # 3276 + 7 * 6554
    assert value(batch, "memory_usage", **chip) == 75.0  # 49154 / 65536 = 0.75003
    assert value(batch, "hbm_temp", **chip) == 52
    assert value(batch, "cluster_temp", **chip) == 30
    assert value(batch, "aicore1_temp", **chip, aicore="1") == 33
    assert value(batch, "ntc3_temp", **chip, ntc="3") == 23
    assert value(batch, "aicore_voltage", **chip) == 0.85
    assert value(batch, "acg_count", **chip) == 12345
    assert value(batch, "venc_util", **chip) == 3
    assert value(batch, "llc_throughput", **chip) == 7000
    assert value(batch, "hbm_single_ecc_isolated", **chip, device_type="hbm") == 5
    assert value(batch, "health_status", npu_id="6", chip_id="0", status="Alarm") == 3
    assert value(batch, "error_code", npu_id="6", chip_id="0", error_codes="0x80c98000,0x40f84e00") == 2
    assert value(batch, "process_info", npu_id="0", chip_id="0", process_pids="1234,5678") == 2
    assert absence(batch, "npu_util").reason == "util.13: 4294967295 stands for no value"
    assert absence(batch, "ddr_double_ecc").state is Absence.NOT_APPLICABLE
