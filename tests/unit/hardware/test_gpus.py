"""NVIDIA and AMD cards under a run: what the provider says of them, and what the rules make of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.probe import HardwareProbe
from nodeproof.hardware.providers import Survey
from nodeproof.hardware.readers.gpus import GPU_RAIL, GpuProvider
from nodeproof.host.nvml import NvmlCard
from nodeproof.model.hardware import (
    ComputeApp,
    Decision,
    DeviceState,
    HardwareReport,
    Sensitivity,
    ThrottleActive,
    ThrottleCounters,
    Validity,
)
from support.box import Box
from support.gpu import smi_uuid, write_gpu
from support.hosts_gpu import AMD_8, write_amd
from support.tree import write

_ADDRESSES = ("0000:18:00.0", "0000:65:00.0")
_PLAIN: dict[tuple[str, ...], float] = {
    ("utilization",): 90,
    ("temperature",): 62,
    ("power_draw",): 400,
    ("clock_domain_frequency", "sm"): 1755,
    ("clock_max_frequency", "sm"): 1980,
    ("temperature_limit", "slowdown"): 89,
    ("ecc_errors",): 0,
    ("ecc_volatile_errors", "corrected", "total"): 3,
    ("persistence_mode",): 1,
    **{("throttle_reason", name): 0 for name in ("sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake")},
    **{("throttle_time", name): 1.5 for name in ("sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake", "sync_boost")},
}


class _Nvml:
    """Two cards that a test sets."""

    def __init__(self) -> None:
        self.values = [dict(_PLAIN), dict(_PLAIN)]
        self.processes: list[list[tuple[int, float | None, bool]] | None] = [[], []]
        self.states = [0, 0]
        self.broken: NoData | None = None

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:  # noqa: ARG002 - a stand-in
        if self.broken is not None:
            raise self.broken
        return [self._card(number) for number, address in enumerate(_ADDRESSES) if address in addresses]

    def _card(self, number: int) -> NvmlCard:
        identity = {"name": "NVIDIA H100 80GB HBM3", "uuid": smi_uuid(number), "driver": "590.48.01"}
        values = [] if self.states[number] else list(self.values[number].items())
        return NvmlCard(
            _ADDRESSES[number],
            self.states[number],
            "gone" if self.states[number] else "",
            number,
            identity,
            values,
            [],
            self.processes[number],
        )

    def close(self) -> None:
        pass


class GpuBox:
    """A box with two cards."""

    def __init__(self, root: Path) -> None:
        self.box = Box(str(root))
        for address in _ADDRESSES:
            write_gpu(str(root), address)
        self.nvml = _Nvml()
        self.box.machine._nvml = self.nvml
        self.provider = GpuProvider(self.box.machine)

    def watch(self) -> HardwareProbe:
        return self.box.watch(providers=(self.provider,))

    def run(self, step: int = -1, *, sensitivity: Sensitivity = Sensitivity.SPEED) -> HardwareReport:
        """A run in which the second card slows down by heat at ``step``."""

        def happens(_: Box, now: int) -> None:
            if now == step:
                self.nvml.values[1]["throttle_time", "hw_thermal"] += 1e-6

        return self.box.run(happens, watch=self.watch(), steps=8, sensitivity=sensitivity)


@pytest.fixture
def gpus(tmp_path: Path) -> GpuBox:
    return GpuBox(tmp_path)


def rules(report: HardwareReport) -> set[str]:
    return {finding.rule for finding in report.precheck.findings}


def test_every_reading_of_a_card(gpus: GpuBox) -> None:
    survey = gpus.provider.read()
    assert survey.devices[0] == DeviceState(
        "gpu0",
        vendor="NVIDIA",
        name="NVIDIA H100 80GB HBM3",
        driver="590.48.01",
        temp_c=62,
        critical_c=89,
        clock_mhz=1755,
        clock_max_mhz=1980,
        throttle_counters=ThrottleCounters(1_500_000, 1_500_000, 1_500_000, 1_500_000, 1_500_000),
        throttle_active=ThrottleActive(sw_power_cap=False, sw_thermal=False, hw_thermal=False, hw_power_brake=False),
        uncorrected_errors=0,
        corrected_errors=3,
        persistence_mode=True,
        busy_share=0.9,
        power_w=400,
        power_rail=GPU_RAIL,
        power_at_s=gpus.box.clock.mono_s,
        health="OK",
    )
    assert (survey.source, survey.apps) == ("NVML", ())
    told = {(field.device, field.name): field for field in survey.fields}
    assert told["gpu1", "power_draw"].value == 400
    assert told["gpu1", "power_limit"].state is Absence.UNSUPPORTED


def test_a_quiet_box_is_valid_and_its_energy_is_that_of_the_board(gpus: GpuBox) -> None:
    report = gpus.run()
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.VALID, report.concerns()
    assert report.energy["gpu_rail_mean_power_w"] == 800
    assert report.energy["gpu_rail_energy_j"] == pytest.approx(800 * report.delta.duration_s if report.delta else 0)


def test_one_microsecond_of_heat_invalidates_speed_and_names_the_card(gpus: GpuBox) -> None:
    report = gpus.run(3)
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.INVALID
    assert any("gpu1" in concern for concern in report.concerns()), report.concerns()


def test_r1_an_asserted_slowdown_refuses_and_a_power_cap_does_not(gpus: GpuBox) -> None:
    gpus.nvml.values[0]["throttle_reason", "sw_power_cap"] = 1
    assert gpus.run().precheck.decision is not Decision.REFUSE
    gpus.nvml.values[0]["throttle_reason", "hw_thermal"] = 1
    report = gpus.run()
    assert report.precheck.decision is Decision.REFUSE
    assert "R1" in rules(report)


def test_r1u_flags_that_are_not_told_only_warn(gpus: GpuBox) -> None:
    for values in gpus.nvml.values:
        for name in ("sw_thermal", "hw_thermal", "hw_power_brake"):
            del values["throttle_reason", name]
    report = gpus.run()
    assert report.precheck.decision is Decision.WARN
    assert "R1u" in rules(report)


def test_r2_a_foreign_process_refuses_and_the_runs_own_does_not(gpus: GpuBox, tmp_path: Path) -> None:
    write(str(tmp_path), "/proc/900/comm", "other")
    gpus.nvml.processes = [[(500, 1024.0, False)], []]
    report = gpus.run()
    assert "R2" not in rules(report), "500 is the run's own process"
    gpus.nvml.processes = [[(500, 1024.0, False), (900, 512.0, False)], []]
    report = gpus.run()
    assert "R2" in rules(report)
    assert report.precheck.decision is Decision.REFUSE
    assert ComputeApp(900, "other", 512, "gpu0", foreign=True) in (report.before.gpu_compute_apps or [])


def test_cards_that_the_runs_processes_do_not_use_are_not_its_matter(gpus: GpuBox) -> None:
    gpus.nvml.processes = [[(500, 1024.0, False)], [(900, 512.0, False)]]
    report = gpus.run(3)
    assert "R2" not in rules(report)
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.VALID, report.concerns()


def test_processes_that_only_draw_are_no_workload(gpus: GpuBox) -> None:
    gpus.nvml.processes = [[(900, 512.0, True)], []]
    assert gpus.provider.read().apps == ()


def test_r2u_processes_that_cannot_be_listed_only_warn(gpus: GpuBox) -> None:
    gpus.nvml.processes = [[], None]
    survey = gpus.provider.read()
    assert survey.apps is None
    assert survey.apps_absence is not None
    assert survey.apps_absence.reason == "NVML does not list the processes on gpu1"
    report = gpus.run()
    assert report.precheck.decision is Decision.WARN
    assert "R2u" in rules(report)


def test_heat_alone_does_not_make_a_correctness_run_invalid(gpus: GpuBox) -> None:
    report = gpus.run(3, sensitivity=Sensitivity.CORRECTNESS)
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.NOT_APPLICABLE


def test_a_card_that_is_lost_calls_itself_so(gpus: GpuBox) -> None:
    gpus.nvml.states[1] = 3
    gpus.nvml.processes[1] = None
    survey = gpus.provider.read()
    assert (survey.devices[1].health, survey.devices[1].temp_c) == ("lost", None)
    assert survey.apps == ()
    told = {(field.device, field.name): field for field in survey.fields}
    assert (told["gpu1", "temperature"].state, told["gpu1", "temperature"].reason) == (Absence.READ_ERROR, "gone")


def test_an_older_drivers_single_counter_of_heat_stands_for_the_softwares(gpus: GpuBox) -> None:
    values = gpus.nvml.values[0]
    for name in ("sw_thermal", "hw_thermal"):
        del values["throttle_time", name]
    values["throttle_time", "thermal"] = 2.0
    counters = gpus.provider.read().devices[0].throttle_counters
    assert (counters.sw_thermal_us, counters.hw_thermal_us) == (2_000_000, None)


def test_a_driver_that_cannot_be_asked_is_an_absence(gpus: GpuBox) -> None:
    gpus.nvml.broken = NoData(Absence.UNKNOWN, "driver and NVML library are of different versions")
    with pytest.raises(NoData, match="different versions"):
        gpus.provider.read()
    report = gpus.run()
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.UNKNOWN


def test_a_box_without_gpus_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoData) as raised:
        GpuProvider(Box(str(tmp_path)).machine).read()
    assert raised.value.state is Absence.NOT_APPLICABLE


def test_amd_cards(tmp_path: Path) -> None:
    box = Box(str(tmp_path))
    write_amd(str(tmp_path), AMD_8[0], 0)
    survey: Survey = GpuProvider(box.machine).read()
    (card,) = survey.devices
    assert (card.device, card.vendor, card.name) == ("gpu0", "AMD", "AMD Instinct MI300X")
    assert (card.temp_c, card.clock_mhz, card.clock_max_mhz, card.power_w) == (41, 132, 2100, 140)
    assert card.throttle_active.thermal() is None
    assert (card.uncorrected_errors, card.critical_c) == (0, 100)
    assert survey.apps is None
