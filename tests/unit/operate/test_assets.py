"""Benchmarks from sources that nobody vouches for: what is refused, what is kept, and that all or nothing is installed."""

import fcntl
import io
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.clock import SystemClock
from nodeproof.errors import RecordError, WriteError
from nodeproof.host.machine import Machine
from nodeproof.operate.assets import build, manifest
from nodeproof.operate.assets.build import Builder, selection
from nodeproof.operate.assets.problems import AssetError
from nodeproof.operate.assets.recipes import BuildOptions
from nodeproof.operate.assets.sources import take_over

pytestmark = pytest.mark.timeout(60)
STREAM = r"""
#include <stdio.h>
int main(void) { printf("Solution Validates: avg error less than 1.0e-13 on all three arrays\n"); return 0; }
"""
RANK = "char ompi_mpi_comm_world[1]; int MPI_Init(void) { return 0; } int main(void) { return MPI_Init(); }\n"
HPL_MAKE = """\
include Make.$(arch)
startup refresh:
\techo "$@ $(filter -j%,$(MAKEFLAGS))" >> order; mkdir -p bin/$(arch)
build:
\techo "$@" >> order; $(CC) main.c -rdynamic -o bin/$(arch)/xhpl && cp HPL.dat.in bin/$(arch)/HPL.dat
"""
HPCG_MAKE = (
    "include setup/Make.$(arch)\nall:\n\tmkdir -p bin && $(CXX) -rdynamic src/main.cpp -o bin/xhpcg && echo 32 > bin/hpcg.dat\n"
)
PRAGMA = "#pragma omp parallel default(none) shared(local_residual, v1v, v2v)\n"


class Yard:
    """Sources, tools and targets below a folder with a blank in its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources = folder / "the sources"
        self.sources.mkdir()
        self.output = folder / "out" / "runtime"
        self.stream = self.sources / "stream.c"
        self.stream.write_text(STREAM)
        self.hpl = self.tree("hpl-2.3", {"Make.top": "", "Makefile": HPL_MAKE, "main.c": RANK, "HPL.dat.in": "HPL input\n"})
        self.hpcg = self.tree(
            "hpcg",
            {
                "Makefile": HPCG_MAKE,
                "src/main.cpp": 'extern "C" {\n' + RANK + "}\n",
                "src/ComputeResidual.cpp": PRAGMA,
                "setup/x": "",
            },
        )
        self.mpirun = self.tool("mpirun", "echo 'mpirun (Open MPI) 4.1.4'")

    def tree(self, name: str, files: dict[str, str]) -> Path:
        for path, text in files.items():
            place = self.sources / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return self.sources / name

    def tool(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def options(self, **changes: object) -> BuildOptions:
        plain = BuildOptions(
            output_root=str(self.output),
            build_root=str(self.folder / "build"),
            sources={"stream": str(self.stream), "hpl": str(self.hpl), "hpcg": str(self.hpcg)},
            mpicc="/usr/bin/gcc",
            mpicxx="/usr/bin/g++",
            mpirun=self.mpirun,
            stream_array_size=1000,
            jobs=2,
        )
        return msgspec.structs.replace(plain, **changes)

    def builder(self, **changes: object) -> Builder:
        return Builder(self.options(**changes), Machine.here(), SystemClock())

    def installed(self) -> list[str]:
        return sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file())


@pytest.fixture
def yard(tmp_path: Path, absent_here: list[str]) -> Yard:
    if shutil.which("gcc") is None or shutil.which("g++") is None or shutil.which("make") is None:
        absent_here.append("assets: gcc, g++ or make is not installed")
        pytest.skip("no compiler")
    return Yard(tmp_path)


def test_everything_is_built_installed_and_told(yard: Yard) -> None:
    built = yard.builder().build()
    assert yard.installed() == ["hpcg/hpcg.dat", "hpcg/xhpcg", "hpl/HPL.dat", "hpl/xhpl", "stream/stream_omp"]
    assert (built.schema_version, built.last_selection) == (1, ["stream", "hpl", "hpcg"])
    assert built.benchmarks["stream"].flags.startswith("-O3 -fopenmp -DSTREAM_ARRAY_SIZE=1000 -DNTIMES=10")
    assert "Solution Validates" in built.benchmarks["stream"].smoke
    assert built.benchmarks["hpl"].flags == "-O3 -fopenmp -funroll-loops"
    assert built.benchmarks["hpcg"].patch == "src/ComputeResidual.cpp: n is listed as shared in the parallel region"
    assert "libc.so.6" in built.benchmarks["hpl"].ldd
    assert built.toolchain.mpirun.endswith("mpirun (Open MPI) 4.1.4")
    path = manifest.manifest_path(str(yard.output))
    assert path == str(yard.folder / "out" / "manifests" / "cpu-build-manifest.json")
    assert manifest.load(path) == built
    assert manifest.verify(built) == {"hpcg": [], "hpl": [], "stream": []}
    assert os.access(yard.output / "hpl" / "xhpl", os.X_OK)
    made = [yard.folder / "out", *(yard.folder / "out").rglob("*")]
    closed = [str(one) for one in made if not one.stat().st_mode & (stat.S_IXOTH if one.is_dir() else stat.S_IROTH)]
    assert closed == []  # a runner has a user of its own


def test_the_phases_of_hpl_run_one_after_the_other(yard: Yard) -> None:
    yard.builder(only=("hpl",)).build()
    (order,) = (yard.folder / "build").glob("hpl-*/order")
    phases = [line.split() for line in order.read_text().splitlines()]
    assert [phase[0] for phase in phases] == ["startup", "refresh", "build"]
    assert all("-j2" not in phase for phase in phases[:2])


def test_the_administrators_sources_are_not_touched(yard: Yard) -> None:
    before = {path: path.read_bytes() for path in yard.sources.rglob("*") if path.is_file()}
    yard.builder().build()
    assert {path: path.read_bytes() for path in yard.sources.rglob("*") if path.is_file()} == before


def test_what_is_there_is_replaced_only_by_force(yard: Yard) -> None:
    yard.builder(only=("stream",)).build()
    with pytest.raises(AssetError, match=r"stream_omp is there already; replace it with --force"):
        yard.builder(only=("stream",)).build()
    again = yard.builder(only=("stream",), force=True)
    again.build()
    assert again.said == [f"stream: as it was made before in {next((yard.folder / 'build').glob('stream-*'))}"]


def test_a_partial_build_keeps_what_is_known_of_the_others(yard: Yard) -> None:
    first = yard.builder(only=("stream", "hpl")).build()
    second = yard.builder(only=("hpcg",)).build()
    assert second.last_selection == ["hpcg"]
    assert {name: second.benchmarks[name] for name in ("stream", "hpl")} == first.benchmarks


def test_one_that_was_stopped_goes_on_where_it_was(yard: Yard) -> None:
    (yard.hpl / "main.c").write_text("this is no C\n")
    with pytest.raises(AssetError, match=r"make build: exit status 2"):
        yard.builder().build()
    assert yard.installed() == []
    (yard.hpl / "main.c").write_text(RANK)
    again = yard.builder()
    again.build()
    assert [line.split(" in ")[0] for line in again.said] == ["stream: as it was made before", "hpl: made", "hpcg: made"]


def test_another_source_or_flag_is_another_build(yard: Yard) -> None:
    yard.builder(only=("stream",)).build()
    for changes in ({"stream_ntimes": 20}, {"sources": {"stream": str(yard.stream)}}):
        if "sources" in changes:
            yard.stream.write_text(STREAM + "\n")
        again = yard.builder(only=("stream",), force=True, **changes)
        again.build()
        assert again.said[0].startswith("stream: made in")


def test_when_one_file_cannot_be_installed_none_is(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.builder(only=("stream",)).build()
    old = (yard.output / "stream" / "stream_omp").read_bytes()
    yard.stream.write_text(STREAM.replace("return 0", "return  0"))
    real = build.store_file  # type: ignore[attr-defined]  # the one that the module uses

    def full(path: str, data: bytes, *, mode: int = 0o640) -> None:
        if path.endswith("hpl/HPL.dat"):
            raise WriteError(path, "No space left on device")
        real(path, data, mode=mode)

    monkeypatch.setattr(build, "store_file", full)
    with pytest.raises(WriteError):
        yard.builder(only=("stream", "hpl"), force=True).build()
    assert yard.installed() == ["stream/stream_omp"]
    assert (yard.output / "stream" / "stream_omp").read_bytes() == old


def test_a_changed_file_is_named_by_verify(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    yard.builder(only=("stream",)).build()
    assert main(["assets", "verify", "--output-root", str(yard.output)], {}) == 0
    assert capsys.readouterr().out == "stream: as it was built\n"
    with (yard.output / "stream" / "stream_omp").open("ab") as file:
        file.write(b"\0")
    assert main(["assets", "verify", "--output-root", str(yard.output)], {}) == 1
    assert f"{yard.output}/stream/stream_omp: it is " in capsys.readouterr().out
    (yard.output / "stream" / "stream_omp").unlink()
    assert main(["assets", "verify", "--output-root", str(yard.output), "-o", "json"], {}) == 1
    assert "No such file or directory" in capsys.readouterr().out


def test_the_command_builds_and_says_where(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["assets", "build", "--stream-src", str(yard.stream), "--only", "stream", "--stream-array-size", "1000"]
    argv += ["--output-root", str(yard.output), "--build-root", str(yard.folder / "build")]
    assert main(argv, {}) == 0
    assert "manifest: " in capsys.readouterr().out
    assert main([*argv, "--force", "-o", "json"], {}) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["benchmarks"]["stream"]["smoke"]
    assert main(argv, {}) == 1
    assert "--force" in capsys.readouterr().err


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"cc": "gcc"}, "--cc gcc: expected an absolute path"),
            ({"mpicc": "/usr/bin/no-mpicc"}, "--mpicc /usr/bin/no-mpicc: it is not there"),
            ({"output_root": "out"}, "--output-root 'out': expected an absolute path"),
            ({"build_root": "/tmp/a b"}, "--build-root '/tmp/a b': expected an absolute path without blanks"),  # noqa: S108 - never made
            ({"only": ("streem",)}, "'streem': expected one of stream, hpl, hpcg"),
            ({"only": ("stream",), "skip": ("stream",)}, "nothing is left to build"),
            ({"sources": {}}, "no source of stream, hpl, hpcg: give --stream-src, --hpl-src, --hpcg-src"),
            ({"configs": {"hpl": "/none/HPL.dat"}}, "/none/HPL.dat: there is no such file"),
            ({"openblas_lib": "", "cc": "/bin/false", "only": ("stream",)}, "STREAM: exit status 1"),
            ({"cc": "/bin/true", "only": ("stream",)}, "STREAM's short run"),
        ],
    )
    def test_options(self, yard: Yard, changes: dict[str, object], message: str) -> None:
        with pytest.raises(AssetError, match=message):
            yard.builder(**changes).build()
        assert yard.installed() == []

    def test_skip_wins_over_only(self, yard: Yard) -> None:
        assert selection(yard.options(only=("stream", "hpl"), skip=("hpl",))) == ["stream"]

    def test_a_short_run_without_the_validation_line(self, yard: Yard) -> None:
        yard.stream.write_text("int main(void) { return 0; }\n")
        with pytest.raises(AssetError, match="did not validate: it printed nothing"):
            yard.builder(only=("stream",)).build()

    def test_launcher_and_program_of_different_families(self, yard: Yard) -> None:
        yard.tool("mpirun", "echo 'HYDRA build details: MPICH 4.0.2'")
        with pytest.raises(AssetError, match="the launcher is of mpich, the program of openmpi"):
            yard.builder(only=("hpl",)).build()
        assert yard.installed() == []

    def test_a_library_that_would_not_be_found(self, yard: Yard) -> None:
        lost = yard.folder / "lost"
        lost.mkdir()
        make_library = f"echo 'int f(void){{return 0;}}' | gcc -shared -fPIC -x c - -o {lost}/liblost.so"
        compiler = yard.tool("cc", f'{make_library}; exec gcc -Wl,--no-as-needed "$@" -L{lost} -llost')
        with pytest.raises(AssetError, match=r"hpl: liblost\.so would not be found at run time"):
            yard.builder(only=("hpl",), mpicc=compiler).build()

    def test_a_layout_of_hpcg_that_is_not_known(self, yard: Yard) -> None:
        (yard.hpcg / "src" / "ComputeResidual.cpp").write_text("#pragma omp parallel for\n")
        with pytest.raises(AssetError, match="is laid out in a way that is not known here"):
            yard.builder(only=("hpcg",)).build()

    @pytest.mark.parametrize(
        "text",
        [
            "#pragma omp parallel default(none) shared(local_residual, v1v, v2v, n)\n",
            "#pragma omp parallel shared(local_residual, v1v, v2v)\n",
            "#pragma omp parallel shared(local_residual, v1v, v2v, n)\n",
        ],
    )
    def test_layouts_that_need_nothing(self, yard: Yard, text: str) -> None:
        (yard.hpcg / "src" / "ComputeResidual.cpp").write_text(text)
        assert yard.builder(only=("hpcg",)).build().benchmarks["hpcg"].patch == ""

    def test_a_target_that_is_a_link(self, yard: Yard) -> None:
        elsewhere = yard.folder / "elsewhere"
        elsewhere.mkdir()
        yard.output.mkdir(parents=True)
        (yard.output / "stream").symlink_to(elsewhere)
        with pytest.raises(AssetError, match="is a symbolic link; nothing is installed through one"):
            yard.builder(only=("stream",), force=True).build()
        assert list(elsewhere.iterdir()) == []

    def test_two_builds_at_once(self, yard: Yard) -> None:
        (yard.folder / "build").mkdir()
        with (yard.folder / "build" / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(WriteError, match="another process has held this lock"):
                yard.builder(only=("stream",)).build()

    @pytest.mark.parametrize("text", ["{", '{"schema_version": 2}'])
    def test_a_manifest_that_is_none(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "m.json").write_text(text)
        with pytest.raises(RecordError):
            manifest.load(str(tmp_path / "m.json"))
        assert manifest.load(str(tmp_path / "none.json")) is None


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> str:
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


class TestArchives:
    @pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
    def test_a_sound_one_is_unpacked(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"stream{ending}"
        if ending == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("STREAM-5.10/stream.c", STREAM)
                archive.writestr("STREAM-5.10/empty/", "")
        else:
            tar(path, (member("STREAM-5.10", tarfile.DIRTYPE), b""), (member("STREAM-5.10/stream.c"), STREAM.encode()))
        top = take_over("stream", str(path), str(tmp_path / "into"))
        assert top == str(tmp_path / "into" / "STREAM-5.10")
        assert (Path(top) / "stream.c").read_text() == STREAM

    @pytest.mark.parametrize(
        "odd",
        [
            member("/etc/cron.d/evil"),
            member("../evil"),
            member("a/../../evil"),
            member("a\\..\\..\\evil"),
            member("evil", tarfile.SYMTYPE, "/etc"),
            member("evil", tarfile.LNKTYPE, "/etc/shadow"),
            member("evil", tarfile.CHRTYPE),
            member("evil", tarfile.FIFOTYPE),
        ],
    )
    def test_hostile_members(self, tmp_path: Path, odd: tarfile.TarInfo) -> None:
        path = tar(tmp_path / "s.tar.gz", (member("stream.c"), b"x"), (odd, b"" if odd.type != tarfile.REGTYPE else b"evil"))
        with pytest.raises(AssetError, match=r"leads out of the archive|is a link or a device"):
            take_over("stream", path, str(tmp_path / "into"))
        assert not (tmp_path / "evil").exists()

    def test_hostile_zips(self, tmp_path: Path) -> None:
        for number, (name, mode) in enumerate((("../evil", 0o644), ("/evil", 0o644), ("evil", stat.S_IFLNK | 0o777))):
            path = tmp_path / f"{number}.zip"
            with zipfile.ZipFile(path, "w") as archive:
                info = zipfile.ZipInfo(name)
                info.external_attr = mode << 16
                archive.writestr(info, "/etc/shadow")
            with pytest.raises(AssetError):
                take_over("stream", str(path), str(tmp_path / f"into{number}"))
        assert not (tmp_path / "evil").exists()

    def test_bombs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nodeproof.operate.assets.sources._MAX_BYTES", 1000)
        path = tar(tmp_path / "s.tar.gz", (member("stream.c"), b"x" * 1001))
        with pytest.raises(AssetError, match="unpacks to more than 1000 bytes"):
            take_over("stream", path, str(tmp_path / "a"))
        with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
            archive.writestr("stream.c", "x" * 1001)
        with pytest.raises(AssetError, match="unpacks to more than 1000 bytes"):
            take_over("stream", str(tmp_path / "s.zip"), str(tmp_path / "b"))
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "stream.c").write_bytes(b"x" * 1001)
        with pytest.raises(AssetError, match="more than 1000 bytes"):
            take_over("stream", str(tmp_path / "tree"), str(tmp_path / "c"))
        monkeypatch.setattr("nodeproof.operate.assets.sources._MAX_MEMBERS", 1)
        path = tar(tmp_path / "m.tar.gz", (member("a"), b""), (member("b"), b""))
        with pytest.raises(AssetError, match="more than 1 members"):
            take_over("stream", path, str(tmp_path / "d"))

    @pytest.mark.parametrize("ending", [".tar.gz", ".zip", ".tar"])
    def test_rubbish(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"s{ending}"
        path.write_bytes(b"\x1f\x8brubbish" * 50)
        with pytest.raises(AssetError, match="--stream-src"):
            take_over("stream", str(path), str(tmp_path / "into"))

    def test_kinds_that_are_not_taken(self, tmp_path: Path) -> None:
        (tmp_path / "s.rpm").write_bytes(b"")
        for source, message in (("none", "there is no such file"), ("s.rpm", "expected a directory, or an archive")):
            with pytest.raises(AssetError, match=message):
                take_over("stream", str(tmp_path / source), str(tmp_path / f"into-{source}"))

    def test_markers(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            (tmp_path / "two" / name).mkdir(parents=True)
            (tmp_path / "two" / name / "stream.c").write_text("")
        with pytest.raises(AssetError, match=r"stream\.c is there 2 times \(a, b\)|stream\.c is there 2 times \(b, a\)"):
            take_over("stream", str(tmp_path / "two"), str(tmp_path / "x"))
        (tmp_path / "empty").mkdir()
        with pytest.raises(AssetError, match=r"there is no src/main\.cpp"):
            take_over("hpcg", str(tmp_path / "empty"), str(tmp_path / "y"))

    def test_links_in_a_directory(self, tmp_path: Path) -> None:
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "stream.c").symlink_to("/etc/passwd")
        with pytest.raises(AssetError, match="sources hold no links and no devices"):
            take_over("stream", str(tmp_path / "tree"), str(tmp_path / "x"))
