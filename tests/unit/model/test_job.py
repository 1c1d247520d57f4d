"""The wire contract of stress jobs, and the reference's word for an outcome."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import (
    BenchmarkResult,
    CheckStatus,
    ConfigView,
    Correctness,
    DoctorItem,
    DoctorView,
    Execution,
    ExecutionProfile,
    MPICheck,
    Outcome,
    Performance,
    PreflightResult,
    Report,
    ResourceProfile,
    Status,
    doctor_status,
    job_status,
    status_of,
)

_WIRE = Path(__file__).resolve().parents[2] / "fixtures" / "stress_wire"
_ZERO = "0001-01-01T00:00:00Z"


def _without_zero_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_zero_times(item) for key, item in value.items() if item != _ZERO}
    return [_without_zero_times(item) for item in value] if isinstance(value, list) else value


def _same_order(ours: Any, theirs: Any) -> None:
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            _same_order(ours[key], theirs[key])
    elif isinstance(ours, list):
        for mine, other in zip(ours, theirs, strict=True):
            _same_order(mine, other)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("report.json", Report),
        ("run_running.json", Report),
        ("run_time_limit.json", Report),
        ("api_stress_history.json", list[Report]),
        ("api_stress_config.json", ConfigView),
        ("doctor.json", DoctorView),
    ],
)
def test_what_the_reference_wrote_is_read_and_written_with_its_keys_in_its_order(name: str, shape: Any) -> None:
    raw = (_WIRE / name).read_bytes()
    written = json.loads(msgspec.json.encode(msgspec.json.decode(raw, type=shape)))
    theirs = _without_zero_times(json.loads(raw))
    assert written == theirs
    _same_order(written, theirs)


def test_a_time_of_year_1_is_no_time() -> None:
    report = msgspec.json.decode((_WIRE / "run_running.json").read_bytes(), type=Report)
    assert report.finished_at == ""
    assert report.started_at == "2026-11-30T22:19:00.423643882Z"
    assert report.cancellable is True
    assert report.benchmarks[0].finished_at == ""
    assert b"finished_at" not in msgspec.json.encode(report)


def test_a_described_profile_gets_the_keys_that_only_a_manager_fills() -> None:
    profile = msgspec.json.decode((_WIRE / "describe_hpl.json").read_bytes(), type=ExecutionProfile)
    written = msgspec.to_builtins(profile)
    assert written["timeout_seconds"] == 0
    assert written["configuration_sha256"] == ""
    assert "result_directory" not in written
    assert written["mpi"]["launcher"] == "/usr/bin/mpirun"


def test_what_is_not_set_is_left_out_and_what_the_reference_always_writes_is_there() -> None:
    item = BenchmarkResult(name="stream", status=Status.PENDING, message="", duration_ms=0)
    assert msgspec.to_builtins(item) == {"name": "stream", "status": "pending", "message": "", "duration_ms": 0}
    report = Report(job_id="0f3a9c1d2b4e5f60", platform="linux", status=Status.RUNNING, benchmarks=[])
    assert list(msgspec.to_builtins(report)) == ["job_id", "platform", "status", "benchmarks"]


def test_the_smallest_describe_answer_is_read() -> None:
    raw = (
        b'{"protocol_version":1,"benchmark":"stream","parameters":[],"resources":{"mpi_processes":0,"threads_per_process":0,'
        b'"total_workers":0,"runtime_seconds":0},"assets":[],"mpi":{"required":false,"implementation":"none",'
        b'"executable_abi":"none","status":"pass","message":"n/a"},"preflight":{"status":"pass","message":"ok"}}'
    )
    profile = msgspec.json.decode(raw, type=ExecutionProfile)
    assert profile.resources == ResourceProfile(0, 0, 0, 0)
    expected = MPICheck(required=False, implementation="none", executable_abi="none", status=CheckStatus.PASS, message="n/a")
    assert profile.mpi == expected
    assert profile.preflight == PreflightResult(CheckStatus.PASS, "ok")


def test_a_residual_that_is_no_number_never_becomes_a_bare_nan() -> None:
    item = BenchmarkResult(name="hpl", status=Status.UNHEALTHY, message="", duration_ms=1, details={"residual": float("nan")})
    assert json.loads(msgspec.json.encode(item))["details"] == {"residual": None}


def _outcome(execution: Execution, correctness: Correctness, *, progress: bool = True) -> Outcome:
    return Outcome(execution=execution, correctness=correctness, performance=Performance.NO_BASELINE, progress=progress)


_TABLE = [
    (Execution.FINISHED, Correctness.VALIDATED, True, Status.HEALTHY),
    (Execution.FINISHED, Correctness.VALIDATED, False, Status.HEALTHY),
    (Execution.FINISHED, Correctness.FAILED, True, Status.UNHEALTHY),
    (Execution.FINISHED, Correctness.NOT_PROVEN, True, Status.UNHEALTHY),
    (Execution.PLANNED_STOP, Correctness.VALIDATED, True, Status.TIME_LIMIT_REACHED),
    (Execution.PLANNED_STOP, Correctness.NOT_PROVEN, True, Status.TIME_LIMIT_REACHED),
    (Execution.PLANNED_STOP, Correctness.FAILED, True, Status.UNHEALTHY),
    (Execution.PLANNED_STOP, Correctness.NOT_PROVEN, False, Status.UNHEALTHY),
    (Execution.PLANNED_STOP, Correctness.VALIDATED, False, Status.UNHEALTHY),
    (Execution.CRASHED, Correctness.VALIDATED, True, Status.UNHEALTHY),
    (Execution.HUNG, Correctness.VALIDATED, True, Status.UNHEALTHY),
    (Execution.INTERRUPTED, Correctness.NOT_PROVEN, True, Status.UNHEALTHY),
    (Execution.CANCELLED, Correctness.VALIDATED, True, Status.CANCELLED),
    (Execution.CANCELLED, Correctness.FAILED, True, Status.CANCELLED),
    (Execution.REFUSED, Correctness.NOT_PROVEN, False, Status.UNAVAILABLE),
    (Execution.UNSUPPORTED, Correctness.NOT_PROVEN, False, Status.UNSUPPORTED),
]


@pytest.mark.parametrize(("execution", "correctness", "progress", "status"), _TABLE)
def test_the_word_for_an_outcome(execution: Execution, correctness: Correctness, progress: bool, status: Status) -> None:  # noqa: FBT001 - a row of the table
    assert status_of("hpl", _outcome(execution, correctness, progress=progress)) is status


def test_a_limit_is_never_a_pass_for_npu_burn() -> None:
    assert status_of("npu_burn", _outcome(Execution.PLANNED_STOP, Correctness.NOT_PROVEN)) is Status.UNHEALTHY
    assert status_of("npu_burn", _outcome(Execution.FINISHED, Correctness.VALIDATED)) is Status.HEALTHY


def test_speed_never_changes_the_word() -> None:
    for performance in Performance:
        outcome = Outcome(execution=Execution.FINISHED, correctness=Correctness.VALIDATED, performance=performance, progress=True)
        assert status_of("stream", outcome) is Status.HEALTHY


@given(st.sampled_from(list(Execution)), st.sampled_from(list(Correctness)), st.booleans(), st.sampled_from(["hpl", "npu_burn"]))
def test_every_outcome_has_a_final_word_and_passes_only_with_proof_or_progress(
    execution: Execution,
    correctness: Correctness,
    progress: bool,  # noqa: FBT001 - drawn
    name: str,
) -> None:
    status = status_of(name, _outcome(execution, correctness, progress=progress))
    assert status.is_final
    if status.is_pass:
        assert correctness is not Correctness.FAILED
        assert correctness is Correctness.VALIDATED or progress


@pytest.mark.parametrize(
    ("items", "status"),
    [
        ("healthy", "healthy"),
        ("healthy time_limit_reached", "healthy"),
        ("healthy unhealthy", "unhealthy"),
        ("unhealthy cancelled", "unhealthy"),
        ("cancelled unavailable unsupported", "cancelled"),
        ("unavailable unsupported healthy", "unavailable"),
        ("unsupported healthy", "unsupported"),
        ("healthy pending", "unhealthy"),
        ("running", "unhealthy"),
        ("", "unhealthy"),
    ],
)
def test_the_word_for_a_job(items: str, status: str) -> None:
    assert job_status([Status(word) for word in items.split()]) == status


def _item(*, enabled: bool, available: bool, status: CheckStatus = CheckStatus.PASS) -> DoctorItem:
    return DoctorItem(name="hpl", enabled=enabled, available=available, status=status, message="")


def test_the_doctor_fails_when_the_feature_is_off_nothing_is_on_or_something_that_is_on_cannot_run() -> None:
    ready, off = _item(enabled=True, available=True), _item(enabled=False, available=False)
    assert doctor_status([ready, off], feature_enabled=True) is CheckStatus.PASS
    assert doctor_status([ready, off], feature_enabled=False) is CheckStatus.FAIL
    assert doctor_status([off], feature_enabled=True) is CheckStatus.FAIL
    assert doctor_status([ready, _item(enabled=True, available=False)], feature_enabled=True) is CheckStatus.FAIL
    lacking = _item(enabled=True, available=False, status=CheckStatus.UNSUPPORTED)
    assert doctor_status([ready, lacking], feature_enabled=True) is CheckStatus.PASS
    assert doctor_status([lacking], feature_enabled=True) is CheckStatus.FAIL, "and nothing else is left"
