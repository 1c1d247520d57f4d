"""Ascend chips under a run: what the provider says of them, and what the rules make of it. No NPU was at hand."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.probe import Settings
from nodeproof.hardware.providers import RecordedProvider, Survey
from nodeproof.hardware.readers.ascend import NPU_RAIL, AscendProvider
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.model.hardware import ComputeApp, Decision, DeviceState, Effect, Field, HardwareReport, Sensitivity, Validity
from support.box import Box, Switches
from support.dcmi import FakeDcmi
from support.hosts_npu import answers_of, write_npu_a2
from support.tree import write

_ECC = {
    "single_bit_error_cnt": 3,
    "double_bit_error_cnt": 1,
    "single_bit_isolated_pages_cnt": 0,
    "double_bit_isolated_pages_cnt": 0,
}


def raw(**changes: Any) -> dict[str, Any]:
    """One chip that is well; a key's dot is written ``__``."""
    plain: dict[str, Any] = {
        "health": [0, 0],
        "temperature": [0, 55],
        "power": [0, 3100],
        "util.2": [0, 90],
        "freq.7": [0, 1800],
        "freq.9": [0, 1800],
        "ecc.2": [0, _ECC],
        "ecc.0": [-8255, None],
        "memory": [-8255, None],
        "ntc": [-8255, None],
        "processes": [0, []],
    }
    return plain | {key.replace("__", "."): value for key, value in changes.items()}


class Node:
    """Two chips whose driver a test sets."""

    def __init__(self, root: Path, **second: Any) -> None:
        write_npu_a2(str(root))
        self.root = root
        self.clock = ManualClock()
        listed: dict[tuple[int, int], dict[str, Any]] = {
            (card, 0): {"name": "910B3", "bus": f"0000:{card:02x}:00.0", "logic": card} for card in (0, 1)
        }
        self.library = FakeDcmi(listed, {(0, 0): raw(), (1, 0): raw(**second)})
        self.machine = Machine(RecordedFiles(str(root)), RecordedCommands({}), self.clock, dcmi=self.library)
        self.provider = AscendProvider(self.machine)

    def read(self) -> Survey:
        survey = self.provider.read()
        self.machine.settle(5.0)
        return survey


def field(survey: Survey, device: str, name: str) -> Field:
    return next(one for one in survey.fields if (one.device, one.name) == (device, name))


def test_every_reading_of_a_chip(tmp_path: Path) -> None:
    node = Node(tmp_path)
    survey = node.read()
    first = survey.devices[0]
    assert msgspec.structs.replace(first, power_at_s=None) == DeviceState(
        "npu0",
        vendor="Huawei",
        name="910B3",
        driver="24.1.rc3",
        temp_c=55.0,
        clock_mhz=1800.0,
        clock_max_mhz=1800.0,
        rated_mhz=1800.0,
        busy_share=0.9,
        uncorrected_errors=1,
        corrected_errors=3,
        power_w=310.0,
        power_rail=NPU_RAIL,
        health="OK",
    )
    assert first.power_at_s is not None
    assert [device.device for device in survey.devices] == ["npu0", "npu1"]
    assert (survey.source, survey.apps) == ("DCMI", ())
    assert field(survey, "npu1", "power_draw").value == 310.0
    slowed = field(survey, "npu1", "throttle_active")
    assert slowed.state is Absence.UNSUPPORTED
    assert first.throttle_active.thermal() is None


def test_what_one_chip_does_not_tell_is_absent_with_its_reason(tmp_path: Path) -> None:
    node = Node(tmp_path, temperature=[-8006, None], health=[0, 3], power=[-8255, None], ecc__2=[-8006, None])
    survey = node.read()
    second = survey.devices[1]
    assert (second.temp_c, second.power_w, second.power_rail, second.uncorrected_errors) == (None, None, "", None)
    assert second.health == "critical"
    assert field(survey, "npu1", "temperature").reason == "the driver timed out"
    assert survey.devices[0].temp_c == 55.0


def test_a_wedged_chip_keeps_its_place(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.library.values[1, 0] = NoData(Absence.STALE, "the chip gave no answer in 2 s")
    survey = node.read()
    assert survey.devices[1] == DeviceState("npu1", vendor="Huawei", name="910B3", driver="24.1.rc3")
    assert field(survey, "npu1", "temperature").reason == "the chip gave no answer in 2 s"
    assert survey.apps is None
    assert survey.apps_absence is not None


def test_processes_are_named_by_chip(tmp_path: Path) -> None:
    node = Node(tmp_path, processes=[0, [[4711, 1048576], [4712, 1]]])
    write(str(tmp_path), "/proc/4711/comm", "python3\n")
    apps = node.read().apps
    assert apps == (ComputeApp(4711, "python3", device="npu1"), ComputeApp(4712, "", device="npu1"))


def test_processes_that_cannot_be_listed_are_not_none(tmp_path: Path) -> None:
    survey = Node(tmp_path, processes=[-8013, None]).read()
    assert survey.apps is None
    assert survey.apps_absence is not None
    assert survey.apps_absence.reason.startswith(
        "processes on npu1 are not known: the driver does not tell it inside a container"
    )


def test_processes_are_listed_anew_while_somebody_looks(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for _ in range(9):
        node.read()
        node.clock.advance(1.0)
    assert 4 <= node.library.asked.count(True) <= 5


def test_a_chip_without_a_logical_id_gets_no_name_that_looks_like_one(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.library.chips[1, 0] = {"name": "910B3"}
    assert [device.device for device in node.read().devices] == ["npu0", "npu-card1-chip0"]


def test_npu_smi_answers_where_the_library_does_not(tmp_path: Path) -> None:
    write_npu_a2(str(tmp_path))
    machine = Machine(RecordedFiles(str(tmp_path)), RecordedCommands(answers_of("npu-a2-8")), ManualClock())
    provider = AscendProvider(machine)
    survey = provider.read()
    assert (survey.source, len(survey.devices)) == ("npu-smi", 8)
    assert survey.devices[0].temp_c is not None
    assert survey.devices[0].power_w is not None


def test_a_node_without_npus_says_so(tmp_path: Path) -> None:
    machine = Machine(RecordedFiles(str(tmp_path)), RecordedCommands({}), ManualClock())
    with pytest.raises(NoData) as raised:
        AscendProvider(machine).read()
    assert raised.value.state in {Absence.NOT_APPLICABLE, Absence.UNSUPPORTED}


# Rules


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(str(tmp_path / "box"))


NPU = DeviceState(
    "npu0",
    vendor="Huawei",
    name="910B3",
    temp_c=55.0,
    clock_mhz=1800.0,
    clock_max_mhz=1800.0,
    rated_mhz=1800.0,
    busy_share=0.9,
    uncorrected_errors=0,
    corrected_errors=0,
    power_w=300.0,
    power_rail=NPU_RAIL,
    health="OK",
)


def npu(**changes: object) -> DeviceState:
    return msgspec.structs.replace(NPU, **changes)


def run(box: Box, *answers: Survey) -> HardwareReport:
    return box.run(watch=box.watch(settings=Settings(), providers=(RecordedProvider(answers, "ascend"),)), steps=4)


def survey(*devices: DeviceState, apps: tuple[ComputeApp, ...] | None = ()) -> Survey:
    return Survey(devices, apps, "DCMI")


def during(report: HardwareReport) -> dict[str, Effect]:
    assert report.postcheck is not None
    return {finding.rule: finding.effect for finding in report.postcheck.findings}


def test_that_heat_is_not_told_of_warns_before_and_leaves_validity_open(box: Box) -> None:
    """R1u: never taken for cool, never for hot."""
    report = run(box, survey(NPU))
    assert report.precheck.decision is Decision.WARN
    assert {"R1u", "R34n"} <= {finding.rule for finding in report.precheck.findings}
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.UNKNOWN
    assert set(during(report)) == {"D2u"}


def test_a_chip_below_its_rated_clock_under_load_warns_by_name(box: Box) -> None:
    report = run(
        box, survey(NPU, npu(device="npu1")), survey(NPU, npu(device="npu1")), survey(NPU, npu(device="npu1", clock_mhz=900.0))
    )
    assert during(report)["D8n"] is Effect.WARN
    said = next(concern for concern in report.concerns() if "rated clock" in concern)
    assert said.startswith(
        "accelerators under load ran 50.00 % below their rated clock, and nothing tells why: npu1 900 of 1800 MHz"
    )


@pytest.mark.parametrize(
    "later",
    [npu(clock_mhz=900.0, busy_share=0.1), npu(clock_mhz=900.0, rated_mhz=None), npu(clock_mhz=None), npu(clock_mhz=1750.0)],
)
def test_an_idle_chip_or_one_whose_clock_nobody_knows_is_not_accused(box: Box, later: DeviceState) -> None:
    assert "D8n" not in during(run(box, survey(later)))


def test_a_foreign_process_on_a_chip_refuses_before(box: Box) -> None:
    report = run(box, survey(NPU, apps=(ComputeApp(900, "other", device="npu0"),)))
    assert report.precheck.decision is Decision.REFUSE
    assert any("900 other" in concern for concern in report.precheck.concerns)


def test_processes_nobody_can_list_only_warn(box: Box) -> None:
    report = run(box, survey(NPU, apps=None))
    assert "R2u" in {finding.rule for finding in report.precheck.findings}
    assert report.precheck.decision is Decision.WARN


def test_new_double_bit_errors_fail(box: Box) -> None:
    report = run(box, survey(NPU), survey(NPU), survey(npu(uncorrected_errors=1)))
    assert report.postcheck is not None
    assert (report.postcheck.failed, during(report)["D6"]) == (True, Effect.INVALID)


def test_a_chip_that_calls_itself_unwell_warns(box: Box) -> None:
    report = run(box, survey(NPU, npu(device="npu1", health="alarm")))
    assert "1 accelerators report themselves unwell: npu1 alarm" in report.precheck.concerns


def test_energy_of_a_cell_is_that_of_its_window(box: Box) -> None:
    answers = (survey(npu(power_w=100.0)), survey(npu(power_w=100.0)), survey(npu(power_w=300.0)))
    watch = box.watch(settings=Settings(), providers=(RecordedProvider(answers, "ascend"),))
    watch.open(Sensitivity.SPEED, Switches())
    box.live(0.5)
    watch.tick()
    begin_s = box.clock.mono_s
    for _ in range(4):
        box.live(0.5)
        watch.tick()
    cell = watch.judge("c1", begin_s, box.clock.mono_s)
    report = watch.close()
    assert cell.energy["npu_rail_energy_window_s"] == pytest.approx(2.0)
    assert cell.energy["npu_rail_max_power_w"] == 300.0
    assert cell.energy["npu_rail_energy_j"] > report.energy["npu_rail_mean_power_w"] * 2.0
    assert report.cells[0].energy == cell.energy


def test_energy_is_that_of_the_chips_own_rail(box: Box) -> None:
    report = run(box, survey(NPU, npu(device="npu1", power_w=100.0)))
    assert report.delta is not None
    assert report.energy["npu_rail_mean_power_w"] == pytest.approx(400.0)
    assert report.energy["npu_rail_energy_j"] == pytest.approx(400.0 * report.delta.duration_s)
    assert not any(key.startswith("gpu_rail") for key in report.energy)
