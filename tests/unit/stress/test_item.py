"""Ends of an item that a dispatcher does not show: hangs, refusals, signals, floods, a box that is not fit."""

import time
from pathlib import Path

import msgspec
import pytest

from nodeproof.model.hardware import Decision, HardwareReport, Precheck, Sensitivity
from nodeproof.model.job import Execution, Report, Status
from nodeproof.model.run import RunStatus, VerdictKind
from nodeproof.runs.ports import NullEvidence, Switches, unknown_report
from nodeproof.stress.adapters.base import ItemRequest, Launch
from nodeproof.stress.benchmarks import BUILT_IN_DESCRIPTORS
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.item import ItemBenchmark
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.sizing import Plan
from support.items import BEAT, RESULT, ProgramAdapter, item_manager
from support.stress import run_job


def ended(folder: Path, code: str, **changes: object) -> Report:
    watch = changes.pop("watch", None)
    made = item_manager(folder, ProgramAdapter(code, watch), **changes)  # type: ignore[arg-type]  # a test's own words
    return run_job(made, "cpu_sdc")


def test_a_known_answer_that_is_met_passes(tmp_path: Path) -> None:
    report = ended(tmp_path, f"n = 3\n{BEAT}\n{RESULT}")
    (item,) = report.benchmarks
    assert (item.status, item.values) == (Status.HEALTHY, {"mismatches": 0})
    assert "nodeproof-heartbeat" not in item.output


def test_a_hang_is_no_pass_and_names_who_stood_still(tmp_path: Path) -> None:
    """F6. A planted hang: heartbeats were promised and stop."""
    watch = WatchPolicy(heartbeats=True, silent_after_s=0.3, hung_after_s=0.8)
    report = ended(tmp_path, f"import time\nn = 1\n{BEAT}\ntime.sleep(60)", watch=watch)
    (item,) = report.benchmarks
    assert item.outcome is not None
    assert item.outcome.execution is Execution.HUNG
    assert item.status is Status.UNHEALTHY
    assert "promised heartbeats" in item.message
    assert item.details["processes"][0]["name"].startswith("python")
    assert item.details["process_tree"]["empty"] is True


def test_a_spinning_program_that_brings_nothing_forth_is_hung(tmp_path: Path) -> None:
    """CPU time alone is no progress: ranks in a deadlock spin."""
    watch = WatchPolicy(silent_after_s=0.3, hung_after_s=60.0, mute_limit_s=1.0)
    report = ended(tmp_path, "while True: pass", watch=watch)
    assert report.benchmarks[0].outcome is not None
    assert report.benchmarks[0].outcome.execution is Execution.HUNG


def test_a_workload_that_cannot_run_here_is_unavailable_with_its_last_word(tmp_path: Path) -> None:
    report = ended(tmp_path, "import sys; sys.stderr.write('nodeproof cpu_sdc: 3 MiB may be used\\n'); sys.exit(69)")
    (item,) = report.benchmarks
    assert item.status is Status.UNAVAILABLE
    assert item.message == "nodeproof cpu_sdc: 3 MiB may be used"
    assert report.status is Status.UNAVAILABLE


@pytest.mark.parametrize(
    ("code", "cause"), [("import os; os.kill(os.getpid(), 11)", "signal"), ("raise SystemExit(7)", "exit_status")]
)
def test_a_crash_says_how(tmp_path: Path, code: str, cause: str) -> None:
    (item,) = ended(tmp_path, code).benchmarks
    assert item.outcome is not None
    assert (item.outcome.execution, item.outcome.cause) == (Execution.CRASHED, cause)
    assert item.status is Status.UNHEALTHY


def test_a_planted_error_fails_on_the_second_axis(tmp_path: Path) -> None:
    line = '{"workload":"cpu_sdc","passed":false,"failures":["float on CPU 1: bit 3"]}'
    (item,) = ended(tmp_path, f"print('nodeproof-result {line}')").benchmarks
    assert item.outcome is not None
    assert (item.outcome.execution, item.outcome.correctness) == (Execution.FINISHED, "failed")
    assert "float on CPU 1: bit 3" in item.message
    stored = item_manager(tmp_path, ProgramAdapter("")).runs.load(item.run_id)
    assert stored.record.verdict.kind is VerdictKind.FAIL


def test_a_flood_of_output_is_kept_whole_within_its_limit_and_told_as_its_tail(tmp_path: Path) -> None:
    (item,) = ended(tmp_path, f"for _ in range(30000): print('y' * 99)\n{RESULT}").benchmarks
    assert item.status is Status.HEALTHY
    assert len(item.output) < 17_000
    stored = item_manager(tmp_path, ProgramAdapter("")).runs.load(item.run_id)
    (log,) = [path for path in stored.files() if path.endswith("output.log")]
    assert Path(log).stat().st_size > 3_000_000


def test_what_goes_missing_before_the_start_fails_the_item(tmp_path: Path) -> None:
    (item,) = run_job(item_manager(tmp_path, ProgramAdapter("", error="the program is gone")), "cpu_sdc").benchmarks
    assert item.status is Status.UNHEALTHY
    assert "the program is gone" in item.message


def test_a_program_that_does_not_exist_fails_the_item(tmp_path: Path) -> None:
    (item,) = run_job(item_manager(tmp_path, Missing("")), "cpu_sdc").benchmarks
    assert item.status is Status.UNHEALTHY
    assert "/nonexistent/x" in item.message


class Missing(ProgramAdapter):
    """Starts what is not there."""

    def launch(self, request: ItemRequest) -> Launch:
        del request
        return Launch(argv=("/nonexistent/x",), cwd="")


class Refusing(NullEvidence):
    """A box that is not fit."""

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        del switches
        report = unknown_report(sensitivity, "unknown", closed=False)
        return msgspec.structs.replace(report, precheck=Precheck(Decision.REFUSE, ["the processor is throttled"]))


def test_a_box_that_is_not_fit_refuses_and_nothing_starts(tmp_path: Path) -> None:
    made = item_manager(tmp_path, ProgramAdapter(f"open({str(tmp_path / 'ran')!r}, 'w')"), evidence=Refusing)
    (item,) = run_job(made, "cpu_sdc").benchmarks
    assert item.status is Status.UNAVAILABLE
    assert "the processor is throttled" in item.message
    assert not (tmp_path / "ran").exists()
    assert made.runs.load(item.run_id).record.status is RunStatus.REFUSED


def test_a_soak_is_judged_over_its_time(tmp_path: Path) -> None:
    made = item_manager(tmp_path, ProgramAdapter(f"n = 9\n{BEAT}\n{RESULT}"))
    report = made.start_with_options(["cpu_sdc"], RunOptions(plan=Plan.SOAK, seconds=1))
    done = made.wait(report.job_id, 15.0)
    assert done is not None
    assert done.plan == "soak"
    assert done.benchmarks[0].details["soak"]["rate_samples"] == 0


def test_people_can_watch(tmp_path: Path) -> None:
    made = item_manager(tmp_path, ProgramAdapter(f"import time\nn = 4\n{BEAT}\ntime.sleep(30)"))
    report = made.start(["cpu_sdc"])
    ends = time.monotonic() + 10
    live = made.live()
    while live is None or live.phase is None:
        assert time.monotonic() < ends
        time.sleep(0.05)
        live = made.live()
    assert (live.item, live.number, live.items, live.phase.done, live.phase.rate) == ("cpu_sdc", 1, 1, 4.0, 5.0)
    made.kill()
    done = made.wait(report.job_id, 10.0)
    assert done is not None
    assert done.status is Status.CANCELLED
    assert made.live() is None


def test_built_in_benchmarks_are_offered_like_anybodys() -> None:
    assert [one.id for one in BUILT_IN_DESCRIPTORS] == ["stream", "hpl", "hpcg", "cpu-sdc", "memory-pattern", "gpu-burn"]
    for one in BUILT_IN_DESCRIPTORS:
        bench = one.build()
        assert isinstance(bench, ItemBenchmark)
        assert bench.descriptor() is one
        assert bench.metadata().official
        assert [spec.key for spec in bench.parameters()] == ["plan", "seconds", "timeout_s"]
        bench.cleanup()
