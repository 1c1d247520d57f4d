"""GPU burn by programs of the administrator's: what they print, and how they are started."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.recorded import recorded_machine
from nodeproof.model.job import CheckStatus, Correctness
from nodeproof.stress.adapters.base import ItemRequest, LaunchError
from nodeproof.stress.adapters.gpu_native import GpuNativeAdapter
from nodeproof.stress.parsers import dcgm_diag, gpu_burn
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.settings import ItemSettings, NativePrograms, StressSettings
from nodeproof.stress.sizing import Plan

_FOLDER = Path(__file__).parents[2] / "fixtures" / "benchmarks"


def _burn(name: str) -> Judgement:
    raw = (_FOLDER / name).read_bytes()
    return gpu_burn.judge(gpu_burn.parse(raw), raw)


def test_case_31_progress_is_one_long_line_and_the_table_is_the_verdict() -> None:
    judged = _burn("31-gpu-burn-carriage-returns.txt")
    assert judged.correctness is Correctness.VALIDATED
    assert judged.details["gflops"] == [16942, 17093, 16957, 16926, 16890, 16950, 17010, 16926]
    assert judged.details["errors"] == [0] * 8
    assert judged.details["max_temp_c"] == 62
    assert judged.values == {"devices_reported": 8, "gflops_min": 16890}


def test_case_32_faulty_cards_fail_whatever_the_counters_say() -> None:
    judged = _burn("32-gpu-burn-faulty-exit-zero.txt")
    assert judged.correctness is Correctness.FAILED
    assert judged.reason == "GPU 0, 1, 2, 3: computed wrong results"
    assert judged.details["errors"] == [0, "overflowed", "overflowed", 0]


def test_case_33_a_program_that_died_judges_no_card() -> None:
    judged = _burn("33-gpu-burn-died-no-table.txt")
    assert judged.correctness is Correctness.NOT_PROVEN
    assert judged.cause == "no_result"
    assert judged.details["verdicts"] == {}


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (b"Tested 2 GPUs:\n\tGPU 0: OK\n", "incomplete"),
        (b"Tested 0 GPUs:\n", "incomplete"),
        (b"Tested 1 GPUs:\n\tGPU 0: OK\n", "incomplete"),
        (b"", "no_result"),
    ],
)
def test_what_proves_nothing(raw: bytes, cause: str) -> None:
    judged = gpu_burn.judge(gpu_burn.parse(raw), raw)
    assert (judged.correctness, judged.cause) == (Correctness.NOT_PROVEN, cause)


def test_case_37_thermal_violations_of_no_length_are_a_concern_with_the_raw_verdict_kept() -> None:
    raw = (_FOLDER / "37-dcgm-thermal-zero-seconds.txt").read_bytes()
    results = dcgm_diag.parse(raw)
    assert results is not None
    assert [(one.device, one.status, one.violation_s) for one in results] == [("GPU 0", "Fail", 0.0)]
    judged = dcgm_diag.judge(results, raw)
    assert judged.correctness is not Correctness.FAILED
    assert judged.correctness is Correctness.NOT_PROVEN, "and nothing else passed"
    with_passes = [*results, dcgm_diag.DiagResult("memory", "GPU 0", "Pass", "", None)]
    judged = dcgm_diag.judge(with_passes, raw)
    assert judged.correctness is Correctness.VALIDATED
    assert judged.concerns == [
        "GPU 0 targeted_stress: Fail (GPU 0 Thermal violations totaling 0.0 seconds started at 30.0 seconds into the test)"
    ]


def _document(*results: dict[str, object], root: str = "DCGM Diagnostic") -> bytes:
    test = {"name": "memory", "results": list(results)}
    return json.dumps({root: {"test_categories": [{"category": "Hardware", "tests": [test, {"name": 7}, 3]}, "x"]}}).encode()


def test_layouts_of_dcgm_3_and_4() -> None:
    four = _document({"entity_group": "GPU", "entity_id": 2, "status": "Fail", "warnings": [{"warning": "ECC"}, 5]})
    three = _document({"gpu_id": "3", "status": "PASS", "info": "fine"}, {"gpu_ids": "0,1", "status": "Skip"}, {"status": "Pass"})
    first = dcgm_diag.judge(dcgm_diag.parse(b"Successfully ran diagnostic.\n" + four), four)
    assert (first.correctness, first.reason) == (Correctness.FAILED, "GPU 2 memory: Fail (ECC)")
    second = dcgm_diag.parse(_document(root="DCGM GPU Diagnostic")) or []
    assert second == []
    passed = dcgm_diag.judge(dcgm_diag.parse(three), three)
    assert passed.values == {"tests_passed": 2, "devices_reported": 2}
    skipped = _document({"gpu_ids": "0,1", "status": "Skip"})
    assert dcgm_diag.judge(dcgm_diag.parse(skipped), skipped).reason == "no test ran to its end"


@pytest.mark.parametrize("raw", [b"", b"Error: unable to connect", b"{}", b"{]", b'{"DCGM Diagnostic": 3}', b"[" * 9])
def test_no_document_is_no_result(raw: bytes) -> None:
    judged = dcgm_diag.judge(dcgm_diag.parse(raw), raw)
    assert judged.correctness is Correctness.NOT_PROVEN


@given(st.binary(max_size=300))
def test_any_output_is_judged(raw: bytes) -> None:
    gpu_burn.judge(gpu_burn.parse(b"Tested 1 GPUs:\n" + raw), raw)
    gpu_burn.judge(gpu_burn.parse(b"9%  proc'd: 1 (2 Gflop/s)  errors: 1  temps: 3 C\r" + raw), raw)
    dcgm_diag.judge(dcgm_diag.parse(raw), raw)
    dcgm_diag.judge(dcgm_diag.parse(b'{"DCGM Diagnostic": {"test_categories": [' + raw + b"]}}"), raw)


def _adapter(tmp_path: Path, program: str = "", *, found: str = "", arguments: tuple[str, ...] = ()) -> GpuNativeAdapter:
    native = NativePrograms(executable=program, arguments=arguments)
    items = {"gpu_burn": ItemSettings(enabled=True, adapter="native", native=native)}
    settings = StressSettings(
        enabled=True, web_enabled=True, state_root=str(tmp_path), default_benchmarks=("gpu_burn",), benchmarks=items
    )
    return GpuNativeAdapter(settings, recorded_machine(str(tmp_path), {f"{found} x": b""} if found else {}))


def _program(tmp_path: Path, name: str) -> str:
    path = tmp_path / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_dcgmi_is_asked_for_json_at_the_level_of_the_plan(tmp_path: Path) -> None:
    path = _program(tmp_path, "dcgmi")
    adapter = _adapter(tmp_path, path, arguments=("-i", "0,1"))
    request = ItemRequest("gpu_burn", Plan.QUICK)
    launch = adapter.launch(request)
    assert launch.argv == (path, "diag", "-r", "2", "-j", "-i", "0,1")
    assert launch.cwd == ""
    assert adapter.describe(request).preflight.status is CheckStatus.PASS
    assert adapter.judge(request, launch, b"{}").correctness is Correctness.NOT_PROVEN
    assert adapter.stamp(request) != _adapter(tmp_path).stamp(request)


def test_gpu_burn_runs_in_its_own_folder_for_the_time_of_the_plan(tmp_path: Path) -> None:
    path = _program(tmp_path, "gpu_burn")
    adapter = _adapter(tmp_path, path)
    launch = adapter.launch(ItemRequest("gpu_burn", Plan.STANDARD, 90))
    assert (launch.argv, launch.cwd) == ((path, "90"), str(tmp_path))
    assert adapter.launch(ItemRequest("gpu_burn", Plan.SOAK)).argv == (path, "3600")
    raw = (_FOLDER / "31-gpu-burn-carriage-returns.txt").read_bytes()
    assert adapter.judge(ItemRequest("gpu_burn"), launch, raw).correctness is Correctness.VALIDATED


def test_without_a_program_it_is_unavailable_and_says_what_helps(tmp_path: Path) -> None:
    adapter = _adapter(tmp_path)
    profile = adapter.describe(ItemRequest("gpu_burn"))
    assert profile.preflight.status is CheckStatus.FAIL
    assert profile.assets[0].message == "neither dcgmi nor gpu_burn was found"
    assert profile.preflight.message.count("datacenter-gpu-manager") == 1
    with pytest.raises(LaunchError, match="neither dcgmi nor gpu_burn was found"):
        adapter.launch(ItemRequest("gpu_burn"))
    broken = _adapter(tmp_path, str(tmp_path / "nothing"))
    assert broken.describe(ItemRequest("gpu_burn")).assets[0].message == "cannot be executed"
    assert broken.stamp(ItemRequest("gpu_burn")) == str(tmp_path / "nothing")


def test_a_program_on_the_path_is_found(tmp_path: Path) -> None:
    assert _adapter(tmp_path, found="gpu-burn").describe(ItemRequest("gpu_burn")).assets[0].path == "/usr/bin/gpu-burn"
