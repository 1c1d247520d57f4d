"""The generated adapter from end to end: bash, ``nodeproof dispatch``, a manager that believes nothing it has not checked."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import CommandError
from nodeproof.host.handed_on import run_handing_on
from nodeproof.host.machine import Machine
from nodeproof.model.job import CheckStatus, Correctness, Status
from nodeproof.stress.adapters.base import LaunchError
from nodeproof.stress.adapters.describe_v1 import read_description
from nodeproof.stress.dispatch import Dispatcher, variable_faults
from nodeproof.stress.settings import ItemSettings
from support.deploy import Yard
from support.npu_burn import BurnHost, container_engine
from support.stress import STREAM_GOOD, make_manager, make_settings, run_job

pytestmark = pytest.mark.timeout(60)


class Site:
    """A generated adapter whose programs are scripts."""

    def __init__(self, folder: Path) -> None:
        self.yard = Yard(folder)
        self.yard.generate(self.yard.host())
        self.script = self.yard.place / "benchmark_check.sh"
        self.program("stream/stream_omp", f"cat <<'END'\n{STREAM_GOOD}\nEND\necho threads $OMP_NUM_THREADS >&2")

    def program(self, name: str, text: str) -> None:
        path = self.yard.folder / "plugin" / "runtime" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        plain = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        return subprocess.run(
            ["/bin/bash", str(self.script), *words], capture_output=True, text=True, check=False, env={**plain, **environ}
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_an_item_runs_through_the_adapter_and_is_judged(site: Site) -> None:
    settings = make_settings(site.yard.folder, str(site.script))
    report = run_job(make_manager(settings), "stream")
    item = report.benchmarks[0]
    assert (item.status, item.values["triad_mb_s"]) == (Status.HEALTHY, 10000.0)
    assert item.profile is not None
    assert item.profile.script_sha256
    assert {entry.key: entry.value for entry in item.profile.parameters}["execution_backend"] == "host_local"
    assert [asset.name for asset in item.profile.assets] == ["executable"]


def test_describe_is_one_object_and_starts_nothing(site: Site) -> None:
    site.program("stream/stream_omp", f"touch {site.yard.folder}/ran")
    done = site.run("describe", "stream")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert (told["protocol_version"], told["benchmark"]) == (1, "stream")
    assert told["preflight"]["status"] in {"pass", "warn"}  # a busy box is warned of
    assert not (site.yard.folder / "ran").exists()
    assert read_description(done.stdout.encode(), "stream").resources.total_workers == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["stream", "hpl", "hpcg", "npu_burn"])
def test_every_description_keeps_to_the_protocol(name: str, tmp_path: Path) -> None:
    profile = Dispatcher(name, {"HOME": "/nonexistent"}, Machine.here()).describe()
    assert profile.preflight.status is CheckStatus.FAIL
    assert read_description(msgspec.json.encode(profile), name).preflight.status is CheckStatus.FAIL


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "usage:"),
        (("stream", "x"), 2, "usage:"),
        (("gpu_burn",), 2, "gpu_burn: expected stream, hpl, hpcg or npu_burn"),
        (("describe", "../x"), 2, "../x: expected stream"),
    ],
)
def test_other_words_run_nothing(site: Site, words: tuple[str, ...], code: int, said: str) -> None:
    done = site.run(*words)
    assert (done.returncode, said in done.stderr, done.stdout) == (code, True, "")


def test_settings_of_the_script_win_over_the_environment(site: Site) -> None:
    done = site.run("describe", "stream", STREAM_EXECUTABLE="/bin/true", CPU_EXECUTION_BACKEND="unix")
    assert json.loads(done.stdout)["assets"][0]["path"].endswith("plugin/runtime/stream/stream_omp")


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("stream", {"STREAM_EXECUTABLE": ""}, "STREAM_EXECUTABLE is '': expected an absolute path"),
        ("stream", {"STREAM_THREADS": "-1"}, "STREAM_THREADS is '-1'"),
        ("stream", {"STREAM_NUMACTL": "numactl"}, "STREAM_NUMACTL is 'numactl': expected an absolute path, or nothing"),
        ("hpl", {"HPL_MPI_PROCESSES": "0"}, "HPL_MPI_PROCESSES is '0': expected a whole number from 1"),
        ("hpl", {"HPL_WORKDIR": "."}, "HPL_WORKDIR is '.'"),
        ("hpcg", {"HPCG_NX": "1e9"}, "HPCG_NX is '1e9'"),
        ("hpcg", {"HPCG_RUNTIME_SECONDS": "9999999999"}, "HPCG_RUNTIME_SECONDS"),
    ],
)
def test_a_variable_that_is_none_fails_describe_and_run(name: str, changes: dict[str, str], said: str) -> None:
    sound = {
        "STREAM_EXECUTABLE": "/bin/true",
        "HPL_EXECUTABLE": "/bin/true",
        "HPL_MPI_LAUNCHER": "/bin/true",
        "HPL_WORKDIR": "/",
        "HPL_MPI_PROCESSES": "1",
        "HPL_THREADS_PER_PROCESS": "1",
        "HPCG_EXECUTABLE": "/bin/true",
        "HPCG_MPI_LAUNCHER": "/bin/true",
        "HPCG_WORKDIR": "/",
        "HPCG_MPI_PROCESSES": "1",
        "HPCG_THREADS_PER_PROCESS": "1",
    }
    full = {"HPCG_NX": "32", "HPCG_NY": "32", "HPCG_NZ": "32", "HPCG_RUNTIME_SECONDS": "60", **sound}
    assert list(variable_faults(name, full)) == []
    dispatcher = Dispatcher(name, {**sound, **changes}, Machine.here())
    profile = dispatcher.describe()
    assert profile.preflight.status is CheckStatus.FAIL
    assert said in profile.preflight.message
    with pytest.raises(LaunchError, match=said.partition(" is ")[0]):
        dispatcher.run()


class TestBurn:
    """NPU Burn in a container, through the dispatcher alone: the one line of it that others read."""

    def dispatch(self, host: BurnHost, **changes: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "nodeproof", "dispatch", "run", "npu_burn"],
            env={**os.environ, **host.in_container(**changes)},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_a_pass_is_summed_up(self, tmp_path: Path) -> None:
        host = BurnHost(tmp_path)
        with container_engine(host):
            done = self.dispatch(host)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == (
            "CATMONITOR_NPU_BURN_SUMMARY devices=2 cases=2 passed=2 failed=0 errors=0 case_time_seconds=26.000000"
        )
        assert "[npu 0] matmul warm-up" in done.stdout

    def test_a_wrong_result_keeps_its_counts(self, tmp_path: Path) -> None:
        host = BurnHost(tmp_path)
        host.behave(broken=[1])
        with container_engine(host):
            done = self.dispatch(host)
        assert done.returncode == 1
        assert "devices=2 cases=2 passed=1 failed=1 errors=1" in done.stdout

    def test_results_of_an_earlier_run_are_none(self, tmp_path: Path) -> None:
        host = BurnHost(tmp_path)
        with container_engine(host):
            assert self.dispatch(host).returncode == 0
            host.behave(keeps_old=True)
            done = self.dispatch(host)
        assert (done.returncode, "SUMMARY" in done.stdout) == (1, False)

    def test_a_manager_reads_table_and_line(self, tmp_path: Path) -> None:
        host = BurnHost(tmp_path)
        host.behave(dead=[1], console_fails=[1])
        script = tmp_path / "check.sh"
        lines = [f"export {name}='{value}'" for name, value in host.in_container().items()]
        hand_over = (
            f'[ "$1" = describe ] && action=describe || action=run\nexec {sys.executable} -m nodeproof dispatch $action npu_burn'
        )
        script.write_text("\n".join(["# CATMONITOR_STRESS_DESCRIBE_PROTOCOL=1", *lines, hand_over]) + "\n")
        settings = make_settings(tmp_path, str(script), names=("npu_burn",))
        settings = msgspec.structs.replace(
            settings, benchmarks={"npu_burn": ItemSettings(enabled=True, timeout_s=30.0, adapter="script")}
        )
        with container_engine(host):
            item = run_job(make_manager(settings), "npu_burn").benchmarks[0]
        assert item.status is Status.UNHEALTHY, item.message
        assert item.outcome is not None
        assert item.outcome.correctness is Correctness.FAILED


def test_output_is_handed_on_as_it_comes_and_the_end_of_it_kept(capfd: pytest.CaptureFixture[str]) -> None:
    status, kept = run_handing_on(["/bin/sh", "-c", "echo one; echo two >&2; exit 3"], {}, cwd="/", keep_bytes=4)
    assert (status, kept) == (3, b"two\n")
    assert capfd.readouterr().out == "one\ntwo\n"
    with pytest.raises(CommandError):
        run_handing_on(["/none"], {}, cwd="/", keep_bytes=1)
    with pytest.raises(CommandError):
        run_handing_on(["/etc/passwd"], {}, cwd="/", keep_bytes=1)
