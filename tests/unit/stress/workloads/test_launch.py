"""How the workloads start and end as programs of their own."""

import os
import re
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.stress.workloads import launch
from nodeproof.stress.workloads.launch import CannotRunError
from support.workloads import Child, beats, environment, result, run_child

pytestmark = pytest.mark.timeout(120)

SMALL = {
    "stream": ("--elements", "20000", "--ntimes", "2"),
    "hpl": ("--order", "128"),
    "hpcg": ("--nx", "16", "--seconds", "1", "--threads", "1"),
    "cpu_sdc": ("--rounds", "1"),
    "memory_pattern": ("--mib", "8"),
}
LONG = {
    "stream": ("--plan", "soak", "--elements", "200000"),
    "hpl": ("--order", "300", "--tests", "1000000"),
    "hpcg": ("--nx", "16", "--seconds", "3600", "--threads", "1"),
    "cpu_sdc": ("--plan", "soak"),
    "memory_pattern": ("--plan", "soak", "--mib", "8"),
}


@pytest.mark.parametrize("name", SMALL)
def test_each_runs_to_its_end_and_tells_one_result(name: str) -> None:
    child = run_child(name, *SMALL[name], "--json")
    assert (child.status, child.errors) == (0, "")
    fields = result(child.output)
    assert (fields["workload"], fields["implementation"], fields["plan"]) == (name, "nodeproof", "quick")
    assert all(line.startswith("nodeproof-") for line in child.output.splitlines())
    assert {beat.workload for beat in beats(child.output)} == {name}


@pytest.mark.parametrize("name", LONG)
def test_sigterm_ends_each_at_once(name: str) -> None:
    """Under way, that is: past its first step after the kernels were loaded."""
    with subprocess.Popen(
        [sys.executable, "-m", f"nodeproof.stress.workloads.{name}", *LONG[name]],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if any(beat.phase not in ("start", "compile") for beat in beats(line)):
                break
        child.terminate()
        assert child.wait(timeout=10) == -signal.SIGTERM


@pytest.mark.parametrize("name", ["stream", "cpu_sdc"])
def test_one_allowed_cpu_is_one_thread(name: str) -> None:
    cpu = max(os.sched_getaffinity(0))
    child = run_child(name, *SMALL[name], before=lambda: os.sched_setaffinity(0, {cpu}))
    assert (child.status, child.errors) == (0, "")
    fields = result(child.output)
    assert (fields["threads"], fields["cpus"]) == (1, [cpu])
    refused = run_child(name, *SMALL[name], "--threads", "2", before=lambda: os.sched_setaffinity(0, {cpu}))
    assert (refused.status, refused.output.count("nodeproof-result")) == (69, 0)
    assert "2 threads asked for, 1 CPUs may be used" in refused.errors


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("stream", ("--elements", "900000000000"), "three arrays need"),
        ("hpl", ("--order", "9000000"), "at most N="),
        ("hpcg", ("--nx", "4096"), "rows need"),
        ("memory_pattern", ("--mib", "90000000"), "MiB may be used"),
    ],
)
def test_too_little_memory_is_said_and_nothing_is_run(name: str, arguments: tuple[str, ...], reason: str) -> None:
    child = run_child(name, *arguments)
    assert child.status == 69
    assert reason in child.errors
    assert child.errors.startswith(f"nodeproof {name}: ")
    assert "Traceback" not in child.errors


def test_memory_that_the_kernel_refuses_is_said() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    child = run_child("stream", "--elements", "300000000", before=limit)
    if "may be used" in child.errors:  # this machine has not so much; the limit was not reached
        return
    assert child.status == 69
    assert "out of memory" in child.errors


@pytest.mark.parametrize("name", SMALL)
def test_a_missing_extra_is_named(name: str, tmp_path: Path) -> None:
    hide = (
        "import importlib.util as u, sys; find = u.find_spec; u.find_spec = lambda n, *a: None if n == 'numba' else find(n, *a); "
    )
    run = f"from nodeproof.stress.workloads import {name}; sys.exit({name}.main([]))"
    done = subprocess.run(
        [sys.executable, "-c", hide + run], capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False
    )
    assert done.returncode == 69
    assert done.stderr == (
        f"nodeproof {name}: numba not installed; the workloads need the extra: pip install 'nodeproof[stress]'\n"
    )


def test_wrong_arguments_are_refused_as_usual() -> None:
    child: Child = run_child("hpl", "--order", "-5")
    assert child.status == 2
    assert "-5 is not a positive number" in child.errors


def test_a_fault_of_its_own_is_status_70_and_ends_though_threads_wait() -> None:
    run = (
        "import sys\n"
        "from nodeproof.stress.workloads import launch, team, hpl\n"
        "import threading\n"
        "def work(rank):\n"
        "    if rank: raise ArithmeticError('planted')\n"
        "    threading.Event().wait()\n"
        "class Job:\n"
        "    @staticmethod\n"
        "    def run(options, console): team.run([0, 0], work, lambda: None)\n"
        "launch.importlib.import_module = lambda name: Job\n"
        "sys.exit(launch.main('hpl', '', lambda parser: None, 'job', []))\n"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 70
    assert "ArithmeticError: planted" in done.stderr


def test_a_reader_that_goes_away_ends_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "nodeproof.stress.workloads.cpu_sdc", "--plan", "soak"], stdout=subprocess.PIPE, env=environment()
    ) as child:
        assert child.stdout is not None
        select.select([child.stdout], [], [], 60)
        child.stdout.close()
        assert child.wait(timeout=60) == 70


def test_settings_of_other_processors_code_are_dropped() -> None:
    run = "from nodeproof.stress.workloads import launch; launch.prepare_environment(); import os; print(*sorted(os.environ))"
    changes = {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_L2_SIZE": "1", "OPENBLAS_NUM_THREADS": "7"}
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, env=environment(**changes), check=True)
    names = done.stdout.split()
    assert "OPENBLAS_NUM_THREADS" in names
    assert "OPENBLAS_CORETYPE" not in names
    assert "OPENBLAS_L2_SIZE" not in names


def _prepare(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    launch.prepare_environment()
    return os.environ["NUMBA_CACHE_DIR"]


def test_kernels_are_kept_in_a_folder_of_our_own_by_the_state_of_the_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NODEPROOF_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = Path(_prepare(monkeypatch))
    assert folder.parent == tmp_path / "cache" / "nodeproof"
    assert re.fullmatch(r"kernels-[0-9a-f]{16}", folder.name)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert Path(_prepare(monkeypatch)) == folder


def test_a_folder_that_others_may_write_to_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NODEPROOF_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("nodeproof.stress.workloads.launch.tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / "cache" / "nodeproof").mkdir(parents=True)
    (tmp_path / "cache" / "nodeproof").chmod(0o777)
    assert Path(_prepare(monkeypatch)).parent == tmp_path / f"nodeproof-{os.getuid()}"


def test_without_any_place_for_kernels_it_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NODEPROOF_KERNEL_CACHE", str(tmp_path / "file"))
    with pytest.raises(CannotRunError, match="NODEPROOF_KERNEL_CACHE"):
        launch.prepare_environment()


def test_of_kernels_of_other_sources_the_newest_three_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODEPROOF_KERNEL_CACHE", str(tmp_path))
    for age in range(6):
        folder = tmp_path / f"kernels-{age}"
        folder.mkdir()
        os.utime(folder, (1_000_000 - age, 1_000_000 - age))
    current = Path(_prepare(monkeypatch)).name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["kernels-0", "kernels-1", "kernels-2", current])
