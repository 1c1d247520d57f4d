"""The executor with the real evidence of the hardware room, on this machine."""

from pathlib import Path

import msgspec

from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import HardwareReport, Sensitivity, Validity
from nodeproof.model.run import RunStatus
from nodeproof.runs.ports import HardwareEvidence, NullEvidence, Switches, unknown_report
from support.runs import QUICK, Bench, Scripted, script


def watch() -> HardwareEvidence:
    return HardwareProbe(Machine.here(), Settings(period_s=0.25, first_window_s=0.05, devices=()))


def test_a_run_with_the_real_evidence(tmp_path: Path) -> None:
    cells: list[str] = []

    def step(bench: Scripted) -> None:
        begun = bench.given.now()
        bench.given.wait(0.3)
        cells.append(bench.given.judge(f"cell-{len(cells)}", begun).name)

    bench = Bench(tmp_path, evidence=watch, graces=QUICK._replace(capture_s=15))
    ran = bench.run(script([], next=step), switches=Switches(never_refuse=True))
    assert ran.record.status is RunStatus.COMPLETED
    report = msgspec.convert(ran.hardware, HardwareReport)
    assert report.sensitivity is Sensitivity.SPEED
    assert report.perf_class != "unknown@unknown"
    assert report.postcheck is not None
    assert [cell.name for cell in report.cells] == cells == ["cell-0", "cell-1", "cell-2"]
    assert report.sampler is not None
    assert report.sampler.samples >= 3
    assert [line for line in ran.lines if line.startswith("hardware: ")]


def test_null_evidence_is_never_valid() -> None:
    null = NullEvidence("nobody looked")
    assert null.open(Sensitivity.STABILITY, Switches()).sensitivity is Sensitivity.STABILITY
    assert null.judge("a", 1.0, 2.0).validity is Validity.UNKNOWN
    assert null.live() is None
    null.sample()
    null.abandon()
    closed = null.close()
    assert closed.postcheck is not None
    assert (closed.postcheck.validity, closed.postcheck.concerns) == (Validity.UNKNOWN, ["nobody looked"])
    opened = unknown_report(Sensitivity.SPEED, "x", closed=False)
    assert (opened.after, opened.delta, opened.postcheck) == (None, None, None)
