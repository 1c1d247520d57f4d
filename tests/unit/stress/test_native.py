"""Native programs: which are found, what their sizes mean, and whether they fit their launcher."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from nodeproof.config.loader import load_text
from nodeproof.errors import ConfigError
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.model.job import CheckStatus, ExecutionProfile, Status
from nodeproof.sources.elf import ElfFacts
from nodeproof.stress.adapters.base import ItemRequest
from nodeproof.stress.adapters.mpi import check_mpi, executable_family, launcher_family, uses_mpi
from nodeproof.stress.adapters.native import NativeAdapter
from nodeproof.stress.manager import Manager
from nodeproof.stress.settings import ItemSettings, NativePrograms, StressSettings
from nodeproof.stress.sizing import Plan
from support.stress import ENVIRON, STREAM_GOOD, make_tools

ENDED = "End of Tests.\n"


def facts(*needed: str, strings: bytes = b"\0MPI_Init\0") -> ElfFacts:
    return ElfFacts("x86_64", 64, True, "/lib/ld.so", needed, "", (), strings)


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/", "openmpi"),
        ("mpirun (Open MPI) 5.0.3", "openmpi"),
        ("HYDRA build details:\n    Version:                                 4.0.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.11", "mpich"),
        ("srun 23.02", "unknown"),
    ],
)
def test_families_of_launchers(text: str, family: str) -> None:
    assert launcher_family(text).name == family


@pytest.mark.parametrize(
    ("program", "family"),
    [
        (facts("libmpi.so.40", "libc.so.6"), "openmpi"),
        (facts("libmpi.so.12", strings=b"\0ompi_mpi_comm_world\0"), "openmpi"),
        (facts("libmpich.so.12"), "mpich"),
        (facts("libmpi.so.12", "libc.so.6"), "mpich"),
        (facts("libc.so.6", strings=b"\0MPI_Init\0/opt/mpich/lib\0"), "unknown"),
        (facts(), "unknown"),
    ],
)
def test_families_of_programs(program: ElfFacts, family: str) -> None:
    """The reference takes a path with mpich in it for MPICH."""
    assert executable_family(program).name == family


def test_a_program_that_calls_no_mpi_is_told_apart_from_one_that_may() -> None:
    assert not uses_mpi(facts("libc.so.6", strings=b"\0printf\0"))
    assert uses_mpi(facts("libc.so.6", strings=b"\0MPI_Init\0"))
    assert uses_mpi(facts(strings=b""))


class _Commands:
    """A launcher that says what a test wants."""

    def __init__(self, said: str, status: int = 0) -> None:
        self.said, self.status = said, status
        self.started_total = 0

    def find(self, program: str) -> str | None:
        del program
        return None

    def lent(self, program: str) -> bool:
        del program
        return False

    def run(self, argv: object, *, deadline_s: float, subject: str = "") -> CommandResult:
        del deadline_s, subject
        assert isinstance(argv, list)
        return CommandResult(tuple(argv), self.status, self.said.encode(), b"no\n", 0.0, truncated=False)

    def close(self) -> None:
        """Nothing."""


def machine(said: str, status: int = 0) -> Machine:
    real = Machine.here()
    return Machine(real.files, _Commands(said, status), real.clock)


def test_a_program_without_mpi_may_not_be_started_many_times() -> None:
    """Each of four copies would solve the whole problem, and the box would look four times as slow."""
    program = os.path.realpath("/bin/cat")
    found = check_mpi(machine("mpirun (Open MPI) 4.1.4"), "/usr/bin/mpirun", program, 4)
    assert (found.status, found.executable_abi) == (CheckStatus.FAIL, "none")
    assert check_mpi(machine("mpirun (Open MPI) 4.1.4"), "/usr/bin/mpirun", program, 1).status is CheckStatus.WARN


def test_a_launcher_that_fails_or_a_program_that_is_none_fail(tmp_path: Path) -> None:
    assert "ends with status 3: no" in check_mpi(machine("", 3), "/x/mpirun", "/bin/cat", 1).message
    script = tmp_path / "xhpl"
    script.write_text("#!/bin/sh\n")
    found = check_mpi(machine("mpirun (Open MPI) 4.1.4"), "/x/mpirun", str(script), 1)
    assert "cannot be read as a program" in found.message
    assert check_mpi(Machine.here(), "/x/mpirun", "/bin/cat", 1).status is CheckStatus.FAIL


@pytest.mark.parametrize(
    ("said", "status"), [("mpirun (Open MPI) 4.1.4", "pass"), ("HYDRA build details:", "fail"), ("srun 23", "warn")]
)
def test_families_must_agree(monkeypatch: pytest.MonkeyPatch, said: str, status: str) -> None:
    monkeypatch.setattr("nodeproof.stress.adapters.mpi.elf.parse", lambda *_: facts("libmpi.so.40"))
    found = check_mpi(machine(said), "/x/mpirun", "/bin/cat", 2)
    assert (found.status, found.executable_abi, found.required) == (status, "openmpi", True)


def program(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def settings(folder: Path, **natives: NativePrograms) -> StressSettings:
    return StressSettings(
        enabled=True,
        web_enabled=False,
        report_path=str(folder / "reports" / "stress-latest.json"),
        state_root=str(folder / "state"),
        default_benchmarks=("stream",),
        benchmarks={
            name: ItemSettings(enabled=True, timeout_s=20.0, adapter="native", native=native) for name, native in natives.items()
        },
    )


def described(made: StressSettings, name: str, plan: Plan = Plan.QUICK) -> ExecutionProfile:
    return NativeAdapter(made, ENVIRON, Machine.here()).describe(ItemRequest(name, plan))


def dat(n: int = 1000, p: int = 1, q: int = 1, device: int = 6, threshold: str = "16.0") -> str:
    rows = ["HPL", "x", "HPL.out", str(device), "1", str(n), "1", "192", "0", "1", str(p), str(q), threshold]
    return "\n".join([*rows, *(["1"] * 18)]) + "\n"


def test_stream_runs_as_it_is_and_is_judged_as_official(tmp_path: Path) -> None:

    native = NativePrograms(
        executable=program(tmp_path / "stream", f"cat <<'END'\n{STREAM_GOOD}\nEND\necho $OMP_NUM_THREADS"), threads=2
    )
    made = settings(tmp_path, stream=native)
    manager = Manager(made, environ=ENVIRON, tools=make_tools(made))
    report = manager.start(["stream"])
    ended = manager.wait(report.job_id, 15.0)
    assert ended is not None
    assert ended.status is Status.HEALTHY
    assert ended.benchmarks[0].output.rstrip().endswith("\n2")
    stored = manager.runs.load(ended.benchmarks[0].run_id)
    assert [entry.name for entry in stored.record.provenance] == ["executable"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (dat(p=2, q=2), "process grid 2 x 2 needs 4 ranks, 1 will be started"),
        (dat(n=2_000_000), "it will not fit"),
        (dat(device=8), "the results go elsewhere"),
        (dat(threshold="-1.0"), "will check nothing"),
        ("rubbish\n", "HPL.dat"),
    ],
)
def test_an_input_of_hpl_that_must_fail_is_told_with_its_fix(tmp_path: Path, text: str, said: str) -> None:
    """F22: the reference shows P x Q and never compares it."""
    (tmp_path / "HPL.dat").write_text(text)
    native = NativePrograms(executable="/bin/true", launcher="/bin/true", workdir=str(tmp_path), processes=1, threads=1)
    profile = described(settings(tmp_path, hpl=native), "hpl")
    assert profile.preflight.status is CheckStatus.FAIL
    assert said in profile.preflight.message


def test_a_missing_program_launcher_and_directory_each_fail(tmp_path: Path) -> None:
    native = NativePrograms(executable=str(tmp_path / "no"), launcher="relative/mpirun", workdir=str(tmp_path / "none"))
    profile = described(settings(tmp_path, hpl=native), "hpl")
    failed = {asset.name for asset in profile.assets if asset.status is CheckStatus.FAIL}
    assert failed == {"executable", "mpi_launcher", "working_directory", "input_file"}
    assert profile.preflight.status is CheckStatus.FAIL


def test_without_an_input_one_for_this_box_is_written_where_the_run_works(tmp_path: Path) -> None:
    launcher = program(
        tmp_path / "mpirun", f'[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" || cp HPL.dat {tmp_path}/seen'
    )
    native = NativePrograms(executable="/bin/true", launcher=launcher, processes=1, threads=1)
    made = settings(tmp_path, hpl=native)
    manager = Manager(made, environ=ENVIRON, tools=make_tools(made))
    report = manager.start(["hpl"], plan=Plan.QUICK)
    ended = manager.wait(report.job_id, 15.0)
    assert ended is not None
    assert ended.benchmarks[0].status is Status.UNHEALTHY
    profile = ended.benchmarks[0].profile
    assert profile is not None
    n = next(one.value for one in profile.parameters if one.key == "n")
    assert f"{n} " in (tmp_path / "seen").read_text()
    assert not list((tmp_path / "state").glob("work/*"))


def test_the_argv_of_hpl_and_hpcg_is_what_both_mpi_families_share(tmp_path: Path) -> None:
    """9.2 25."""
    (tmp_path / "HPL.dat").write_text(dat(p=1, q=2))
    native = NativePrograms(
        executable="/opt/x", launcher="/opt/mpirun", workdir=str(tmp_path), processes=2, threads=3, library_dir="/opt/lib",
        grid=(16, 24, 32), runtime_s=60,
    )  # fmt: skip
    made = settings(tmp_path, hpl=native, hpcg=native)
    adapter = NativeAdapter(made, {"LD_LIBRARY_PATH": "/old"}, Machine.here())
    launch = adapter.launch(ItemRequest("hpl"))
    assert launch.argv == ("/opt/mpirun", "-np", "2", "/opt/x")
    assert launch.cwd == str(tmp_path)
    assert launch.environment == {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3", "LD_LIBRARY_PATH": "/opt/lib:/old"}
    launch = adapter.launch(ItemRequest("hpcg"))
    assert launch.argv == ("/opt/mpirun", "-np", "2", "/opt/x", "--nx=16", "--ny=24", "--nz=32", "--rt=60")
    assert launch.environment["OMP_DYNAMIC"] == "FALSE"


def test_the_file_names_programs_and_the_dispatchers_variables_fill_what_it_leaves_open() -> None:
    text = b"""
stress:
  enabled: true
  benchmarks:
    hpcg:
      enabled: true
      adapter: native
      native:
        executable: /opt/xhpcg
        launcher: /opt/mpirun
        launcher_arguments: [--bind-to, core, --map-by, core]
        arguments: ["--quiet"]
        processes: 2
        grid: [104, 104, 208]
        runtime: 90s
    hpl: {enabled: true, adapter: native}
"""
    environ = {
        "HOME": "/nonexistent",
        "HPCG_EXECUTABLE": "/env/xhpcg",
        "HPCG_LIBRARY_DIR": "/env/lib",
        "HPCG_NX": "8",
        "HPCG_THREADS_PER_PROCESS": "3",
        "HPL_EXECUTABLE": "/env/xhpl",
    }
    made = StressSettings.of(load_text("n.yaml", text, environ), environ)
    assert made.benchmarks["hpcg"].native == NativePrograms(
        executable="/opt/xhpcg",
        launcher="/opt/mpirun",
        launcher_arguments=("--bind-to", "core", "--map-by", "core"),
        arguments=("--quiet",),
        library_dir="/env/lib",
        processes=2,
        threads=3,
        grid=(104, 104, 208),
        runtime_s=90,
    )
    assert made.benchmarks["hpl"].native == NativePrograms(executable="/env/xhpl")
    launch = NativeAdapter(made, {}, Machine.here()).launch(ItemRequest("hpcg"))
    assert launch.argv == (
        *("/opt/mpirun", "-np", "2", "--bind-to", "core", "--map-by", "core"),
        *("/opt/xhpcg", "--nx=104", "--ny=104", "--nz=208", "--rt=90", "--quiet"),
    )
    shown = {entry.key: entry.value for entry in described(made, "hpcg").parameters}
    assert shown["launcher_arguments"] == "--bind-to core --map-by core", "they are part of what was run"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("executable: xhpl", "no absolute path"),
        ("arguments: --quiet", "is no list"),
        ('arguments: ["a\\0b"]', "is no argument"),
        ('arguments: [""]', "is no argument"),
        ("grid: [104, 104]", "is no grid"),
        ("grid: [104, 104, 0]", "is not within 1 and"),
        ("processes: -1", "is not within 0 and"),
        ("runtime: 60", "has no unit"),
        ("mpirun: /opt/mpirun", "unknown key"),
    ],
)
def test_what_the_file_may_not_say_of_programs(line: str, complaint: str) -> None:
    text = f"stress: {{benchmarks: {{hpl: {{native: {{{line}}}}}}}}}"
    with pytest.raises(ConfigError, match=complaint):
        load_text("n.yaml", text.encode(), {})


def test_stream_may_run_under_numactl(tmp_path: Path) -> None:
    native = NativePrograms(executable="/opt/stream_omp", numactl="/usr/bin/numactl", threads=4)
    launch = NativeAdapter(settings(tmp_path, stream=native), {}, Machine.here()).launch(ItemRequest("stream"))
    assert launch.argv == ("/usr/bin/numactl", "--interleave=all", "/opt/stream_omp")
    assert launch.environment == {"OMP_NUM_THREADS": "4"}


def test_a_changed_program_changes_the_stamp(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    made = settings(tmp_path, stream=NativePrograms(executable=program(path, "true")))
    adapter = NativeAdapter(made, {}, Machine.here())
    before = adapter.stamp(ItemRequest("stream"))
    program(path, "false # longer")
    assert adapter.stamp(ItemRequest("stream")) != before
    assert isinstance(made, msgspec.Struct)
