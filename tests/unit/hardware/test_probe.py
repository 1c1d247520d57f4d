"""One run watched from before to after: decisions on living boxes, cells, what hangs, and what must never raise."""

import shutil
import threading
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.policy import Ceilings
from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import RecordedCommands, RecordedFiles
from nodeproof.model.hardware import Decision, Fact, HardwareReport, LiveSample, Sensitivity, Validity
from nodeproof.runs.ports import HardwareEvidence
from support.box import CPU, Box, Switches

SPEED, STABILITY, CORRECTNESS = Sensitivity.SPEED, Sensitivity.STABILITY, Sensitivity.CORRECTNESS


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(str(tmp_path))


def opened(
    box: Box, sensitivity: Sensitivity = SPEED, *, switches: Switches | None = None, settings: Settings | None = None
) -> HardwareReport:
    watch = box.watch(settings=settings)
    report = watch.open(sensitivity, switches or Switches())
    watch.abandon()
    return report


def fact(report: HardwareReport, name: str) -> Fact:
    assert report.delta is not None
    return next(entry for entry in report.delta.facts if entry.name == name)


class Heating(Box):
    """A box whose throttle counter moves between the two looks before the run."""

    def live(self, seconds: float) -> None:
        super().live(seconds)
        self.throttle(core_events=11, core_ms=140)


def test_it_is_what_the_executor_asks_for(box: Box) -> None:
    evidence: HardwareEvidence = box.watch()
    assert evidence.live() is None
    evidence.abandon()


def test_a_box_that_is_being_slowed_refuses_speed_alone(tmp_path: Path) -> None:
    refused = opened(Heating(str(tmp_path / "a")))
    assert (refused.precheck.decision, refused.refuses()) == (Decision.REFUSE, True)
    assert refused.precheck.concerns == ["cpu0 slowed by heat at this moment"]
    assert (refused.after, refused.delta, refused.postcheck, refused.invalidated()) == (None, None, None, False)
    assert opened(Heating(str(tmp_path / "b")), STABILITY).precheck.decision is Decision.WARN
    assert opened(Heating(str(tmp_path / "c")), CORRECTNESS).precheck.decision is Decision.WARN
    let = opened(Heating(str(tmp_path / "d")), switches=Switches(never_refuse=True))
    assert (let.precheck.decision, len(let.precheck.concerns)) == (Decision.WARN, 2)


def test_the_kill_switch_never_makes_a_run_valid(tmp_path: Path) -> None:
    report = Heating(str(tmp_path)).run(switches=Switches(never_refuse=True), steps=3)
    assert report.precheck.decision is Decision.WARN
    hot = Box(str(tmp_path / "hot"))
    report = hot.run(lambda here, step: here.throttle(core_events=10 + step), switches=Switches(never_refuse=True), steps=3)
    assert report.invalidated()


def test_load_before_the_run_warns_and_names_who(box: Box) -> None:
    box.foreign, box.busy = 0.5, 0.0
    report = opened(box)
    assert report.precheck.decision is Decision.WARN
    assert report.precheck.concerns == ["other processes use 50.00 % of the allowed CPU time: 900 make"]


def test_a_governor_that_holds_processors_down_warns(box: Box) -> None:
    box.governor("powersave")
    report = opened(box)
    assert report.precheck.concerns == ["the governor holds 4 processors at their lowest frequency: cpu0, cpu1, cpu2, cpu3"]
    assert report.before.cpu_governor == "powersave"


def test_a_hot_zone_warns_refuses_through_the_gate_and_a_critical_one_always(box: Box) -> None:
    box.temperature(cpu_c=85, zone_c=85)
    settings = Settings(ceilings=Ceilings(cpu_c=80, chassis_c=80))
    assert opened(box).precheck.decision is Decision.PROCEED  # its sensors have critical points of their own
    assert opened(box, settings=settings).precheck.decision is Decision.WARN
    assert opened(box, settings=settings, switches=Switches(temperature_gate=True)).precheck.decision is Decision.REFUSE
    assert opened(box, STABILITY, settings=settings, switches=Switches(temperature_gate=True)).precheck.decision is Decision.WARN
    box.temperature(zone_c=105)
    assert opened(box, STABILITY).precheck.decision is Decision.REFUSE
    assert opened(box, CORRECTNESS).precheck.decision is Decision.WARN


def test_temperatures_nobody_has_limits_for_warn(box: Box) -> None:
    box.remove("/sys/class/thermal/thermal_zone0/trip_point_0_type")
    box.remove("/sys/class/hwmon/hwmon0/temp1_crit")
    report = opened(box, switches=Switches(temperature_gate=True))
    assert (report.precheck.decision, [finding.rule for finding in report.precheck.findings]) == (Decision.WARN, ["R34n"])


def test_only_the_cells_touched_are_invalid_and_a_new_measurement_counts(box: Box) -> None:
    watch = box.watch()
    watch.open(SPEED, Switches())

    def cell(name: str, *, foreign: float) -> Validity:
        begin_s = box.clock.mono_s
        for _ in range(4):
            box.foreign, box.busy = foreign, 1.0 - foreign
            box.live(0.5)
            watch.tick()
        box.foreign, box.busy = 0.0, 1.0
        return watch.judge(name, begin_s, box.clock.mono_s).validity

    assert cell("a", foreign=0.0) is Validity.VALID
    assert cell("b", foreign=0.3) is Validity.INVALID
    assert cell("b", foreign=0.0) is Validity.VALID
    report = watch.close()
    assert [(entry.name, entry.validity, entry.superseded) for entry in report.cells] == [
        ("a", Validity.VALID, False),
        ("b", Validity.INVALID, True),
        ("b", Validity.VALID, False),
    ]
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.VALID
    assert fact(report, "foreign_share").value == pytest.approx(0.1)
    assert "other processes used 10.00 % of the allowed CPU time" in report.postcheck.concerns[0]


def test_a_memory_error_in_one_cell_spoils_the_run(box: Box) -> None:
    watch = box.watch()
    watch.open(STABILITY, Switches())
    begin_s = box.clock.mono_s
    box.edac(ue=1)
    box.live(1.0)
    first = watch.judge("first", begin_s, box.clock.mono_s)
    box.live(1.0)
    second = watch.judge("second", box.clock.mono_s - 1.0, box.clock.mono_s)
    report = watch.close()
    assert (first.validity, second.validity) == (Validity.INVALID, Validity.VALID)
    assert report.postcheck is not None
    assert (report.postcheck.validity, report.postcheck.failed) == (Validity.INVALID, True)


def test_droop_is_held_against_the_first_tenth_of_the_run(box: Box) -> None:
    watch = box.watch()
    watch.open(SPEED, Switches())
    cells = []
    for step in range(4):
        box.mhz = 3000.0 if step < 3 else 2700.0
        begin_s = box.clock.mono_s
        for _ in range(5):
            box.live(0.5)
            watch.tick()
        cells.append((begin_s, box.clock.mono_s))
    judged = [watch.judge(str(at), *window) for at, window in enumerate(cells)]
    assert [cell.validity for cell in judged] == [Validity.VALID] * 3 + [Validity.INVALID]
    assert judged[3].concerns == ["busy processors ran at 90.00 % of the frequency they began with, under 95.00 %"]
    watch.close()


def test_one_reading_of_a_clock_is_no_measure(box: Box) -> None:
    report = box.run(steps=0)
    assert fact(report, "busy_mhz_ratio").state is not None
    watch = box.watch()
    watch.open(SPEED, Switches())
    box.live(0.5)
    report = watch.close()
    assert (fact(report, "busy_mhz_ratio").value, fact(report, "busy_mhz_ratio").state) == (None, Absence.UNKNOWN)
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.UNKNOWN


def test_idle_until_late_measures_from_the_first_busy_tenth(box: Box) -> None:
    def happens(here: Box, step: int) -> None:
        here.busy, here.mhz = (0.0, 800.0) if step < 10 else (1.0, 3000.0 if step < 15 else 2000.0)

    box.busy = 0.0
    report = box.run(happens)
    assert fact(report, "busy_mhz_ratio").value == pytest.approx(2 / 3)
    idle = Box(box.root)
    idle.busy = 0.0
    lacking = fact(idle.run(), "busy_mhz_ratio")
    assert (lacking.state, lacking.reason) == (Absence.NOT_APPLICABLE, "no processor was busy")


def test_a_cell_before_anybody_was_busy_has_no_measure(box: Box) -> None:
    box.busy = 0.0
    watch = box.watch()
    watch.open(SPEED, Switches())
    begin_s = box.clock.mono_s
    box.live(0.5)
    assert watch.judge("a", begin_s, box.clock.mono_s).validity is Validity.VALID
    watch.abandon()


def test_where_processes_are_hidden_the_rest_of_the_busy_time_is_foreign(box: Box) -> None:
    box.write("/run/systemd/container", "podman")
    box.foreign, box.busy = 0.5, 0.25
    watch = box.watch()
    box.machine.files.forget("/proc/stat")

    def happens(here: Box, _step: int) -> None:
        here.write("/proc/900/stat", "rubbish")

    report = box.run(happens, watch=watch)
    foreign = fact(report, "foreign_share")
    assert foreign.value == pytest.approx(0.5, abs=0.01)
    assert "a container (podman) sees only its own processes" in foreign.source


def test_live_shows_the_newest_look(box: Box) -> None:
    watch = box.watch()
    watch.open(SPEED, Switches())
    box.foreign, box.busy, box.steal, box.swapped, box.mhz = 0.25, 0.5, 0.125, 4, 2400.0
    box.edac(ue=2)
    box.throttle(core_events=12, core_ms=350)
    box.live(0.5)
    watch.tick()
    live = watch.live()
    assert live is not None
    assert (live.window_s, live.own_share, live.foreign_share, live.foreign_top) == (0.5, 0.5, 0.25, ["900 make 100.0%"])
    assert live.busy_share == pytest.approx(0.76)  # 38 of 50 whole ticks
    assert live.steal_share == pytest.approx(0.12)
    assert (live.busy_mhz, live.throttle_events, live.throttle_share) == (2400.0, 2, 0.5)
    assert (live.swap_in_pages, live.uncorrected_errors, live.mem_available_kb) == (4, 2, 15_728_640)
    assert isinstance(live, LiveSample)
    watch.abandon()


def test_close_is_final_and_abandon_takes_no_look(box: Box) -> None:
    watch = box.watch()
    watch.open(SPEED, Switches())
    box.live(1.0)
    report = watch.close()
    assert watch.close() is report
    watch.tick()
    assert watch.judge("late", 0.0, 1.0).validity is Validity.UNKNOWN
    assert report.sampler is not None
    assert report.sampler.samples == 3
    other = box.watch()
    with pytest.raises(NoData, match="not looked at before"):
        other.close()
    assert other.summary() == "the box was not looked at"


def test_nothing_readable_is_unknown_everywhere_and_never_an_error(tmp_path: Path) -> None:
    box = Box(str(tmp_path))
    watch = box.watch()
    for folder in ("proc", "sys", "etc", "dev"):
        shutil.rmtree(f"{box.root}/{folder}")
    box.clock._live = box.clock.advance
    watch.open(SPEED, Switches())
    box.clock.advance(1.0)
    watch.tick()
    report = watch.close()
    assert report.postcheck is not None
    assert (report.precheck.decision, report.postcheck.validity) == (Decision.WARN, Validity.UNKNOWN)
    assert report.perf_class == "unknown@unknown"
    assert (report.before.mem_total_kb, report.before.chassis_temps_c, report.before.cpu_governor) == (None, None, None)
    assert {field.state for field in report.before.fields} <= set(Absence)
    assert all(field.reason for field in report.before.fields if field.value is None)


class Hanging(RecordedFiles):
    """Files of a machine one of which never comes back."""

    def __init__(self, root: str, hung: str) -> None:
        super().__init__(root)
        self._hung = hung
        self.release = threading.Event()

    def read(self, path: str) -> bytes:
        """As ever, but for the one."""
        if path == self._hung:
            self.release.wait(30.0)
        return super().read(path)


@pytest.mark.parametrize(
    ("hung", "fact_name", "source"),
    [
        (f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "throttle_events", "throttle"),
        ("/sys/devices/system/edac/mc/mc0/ue_count", "edac_uncorrected", "edac"),
        ("/sys/bus/pci/devices/0000:17:00.0/aer_dev_fatal", "aer_uncorrected", "aer"),
        ("/proc/900/stat", "foreign_share", "processes"),
    ],
)
def test_a_read_that_hangs_costs_only_itself(tmp_path: Path, hung: str, fact_name: str, source: str) -> None:
    box = Box(str(tmp_path))
    files: FileTree = Hanging(box.root, hung)
    box.machine = Machine(files, RecordedCommands({}), box.clock)
    watch = box.watch(period_s=1.0, settings=Settings(boundary_deadline_s=0.4))
    watch.open(SPEED, Switches())
    box.live(0.5)
    watch.tick()
    report = watch.close()
    assert isinstance(files, Hanging)
    files.release.set()
    assert (fact(report, fact_name).value, fact(report, fact_name).state) == (None, Absence.STALE)
    assert report.sampler is not None
    assert report.sampler.unread[source] >= 3
    assert fact(report, "steal_share").value == 0.0
    assert fact(report, "mce_uncorrected").value == 0.0
    assert report.postcheck is not None
    assert report.postcheck.validity is Validity.UNKNOWN


def test_a_run_of_many_hours_keeps_a_bounded_number_of_points(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeproof.hardware.recorder._MAX_POINTS", 16)

    def happens(here: Box, step: int) -> None:
        here.swapped = step + 1

    watch = box.watch()
    report = box.run(happens, steps=40, watch=watch)
    assert fact(report, "swap_in_pages").value == 40.0
    assert max(len(track) for track in watch._recorder.tracks.values()) <= 16


def test_a_caller_that_fails_to_name_its_processes_costs_the_foreign_share_only(box: Box) -> None:
    def broken() -> list[int]:
        raise RuntimeError("gone")

    report = box.run(steps=3, watch=box.watch(own_pids=broken))
    assert fact(report, "foreign_share").reason == "processes: RuntimeError: gone"
    assert fact(report, "edac_uncorrected").value == 0.0


def test_the_sampler_thread_looks_by_itself(box: Box) -> None:
    class Ticking(HardwareProbe):
        ticked = threading.Event()

        def tick(self) -> None:
            box.live(0.5)
            super().tick()
            if self._looks >= 5:
                self.ticked.set()

    watch = Ticking(box.machine, Settings(period_s=0.25, roots=(500,), suspended_s=lambda: 0.0))
    watch.open(SPEED, Switches())
    watch.sample()
    watch.sample()
    assert Ticking.ticked.wait(10.0)
    report = watch.close()
    assert report.sampler is not None
    assert report.sampler.samples >= 5
    watch.sample()


def test_a_strip_and_a_judgement_that_fail_say_unknown(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = box.watch()
    watch.open(SPEED, Switches())

    def fail(*_args: object) -> dict[str, Fact]:
        raise RuntimeError("bug")

    monkeypatch.setattr(watch._facts, "window", fail)
    cell = watch.judge("a", 0.0, 1.0)
    assert (cell.validity, cell.concerns) == (Validity.UNKNOWN, ["the box could not be judged: RuntimeError: bug"])
    assert watch.live() is None
    watch.abandon()


def test_no_thread_for_the_sampler_leaves_the_looks_before_and_after(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = box.watch()
    watch.open(SPEED, Switches())

    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refuse)
        watch.sample()
    box.live(1.0)
    assert watch.close().postcheck is not None
