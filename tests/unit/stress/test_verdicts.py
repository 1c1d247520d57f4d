"""Hashes, performance against the past, comparisons, selection: values worked by hand."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from nodeproof.model.job import Execution, ExecutionProfile, Performance, ProfileParameter, Report, Status
from nodeproof.stress.compare import compare_reports
from nodeproof.stress.describe import finished_profile
from nodeproof.stress.interrupted import interrupted_report
from nodeproof.stress.metric_units import metric_unit
from nodeproof.stress.output import TAIL_BYTES, LineReader, plain_tail
from nodeproof.stress.profile import configuration_hash, identity_hash, report_hash
from support.stress import STREAM_GOOD, answer, make_manager, make_settings, run_job, write_dispatcher

HEARTBEAT = b'nodeproof-heartbeat {"workload":"hpl","phase":"factor","done":7.0,"total":62.0,"elapsed_s":4.0}\n'


def profile(**changes: object) -> ExecutionProfile:
    return msgspec.convert(answer() | changes, ExecutionProfile)


def test_the_configuration_hash_is_that_of_gos_compact_json() -> None:
    """Worked by hand: the reference's keys in its order, and < > & as its encoder writes them."""
    text = (
        '{"protocol_version":1,"benchmark":"stream","parameters":[],"resources":{"mpi_processes":0,"threads_per_process":0,'
        '"total_workers":0,"runtime_seconds":0},"assets":[],"mpi":{"required":false,"implementation":"none",'
        '"executable_abi":"none","status":"pass","message":"n/a"},"preflight":{"status":"pass","message":"a\\u003cb\\u0026c"},'
        '"timeout_seconds":60,"configuration_sha256":""}'
    )
    made = finished_profile(profile(preflight={"status": "pass", "message": "a<b&c"}), timeout_s=60.0)
    assert made.configuration_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert configuration_hash(made) == made.configuration_sha256


def test_the_identity_leaves_messages_paths_and_limits_out_and_keeps_programs() -> None:
    asset = {"name": "executable", "path": "/a/xhpl", "kind": "executable", "required": True, "status": "pass", "message": "ok"}
    one = finished_profile(profile(assets=[asset | {"sha256": "a" * 64}]), timeout_s=60.0)
    moved = finished_profile(
        profile(assets=[asset | {"sha256": "a" * 64, "path": "/b/xhpl"}], preflight={"status": "warn", "message": "busy"}),
        timeout_s=30.0,
    )
    other = finished_profile(profile(assets=[asset | {"sha256": "b" * 64}]), timeout_s=60.0)
    assert identity_hash(one) == identity_hash(moved)
    assert identity_hash(one) != identity_hash(other)
    assert identity_hash(one, "quick") != identity_hash(one, "soak")
    assert one.configuration_sha256 != moved.configuration_sha256


def test_the_hash_of_a_report_is_over_its_items_by_name(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh")
    report = run_job(make_manager(make_settings(tmp_path, script, names=("stream", "hpl"))), "stream", "hpl")
    listed = sorted((item.name, item.profile.configuration_sha256) for item in report.benchmarks if item.profile is not None)
    text = "[" + ",".join(f'{{"name":"{name}","sha256":"{digest}"}}' for name, digest in listed) + "]"
    assert report.configuration_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert report_hash([]) == ""


def test_a_number_far_below_its_past_is_degraded_with_figures(tmp_path: Path) -> None:
    path = tmp_path / "check.sh"
    settings = make_settings(tmp_path, write_dispatcher(path, run=f'cat "{tmp_path}/out"'))
    (tmp_path / "out").write_text(STREAM_GOOD)
    manager = make_manager(settings)
    for _ in range(5):
        item = run_job(manager).benchmarks[0]
        assert item.outcome is not None
        assert item.outcome.performance is Performance.NO_BASELINE
    slow = STREAM_GOOD.replace(
        "Triad:          10000.0     0.192010     0.192000", "Triad:           8000.0     0.240010     0.240000"
    )
    (tmp_path / "out").write_text(slow)
    item = run_job(manager).benchmarks[0]
    assert item.outcome is not None
    assert item.outcome.performance is Performance.DEGRADED
    assert "-20.0% from the median 1e+04 of 5 runs" in item.outcome.reasons["performance"]
    assert item.status is Status.HEALTHY  # speed never changes it
    assert item.details["baseline"]["median"] == 10000.0
    (baseline,) = (tmp_path / "state" / "baselines").iterdir()
    baseline.write_bytes(baseline.read_bytes().replace(b"10000.0", b"10000.1", 1))
    item = run_job(manager).benchmarks[0]
    assert item.outcome is not None
    assert item.outcome.performance is Performance.NO_BASELINE
    assert "was changed: its content is not what was signed" in item.outcome.reasons["performance"]


def both(tmp_path: Path) -> tuple[Report, Report]:
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh")))
    return run_job(manager), run_job(manager)


def test_comparison_of_equal_runs_and_of_others(tmp_path: Path) -> None:
    first, second = both(tmp_path)
    same = compare_reports(first, second)
    assert [(row.metric, row.change, row.comparable) for row in same.rows][-1] == ("triad_mb_s", 0.0, True)
    assert same.notes == []
    item = second.benchmarks[0]
    assert item.profile is not None
    changed = msgspec.structs.replace(item.profile, parameters=[ProfileParameter("threads", "Threads", "1")])
    quick = msgspec.structs.replace(
        item,
        profile=changed,
        values={**item.values, "triad_mb_s": 5000.0},
        details={"hardware": {"validity": "invalid", "concerns": ["throttled"]}},
        outcome=None,
    )
    other = compare_reports(first, msgspec.structs.replace(second, benchmarks=[quick]))
    triad = next(row for row in other.rows if row.metric == "triad_mb_s")
    assert (triad.change, triad.comparable) == (-0.5, False)
    assert other.notes == [
        "stream: not the same was run: threads",
        "stream: the second is not validated",
        "stream: the box was not fit during the second: throttled",
    ]
    planned = compare_reports(first, msgspec.structs.replace(second, plan="soak"))
    assert planned.notes == ["stream: not the same was run: plan standard and soak"]
    none = msgspec.structs.replace(second, benchmarks=[msgspec.structs.replace(item, name="hpl", profile=None)])
    assert compare_reports(first, none).notes == [f"stream: only in {first.job_id}", f"hpl: only in {second.job_id}"]
    bare = msgspec.structs.replace(second, benchmarks=[msgspec.structs.replace(item, profile=None)])
    assert "stream: what ran is not known of both" in compare_reports(first, bare).notes


def test_an_interrupted_job_keeps_what_had_ended(tmp_path: Path) -> None:
    _, report = both(tmp_path)
    done = report.benchmarks[0]
    running = msgspec.structs.replace(done, name="hpl", status=Status.RUNNING, outcome=None)
    waiting = msgspec.structs.replace(done, name="hpcg", status=Status.PENDING, outcome=None, started_at="", finished_at="")
    told = interrupted_report(
        msgspec.structs.replace(report, status=Status.RUNNING, benchmarks=[done, running, waiting]), "2026-11-30T00:00:00+00:00"
    )
    assert [item.status for item in told.benchmarks] == [Status.HEALTHY, Status.UNHEALTHY, Status.CANCELLED]
    assert told.benchmarks[1].outcome is not None
    assert told.benchmarks[1].outcome.execution is Execution.INTERRUPTED
    assert told.benchmarks[2].finished_at == ""
    assert told.status is Status.UNHEALTHY
    assert (
        "the process that ran it died"
        in interrupted_report(msgspec.structs.replace(told, owner=None, benchmarks=[running]), "x").benchmarks[0].message
    )


def test_the_tail_leaves_heartbeats_out_and_says_when_it_is_cut(tmp_path: Path) -> None:
    """9.1 12."""
    path = tmp_path / "output"
    path.write_bytes(b"begun\n" + HEARTBEAT + b"end\n")
    assert plain_tail(str(path)) == "begun\nend\n"
    path.write_bytes(b"x" * 20 * TAIL_BYTES + b"the end")
    tail = plain_tail(str(path))
    assert tail.startswith("[the beginning is left out")
    assert tail.endswith("the end")
    assert len(tail) < TAIL_BYTES + 100


def test_heartbeats_are_found_across_pieces_and_a_line_without_end_is_let_go() -> None:
    reader = LineReader()
    assert list(reader.heartbeats(b"text\n" + HEARTBEAT[:30])) == []
    (beat,) = reader.heartbeats(HEARTBEAT[30:] + b"nodeproof-heartbeat {broken\n")
    assert (beat.phase, beat.done, beat.total) == ("factor", 7.0, 62.0)
    for _ in range(3):
        assert list(reader.heartbeats(b"y" * 100_000)) == []
    assert [found.phase for found in reader.heartbeats(b"\n" + HEARTBEAT)] == ["factor"]


@pytest.mark.parametrize(("key", "unit"), [("triad_mb_s", "MB/s"), ("gflops", "GFLOP/s"), ("time_seconds", "s"), ("n", "")])
def test_units_of_values(key: str, unit: str) -> None:
    assert metric_unit(key) == unit
