"""Component npu over ``npu-smi`` and ``hccn_tool``: whole nodes, a lost card, a hung tool, sick answers."""

import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nodeproof.collectors import npu
from nodeproof.collectors.base import Collector
from nodeproof.errors import Absence, CommandError, CommandFailure
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles, recorded_machine
from nodeproof.model.metric import Batch
from support import tree
from support.hosts_npu import A2, A3, answers_of, details, table, write_npu_a2, write_npu_a3
from support.network import Everything
from support.readings import absence, absent_names, value, values_by

Answers = Mapping[str, bytes | CommandResult | CommandError]

_HUNG = CommandError("npu-smi", CommandFailure.TIMED_OUT, "gave no answer in 20 s and was ended")


class Node:
    """A made-up node, its clock, and its collector."""

    def __init__(self, root: Path, answers: Answers) -> None:
        self.clock = ManualClock()
        self.machine: Machine = recorded_machine(str(root), answers, self.clock)
        self.collector: Collector = npu.create(self.machine, Everything())

    @property
    def commands(self) -> RecordedCommands:
        """The programs, whose answers may be changed."""
        assert isinstance(self.machine.commands, RecordedCommands)
        return self.machine.commands

    def collect(self, after_s: float = 6.0, cycles: int = 1) -> Batch:
        """A cycle, after those before it and the slow sources' answers to them."""
        for _ in range(cycles):
            batch = self.collector.collect()
            self.machine.settle(5.0)
            self.clock.advance(after_s)
        return batch


@pytest.fixture
def a2(tmp_path: Path) -> Node:
    write_npu_a2(str(tmp_path))
    return Node(tmp_path, answers_of("npu-a2-8"))


@pytest.fixture
def a3(tmp_path: Path) -> Node:
    write_npu_a3(str(tmp_path))
    return Node(tmp_path, answers_of("npu-a3-16"))


def test_twenty_readings_of_a_node_with_eight_chips(a2: Node) -> None:
    batch = a2.collect(cycles=12)
    chip = {"npu_id": "3", "chip_id": "0"}
    assert value(batch, "device_count", vendor="huawei") == 8  # eight addresses on the bus
    assert value(batch, "device_nodes") == 8  # davinci0 to davinci7; davinci_manager is none
    assert value(batch, "npu_num") == 8
    assert value(batch, "temperature", **chip) == 41  # 38 + 3
    assert value(batch, "power_draw", **chip) == 94.5  # 91.5 + 3
    assert value(batch, "utilization", **chip) == 30  # 10 * 3
    assert value(batch, "hbm_used_memory", **chip) == 22938  # 3276 + 3 * 6554
    assert value(batch, "hbm_total_memory", **chip) == 65536
    assert value(batch, "memory_usage", **chip) == 35.0  # 22938 / 65536 = 0.350006
    assert value(batch, "health_status", **chip, status="OK") == 1
    assert value(batch, "card_drop", **chip) == 0
    assert value(batch, "error_code", **chip) == 0
    assert value(batch, "aicore_freq", **chip) == 803  # 800 + 3
    assert value(batch, "aicore_rated_freq", **chip) == 1800
    assert value(batch, "vector_core_util", **chip) == 6  # 2 * 3
    assert value(batch, "hbm_temp", **chip) == 48  # 45 + 3
    assert value(batch, "hbm_freq", **chip) == 1600
    assert value(batch, "hbm_double_ecc_isolated", **chip, device_type="hbm") == 1
    assert value(batch, "hccs_tx_bandwidth", **chip, direction="tx") == 1024  # 1 GB/s
    assert value(batch, "process_total", npu_id="0", chip_id="0") == 1
    assert value(batch, "process_info", npu_id="1", chip_id="0", process_pids="4101") == 1
    assert value(batch, "driver_version", driver_version="24.1.rc3") == 1
    assert absence(batch, "ddr_double_ecc").state is Absence.NOT_APPLICABLE
    assert absence(batch, "hbm_bandwidth_util", npu_id="1", chip_id="0").state is Absence.UNSUPPORTED
    assert absence(batch, "roce_link_status").reason == "hccn_tool is not installed"


def test_a_port_is_not_asked_for_under_a_guessed_id(a2: Node) -> None:
    a2.commands.answers["hccn_tool -i 0 -link -g"] = b"link status: UP\n"
    batch = a2.collect(cycles=3)
    assert "the physical id of the chip is not known" in absence(batch, "roce_link_status").reason
    assert [line for line in a2.commands.asked if line.startswith("hccn_tool")] == []


def test_twenty_readings_of_a_node_with_sixteen_chips_on_eight_cards(a3: Node) -> None:
    batch = a3.collect(cycles=12)
    first, second = {"npu_id": "3", "chip_id": "0"}, {"npu_id": "3", "chip_id": "1"}
    assert value(batch, "device_count", vendor="huawei") == 16
    assert value(batch, "npu_num") == 16
    assert value(batch, "temperature", **first) == 40  # physical id 6: 34 + 6
    assert value(batch, "temperature", **second) == 41
    assert value(batch, "utilization", **first) == 36  # 6 * 6
    assert value(batch, "utilization", **second) == 42  # 6 * 7
    assert value(batch, "power_draw", **first) == 166.5  # the card's, once
    assert absence(batch, "power_draw", **second).state is Absence.NOT_APPLICABLE
    assert sum(values_by(batch, "power_draw", "npu_id").values()) == 8 * 160.5 + 2 * sum(range(8))
    assert value(batch, "hbm_used_memory", **second) == 3700  # 3000 + 100 * 7
    assert value(batch, "memory_usage", **second) == 5.65  # 3700 / 65536 = 0.05646
    assert value(batch, "net_tx_bandwidth", **second, direction="tx") == 7.5  # port 7
    assert value(batch, "net_rx_bandwidth", **second, direction="rx") == 14  # 2 * 7
    assert value(batch, "mac_tx_mac_pause_num", **second) == 7000  # first counter of port 7
    assert value(batch, "mac_rx_mac_pause_num", **second) == 7001
    assert value(batch, "nic_rx_all_oct_num", **second) == 7045  # the last of 46
    assert value(batch, "roce_link_status", **second, status="up") == 1
    assert value(batch, "roce_link_status", npu_id="1", chip_id="0", status="down") == 0  # port 2
    assert value(batch, "roce_speed_status", **second, roce_speed="200000 Mb/s") == 1
    assert value(batch, "process_total", npu_id="7", chip_id="1") == 1  # port 15
    assert value(batch, "process_total", npu_id="7", chip_id="0") == 0
    assert absence(batch, "roce_speed_status", npu_id="1", chip_id="0").state is Absence.UNKNOWN
    assert absence(batch, "net_rx_bandwidth", npu_id="1", chip_id="1").state is Absence.READ_ERROR  # port 3 left it out
    assert absence(batch, "roce_new_pkt_rty").state is Absence.UNSUPPORTED


def test_one_call_a_cycle_serves_all_cards(a2: Node) -> None:
    a2.collect(cycles=12)
    before = len([line for line in a2.commands.asked if line == "npu-smi info"])
    a2.collect(after_s=5.0, cycles=4)
    asked = [line for line in a2.commands.asked if line == "npu-smi info"]
    assert len(asked) - before == 4


def test_ids_are_kept_apart(a3: Node) -> None:
    a3.collect(cycles=3)
    labels = [metric.labels for metric in npu.identity(a3.machine)]
    assert labels[7] == {
        "npu_id": "3",
        "chip_id": "1",
        "name": "Ascend910",
        "bus_id": "0000:93:00.0",
        "logic_id": "7",
        "phy_id": "7",
    }
    assert len(labels) == 16


def test_identity_waits_for_the_first_answer_and_is_empty_without_cards(a2: Node, tmp_path: Path) -> None:
    assert len(npu.identity(a2.machine)) == 8
    assert npu.identity(recorded_machine(str(tmp_path / "empty"))) == []


def test_a_card_on_the_bus_that_nobody_lists_is_lost_after_two_listings(tmp_path: Path) -> None:
    write_npu_a2(str(tmp_path))
    node = Node(tmp_path, answers_of("npu-a2-dropped"))
    assert "card_drop" in absent_names(node.collect())
    assert 1.0 not in values_by(node.collect(), "card_drop", "npu_id").values(), "one listing convicts nobody"
    batch = node.collect(cycles=2)
    assert {card: lost for card, lost in values_by(batch, "card_drop", "npu_id").items() if lost} == {"0000:02:00.0": 1.0}
    assert absence(batch, "temperature", npu_id="0000:02:00.0").state is Absence.READ_ERROR


def test_in_a_container_other_cards_on_the_bus_are_none_of_ours(tmp_path: Path) -> None:
    write_npu_a2(str(tmp_path))
    tree.write(str(tmp_path), "/run/.containerenv", "")
    tree.write(str(tmp_path), "/.dockerenv", "")
    batch = Node(tmp_path, answers_of("npu-a2-dropped")).collect(cycles=4)
    assert set(values_by(batch, "card_drop", "npu_id").values()) == {0.0}


def test_a_chip_that_vanishes_is_lost_under_its_own_number_and_comes_back(a2: Node) -> None:
    a2.collect(cycles=3)
    a2.commands.answers["npu-smi info"] = table([chip for chip in A2 if chip.npu != 5])
    batch = a2.collect(cycles=4)
    assert value(batch, "card_drop", npu_id="5", chip_id="0") == 1
    assert absence(batch, "temperature", npu_id="5", chip_id="0").remedy
    a2.commands.answers["npu-smi info"] = table(A2)
    assert value(a2.collect(cycles=3), "card_drop", npu_id="5", chip_id="0") == 0


def test_a_torn_table_loses_no_card(a2: Node) -> None:
    a2.collect(cycles=3)
    whole = table(A2)
    a2.commands.answers["npu-smi info"] = whole[: whole.index(b"0000:02:00.0")]
    batch = a2.collect(cycles=5)
    assert set(values_by(batch, "card_drop", "npu_id").values()) == {0.0}


def test_a_hung_tool_makes_everything_stale_and_nothing_well(tmp_path: Path) -> None:
    write_npu_a2(str(tmp_path))
    batch = Node(tmp_path, answers_of("npu-a2-hung")).collect(cycles=4)
    assert {metric.name for metric in batch.metrics} == {"device_count", "device_nodes"}
    assert absence(batch, "temperature").state is Absence.STALE
    assert absence(batch, "card_drop").state is Absence.STALE


def test_the_tool_recovers_by_itself(a2: Node) -> None:
    a2.commands.answers["npu-smi info"] = _HUNG
    assert absence(a2.collect(cycles=3), "temperature").state is Absence.STALE
    a2.commands.answers["npu-smi info"] = table(A2)
    assert value(a2.collect(cycles=3), "temperature", npu_id="0", chip_id="0") == 38


def test_without_the_tool_the_remedy_is_named(tmp_path: Path) -> None:
    write_npu_a2(str(tmp_path))
    entry = absence(Node(tmp_path, {}).collect(), "temperature")
    assert (entry.state, entry.remedy) == (Absence.UNSUPPORTED, "install the Ascend driver package (npu-smi)")


def test_a_driver_that_refuses_says_why(a2: Node) -> None:
    a2.commands.answers["npu-smi info"] = b"dcmi module initialize failed. ret is -8005\n"
    entry = absence(a2.collect(cycles=3), "temperature")
    assert (entry.state, entry.reason) == (Absence.READ_ERROR, "npu-smi info: dcmi module initialize failed. ret is -8005")


def test_a_card_whose_details_hang_costs_its_own(a2: Node) -> None:
    a2.commands.answers["npu-smi info -t common -i 3"] = _HUNG
    batch = a2.collect(cycles=4)
    assert absence(batch, "aicore_freq", npu_id="3", chip_id="0").state is Absence.STALE
    assert value(batch, "aicore_freq", npu_id="4", chip_id="0") == 804
    assert value(batch, "temperature", npu_id="3", chip_id="0") == 41, "the table tells it all the same"
    asked = [line for line in a2.commands.asked if line.endswith("-i 3")]
    assert asked == ["npu-smi info -t common -i 3"], "the rest of its questions are not asked"


def test_details_that_a_card_refuses_leave_the_others(a2: Node) -> None:
    a2.commands.answers["npu-smi info -t ecc -i 2"] = b"This device does not support querying ecc.\n"
    a2.commands.answers["npu-smi info -t health -i 2"] = CommandError("npu-smi", CommandFailure.NO_PERMISSION, "denied")
    for question in ("common", "usages", "memory", "ecc", "health"):
        a2.commands.answers[f"npu-smi info -t {question} -i 6"] = b"busy\n"
    batch = a2.collect(cycles=4)
    assert value(batch, "hbm_temp", npu_id="2", chip_id="0") == 47
    assert absence(batch, "hbm_double_ecc", npu_id="2", chip_id="0").state is Absence.UNSUPPORTED
    assert absence(batch, "hbm_temp", npu_id="6", chip_id="0").state is Absence.READ_ERROR


def test_defect_10_the_first_error_after_the_start_is_reported_and_chips_do_not_mix(a3: Node) -> None:
    labels = {"npu_id": "3", "chip_id": "1", "device_type": "hbm", "kind": "double"}
    assert value(a3.collect(cycles=3), "hbm_double_ecc", **labels) == 0
    changed = dict(details(A3, double=4))
    first, second = changed["npu-smi info -t ecc -i 3"].split(b"Chip ID", 1)
    a3.commands.answers["npu-smi info -t ecc -i 3"] = first.replace(b": 4\n", b": 0\n") + b"Chip ID" + second
    batch = a3.collect(after_s=31.0, cycles=4)
    assert value(batch, "hbm_double_ecc_errors_total", **labels) == 4
    gains = [metric.value for metric in batch.metrics if metric.name == "hbm_double_ecc" and metric.labels == labels]
    assert gains in ([4.0], [0.0])
    assert value(batch, "hbm_double_ecc_errors_total", **(labels | {"chip_id": "0"})) == 0


def test_error_codes_and_health_words(a2: Node) -> None:
    sick = [chip._replace(health={1: "Warning", 2: "Alarm", 3: "Critical", 4: "Odd", 5: "NA"}.get(chip.npu, "OK")) for chip in A2]
    a2.commands.answers |= {"npu-smi info": table(sick), **details(sick)}
    batch = a2.collect(cycles=4)
    assert value(batch, "health_status", npu_id="0", chip_id="0", status="OK") == 1
    assert value(batch, "health_status", npu_id="1", chip_id="0", status="Warning") == 2
    assert value(batch, "health_status", npu_id="3", chip_id="0", status="Critical") == 4
    assert "'Odd'" in absence(batch, "health_status", npu_id="4", chip_id="0").reason
    assert absence(batch, "health_status", npu_id="5", chip_id="0").state is Absence.UNKNOWN
    assert value(batch, "error_code", npu_id="2", chip_id="0", error_codes="0x80c98000") == 1


def test_hccn_tool_that_is_missing_or_hangs(a3: Node) -> None:
    for line in [line for line in a3.commands.answers if line.startswith("hccn_tool -i 5 ")]:
        a3.commands.answers[line] = CommandError("hccn_tool", CommandFailure.TIMED_OUT, "gave no answer in 8 s and was ended")
    batch = a3.collect(cycles=3)
    assert absence(batch, "roce_link_status", npu_id="2", chip_id="1").state is Absence.READ_ERROR
    assert value(batch, "roce_link_status", npu_id="3", chip_id="0", status="up") == 1
    for line in [line for line in a3.commands.answers if line.startswith("hccn_tool")]:
        del a3.commands.answers[line]
    a3.collect(after_s=31.0, cycles=3)
    batch = a3.collect(cycles=2)
    assert absence(batch, "mac_tx_mac_pause_num").reason == "hccn_tool is not installed"


def test_defect_18_ports_are_asked_side_by_side(tmp_path: Path) -> None:
    """Four questions about links must be in flight at the same time, or none of them is ever answered."""
    write_npu_a3(str(tmp_path))
    meet = threading.Barrier(4, timeout=10.0)

    class Meeting(RecordedCommands):
        def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
            if "-link" in argv:
                meet.wait()
            return super().run(argv, deadline_s=deadline_s, subject=subject)

    clock = ManualClock()
    machine = Machine(RecordedFiles(str(tmp_path)), Meeting(answers_of("npu-a3-16")), clock)
    collector = npu.create(machine, Everything())
    for _ in range(3):
        batch = collector.collect()
        machine.settle(20.0)
        clock.advance(6.0)
    assert len([metric for metric in batch.metrics if metric.name == "roce_link_status"]) == 16


def test_an_unknown_word_of_a_link_is_not_down(a3: Node) -> None:
    a3.commands.answers["hccn_tool -i 4 -link -g"] = b"link status: DEGRADED\n"
    a3.commands.answers["hccn_tool -i 5 -stat -g"] = b"hccn_tool is busy, please try again\n"
    batch = a3.collect(cycles=3)
    assert absence(batch, "roce_link_status", npu_id="2", chip_id="0").state is Absence.UNKNOWN
    assert absence(batch, "mac_tx_mac_pause_num", npu_id="2", chip_id="1").state is Absence.READ_ERROR


def test_old_answers_are_stale(a2: Node) -> None:
    a2.collect(cycles=4)
    for line in [line for line in a2.commands.answers if " -t " in line]:
        del a2.commands.answers[line]
    a2.clock.advance(241.0)
    batch = a2.collect()
    assert absence(batch, "aicore_freq").state in {Absence.STALE, Absence.UNSUPPORTED}


def test_a_board_without_a_bus_has_cards_all_the_same(tmp_path: Path) -> None:
    tree.write(str(tmp_path), "/dev/davinci0", "")
    batch = Node(tmp_path, {"npu-smi info": table(A2[:1])}).collect(cycles=3)
    assert absence(batch, "device_count").reason == "the NPUs of this board are not on a PCI bus"
    assert value(batch, "temperature", npu_id="0", chip_id="0") == 38
    assert absence(batch, "driver_version").state is Absence.UNKNOWN
    assert absence(batch, "comm_topo").state is Absence.UNSUPPORTED


def test_nodes_and_bus_that_cannot_be_looked_through(a2: Node, tmp_path: Path) -> None:
    a2.collect(cycles=2)
    shutil.rmtree(tmp_path / "dev")
    (tmp_path / "dev").write_text("", encoding="utf-8")
    shutil.rmtree(tmp_path / "sys")
    batch = a2.collect(after_s=61.0, cycles=3)
    assert absence(batch, "device_nodes").reason == "/dev: Not a directory"
    assert 1.0 not in values_by(batch, "card_drop", "npu_id").values()


def test_a_card_without_hbm_has_its_other_memory(a2: Node) -> None:
    chips = [A2[0]._replace(memory="2048 / 8192", hbm="0    / 0"), *A2[1:]]
    a2.commands.answers["npu-smi info"] = table(chips)
    batch = a2.collect(cycles=3)
    assert value(batch, "memory_usage", npu_id="0", chip_id="0") == 25.0
