"""What dispatchers say of themselves, and how much of it is believed (stress.md 3, 12.1, 12.2)."""

import hashlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nodeproof.clock import Instant
from nodeproof.host.machine import Machine
from nodeproof.model.job import CheckStatus
from nodeproof.stress.adapters.base import DescribeError, ItemRequest
from nodeproof.stress.adapters.builtin import BuiltinAdapter
from nodeproof.stress.adapters.describe_v1 import read_description
from nodeproof.stress.describe import Describer
from support.stress import answer, make_manager, make_settings, run_job, write_dispatcher

ASSET = {"name": "executable", "path": "/opt/x", "kind": "executable", "required": True, "status": "pass", "message": "ok"}
MPI = {"required": True, "implementation": "mpich", "executable_abi": "mpich", "status": "pass", "message": "ok"}
FAILED = {"status": "fail", "message": "2 checks failed"}


def resources(**changes: int) -> dict[str, Any]:
    return {"mpi_processes": 2, "threads_per_process": 2, "total_workers": 4, "runtime_seconds": 0} | changes


def raw(**changes: Any) -> bytes:
    return json.dumps(answer(**changes)).encode()


def test_the_smallest_answer_is_accepted() -> None:
    profile = read_description(raw(), "stream")
    assert profile.preflight.status is CheckStatus.PASS
    assert profile.configuration_sha256 == ""


def test_what_the_manager_fills_is_not_taken_from_the_script() -> None:
    told = raw(timeout_seconds=9, script_sha256="x", configuration_sha256="y", result_directory="/z", runtime_identity={"a": "b"})
    profile = read_description(told, "stream")
    assert (profile.timeout_seconds, profile.script_sha256, profile.configuration_sha256) == (0, "", "")
    assert profile.result_directory == ""


def test_a_failing_answer_is_sound_and_blocks() -> None:
    profile = read_description(raw(assets=[ASSET | {"status": "fail"}], mpi=MPI | {"status": "fail"}, preflight=FAILED), "stream")
    assert profile.preflight.status is CheckStatus.FAIL


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (b"", "exactly one JSON object"),
        (b"benchmark: stream", "exactly one JSON object"),
        (b"[]", "no JSON object"),
        (raw() + raw(), "exactly one JSON object"),
        (raw(protocol_version=2), "protocol version 2"),
        (raw(protocol_version="1"), "protocol_version"),
        (raw(benchmark="hpl"), "describes 'hpl'"),
        (raw(extra=1), "unknown field 'extra'"),
        (raw(resources=resources(speed=1)), "unknown field 'speed' in resources"),
        (raw(assets=[ASSET | {"size": 1}]), "unknown field 'size' in assets"),
        (raw(resources=resources(total_workers=5)), "5 workers"),
        (raw(resources=resources(runtime_seconds=-1)), "negative"),
        (raw(resources={"mpi_processes": 1}), "resources"),
        (raw(parameters=[{"key": "a", "label": "A", "value": "1"}] * 2), "twice"),
        (raw(parameters=[{"key": "a", "label": " ", "value": "1"}]), "without key or label"),
        (raw(parameters=[{"key": "a", "label": "A", "value": 1}]), "parameters"),
        (raw(parameters=[{"key": str(n), "label": "A", "value": "1"} for n in range(1001)]), "1001 entries"),
        (raw(assets=[ASSET | {"path": ""}]), "without name or path"),
        (raw(assets=[ASSET | {"sha256": "a" * 63}]), "hash that is none"),
        (raw(assets=[ASSET | {"status": "unsupported"}]), "unsupported"),
        (raw(assets=[ASSET | {"status": "fail"}]), "executable fails, and the preflight does not"),
        (raw(mpi=MPI | {"status": "fail"}, preflight={"status": "warn", "message": "w"}), "MPI fails"),
        (raw(mpi=MPI | {"implementation": ""}), "without implementation"),
        (raw(preflight={"status": "unsupported", "message": "m"}), "a check says unsupported"),
        (raw(preflight={"status": "good", "message": "m"}), "preflight"),
        (b'{"a":' * 5000, "exactly one JSON object"),
    ],
)
def test_an_unsound_answer_is_no_answer(told: bytes, said: str) -> None:
    with pytest.raises(DescribeError, match=said):
        read_description(told, "stream")


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("describe", "said"),
    [
        ("head -c 300000 /dev/zero | tr '\\0' x", "bytes, 262144 are allowed"),
        ("echo no assets >&2; exit 4", "no assets"),
        ("echo rubbish", "exactly one JSON object"),
        ("exit 5", "it said nothing"),
        ("kill -9 $$", "describe stream"),
    ],
)
def test_a_script_that_fails_makes_its_item_unavailable(tmp_path: Path, describe: str, said: str) -> None:
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", describe=describe)))
    found = manager.availability("stream")
    assert not found.available
    assert said in found.message
    assert found.status is CheckStatus.FAIL


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"path": "{}/none"}, "is said to be there: No such file or directory"),
        ({"path": "{}", "kind": "executable"}, "is said to be a program and is none"),
        ({"path": "{}/data", "kind": "executable"}, "is said to be a program and is none"),
        ({"path": "{}/data", "kind": "directory"}, "is said to be a directory and is none"),
        ({"path": "{}/data", "kind": "file", "sha256": "a" * 64}, f"it is said to be {'a' * 64}"),
    ],
)
def test_a_script_that_lies_about_its_assets_is_found_out(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    (tmp_path / "data").write_text("content")
    asset = ASSET | changes | {"path": changes["path"].format(tmp_path)}
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", answers={"assets": [asset]})))
    found = manager.availability("stream")
    assert not found.available
    assert said in found.message


def test_true_claims_and_those_about_a_container_are_believed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("content")
    digest = hashlib.sha256(b"content").hexdigest().upper()
    true = [
        ASSET | {"path": str(data), "kind": "file", "sha256": digest},
        ASSET | {"name": "d", "path": str(tmp_path), "kind": "directory"},
    ]
    inside = [ASSET | {"path": "/inside/only"}]
    backend = [{"key": "execution_backend", "label": "Backend", "value": "container_runner"}]
    for answers in ({"assets": true}, {"assets": inside, "parameters": backend}):
        script = write_dispatcher(tmp_path / "check.sh", answers=answers)
        assert make_manager(make_settings(tmp_path, script)).availability("stream").message == "precheck passed"


def test_f5_a_dispatcher_that_tests_fewer_devices_than_it_was_to_is_no_pass(tmp_path: Path) -> None:
    summary = "CATMONITOR_NPU_BURN_SUMMARY devices=2 cases=2 passed=2 failed=0 errors=0 case_time_seconds=26.000000"
    for listed, status in (("0,1", "healthy"), ("0,1,2", "unhealthy")):
        asked = [
            {"key": "devices", "label": "Devices", "value": "all"},
            {"key": "available_devices", "label": "A", "value": listed},
        ]
        script = write_dispatcher(tmp_path / "check.sh", run=f"echo {summary}", answers={"parameters": asked})
        (item,) = run_job(make_manager(make_settings(tmp_path, script, names=("npu_burn",))), "npu_burn").benchmarks
        assert item.status == status, item.message


def test_a_script_that_hangs_is_ended_with_all_it_began(tmp_path: Path) -> None:
    """9.3 45."""
    mark = tmp_path / "child"
    describe = f"setsid bash -c 'trap \"\" TERM; echo $$ > {mark}; sleep 60' & sleep 60"
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", describe=describe)))
    began = time.monotonic()
    assert "no answer within 2 s" in manager.availability("stream").message
    assert time.monotonic() - began < 10
    assert gone(int(mark.read_text()))


def test_a_script_that_forks_while_it_describes_leaves_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    told = json.dumps(answer())
    describe = f"(setsid sleep 60 & echo $! > {mark}) > /dev/null\necho '{told}'"
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", describe=describe)))
    assert manager.availability("stream").available
    assert gone(int(mark.read_text()))


def test_describe_is_asked_once_for_all_who_ask_and_again_when_the_script_changes(tmp_path: Path) -> None:
    """F20: no single flight."""
    count = tmp_path / "count"
    told = json.dumps(answer())
    describe = f"echo x >> {count}; sleep 0.3; echo '{told}'"
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", describe=describe)))
    threads = [threading.Thread(target=manager.describe, args=("stream",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.read_text() == "x\n"
    write_dispatcher(tmp_path / "check.sh", describe=describe + "  # changed")
    manager.describe("stream")
    assert count.read_text() == "x\nx\n"


def test_the_parameters_are_passed_and_the_failure_is_told_in_full(tmp_path: Path) -> None:
    answers = {"assets": [ASSET | {"status": "fail", "message": "missing"}], "preflight": FAILED}
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", answers=answers)))
    found = manager.availability("stream")
    assert found.message == "executable (/opt/x): missing; 2 checks failed"
    assert found.profile is not None
    assert len(found.profile.script_sha256) == 64


def test_a_warning_leaves_the_item_available(tmp_path: Path) -> None:
    answers = {"preflight": {"status": "warn", "message": "governor"}}
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", answers=answers)))
    found = manager.availability("stream")
    assert (found.available, found.status, found.message) == (True, CheckStatus.WARN, "governor")


def test_a_missing_script_and_a_missing_result_directory_are_told_before_anything_is_asked(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, str(tmp_path / "none.sh"), names=("stream", "hpcg"))
    assert "No such file" in make_manager(settings).availability("stream").message
    write_dispatcher(tmp_path / "none.sh", describe=f"touch {tmp_path}/asked")
    (tmp_path / "results").rmdir()
    assert "is no directory" in make_manager(settings).availability("hpcg").message
    assert not (tmp_path / "asked").exists()
    folder = make_settings(tmp_path, str(tmp_path))
    assert "is no regular file" in make_manager(folder).availability("stream").message


class _Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.s = 100.0

    def now(self) -> Instant:
        return Instant(self.s, self.s)

    def sleep(self, seconds: float) -> None:
        self.s += seconds


class _Counting(BuiltinAdapter):
    """Counts how often it is asked."""

    def __init__(self, error: str = "") -> None:
        super().__init__(Machine.here())
        self.asked = 0
        self.error = error

    def describe(self, request: ItemRequest) -> Any:
        self.asked += 1
        if self.error:
            raise DescribeError(self.error)
        return read_description(raw(), request.benchmark)


@pytest.mark.parametrize("error", ["", "it is broken"])
def test_answers_and_errors_are_kept_for_ten_seconds(error: str) -> None:
    clock, adapter = _Clock(), _Counting(error)
    describer = Describer(lambda _: adapter, clock)

    def ask() -> None:
        try:
            describer.describe(ItemRequest("stream"), timeout_s=5.0)
        except DescribeError as told:
            assert str(told) == error

    ask()
    clock.s += 9.9
    ask()
    assert adapter.asked == 1
    clock.s += 0.2
    ask()
    assert adapter.asked == 2
    clock.s -= 50.0  # a clock that jumps back makes no answer young
    ask()
    assert adapter.asked == 3
