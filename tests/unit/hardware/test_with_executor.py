"""The probe inside real runs of the executor: the report in the record, cells through the handle, and a refusal."""

from pathlib import Path

from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.host.machine import Machine
from nodeproof.model.run import RunStatus
from nodeproof.runs.supervise import Graces
from support.box import Box
from support.runs import Bench, Scripted, script

GRACES = Graces(cancel_grace_s=1.0, cleanup_grace_s=1.0, capture_s=10.0, coherence_s=1.0, save_s=15.0)


def test_a_run_on_this_machine_carries_its_evidence(tmp_path: Path) -> None:
    machine = Machine.here()
    cells: list[str] = []

    def step(benchmark: Scripted) -> None:
        handle = benchmark.given
        cells.append(handle.judge("cell", handle.now()).name)

    settings = Settings(first_window_s=0.05, period_s=0.25, devices=())
    bench = Bench(tmp_path, evidence=lambda: HardwareProbe(machine, settings), graces=GRACES)
    ran = bench.run(script([], next=step))
    machine.close()
    assert ran.record.status is RunStatus.COMPLETED
    report = ran.hardware
    assert {"before", "after", "delta", "precheck", "postcheck", "sampler", "cells"} <= report.keys()
    judged = report["cells"]
    assert isinstance(judged, list)
    assert [cell["name"] for cell in judged] == cells
    assert [cell.get("superseded", False) for cell in judged] == [True] * (len(cells) - 1) + [False]


class Heating(Box):
    """Its throttle counter moves between the two looks before the run."""

    def live(self, seconds: float) -> None:
        super().live(seconds)
        self.throttle(core_events=11, core_ms=140)


def test_a_box_that_is_being_slowed_is_refused_without_a_load(tmp_path: Path) -> None:
    box = Heating(str(tmp_path / "box"))
    calls: list[str] = []
    bench = Bench(tmp_path / "runs", evidence=box.watch, graces=GRACES)
    ran = bench.run(script(calls))
    assert ran.record.status is RunStatus.REFUSED
    assert "load" not in calls
    assert "after" not in ran.hardware
    assert any("cpu0 slowed by heat at this moment" in line for line in ran.lines)
