"""Images: what is refused before a build, what goes into it, and that no manifest is written of one that cannot be believed."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.cli.main import main
from nodeproof.operate.deploy.image_manifest import read_image_manifest
from nodeproof.operate.deploy.problems import DeployError
from nodeproof.operate.images.templates import template
from support.deploy import HPL_DAT

pytestmark = pytest.mark.timeout(60)

_ENGINE = """\
#!{python}
import json, os, re, sys
place = {place!r}
state = json.load(open(place))
words = sys.argv[1:]
state["log"].append(words)
def end(code, out="", err=""):
    json.dump(state, open(place, "w"))
    print(out, end="")
    print(err, end="", file=sys.stderr)
    sys.exit(code)
if words[0] == "--version":
    end(0, "Docker version 0.0-fake\\n")
if words[:2] == ["image", "inspect"]:
    found = state["images"].get(words[2])
    end(0, json.dumps([found])) if found else end(1, err="Error: No such image: " + words[2] + "\\n")
if words[0] == "build":
    folder = words[-1]
    text = open(words[words.index("--file") + 1]).read()
    names = sorted(os.path.relpath(os.path.join(p, f), folder) for p, _, files in os.walk(folder) for f in files)
    state["context"] = {{"names": names, "text": text}}
    if state.get("fails"):
        end(1, err="preflight: torch_npu cannot be imported\\n")
    labels = dict(re.findall(r'^LABEL (\\S+)="(.*)"$', text, re.M))
    labels.update(state.get("labels", {{}}))
    if state.get("moves"):
        for image in state["images"].values():
            image["Id"] = "sha256:" + "f" * 64
    if not state.get("vanishes"):
        state["images"][words[words.index("--tag") + 1]] = {{"Id": "sha256:" + "9" * 64, "Config": {{"Labels": labels}}}}
    end(0)
end(125, err="unknown words " + " ".join(words) + "\\n")
"""


class Yard:
    """Wheels, sources and an engine that remembers what it was given to build."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "engine.json"
        self.engine = folder / "docker"
        self.engine.write_text(_ENGINE.format(python=sys.executable, place=str(self.place)))
        self.engine.chmod(0o755)
        base = {"Id": "sha256:" + "0" * 64, "Config": {"Labels": None}}
        self.state: dict[str, object] = {"images": {"site/base:1": base, "site/devel:1": base}, "log": []}
        self.save()
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        for name in ("nodeproof-0.1.0-py3-none-any.whl", "msgspec-0.19-cp311.whl"):
            (self.wheels / name).write_text(name)
        self.manifest = folder / "manifest.json"
        self.source = folder / "the source"
        self.source.mkdir()
        (self.source / "pkg").mkdir()
        for name in ("setup.py", "pkg/main.py", "LICENSE"):
            (self.source / name).write_text(f"# {name}\n")
        self.metadata = folder / "metadata.json"
        self.describe()

    def save(self, **more: object) -> None:
        self.state.update(more)
        self.place.write_text(json.dumps(self.state))

    def describe(self, **more: object) -> None:
        files = {
            str(path.relative_to(self.source)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.source.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
        told = {"schema_version": 1, "revision": "381028b6", "license": "MulanPSL-2.0", "files": files}
        self.metadata.write_text(json.dumps({**told, **more}))

    def run(self, kind: str, *words: str, environ: dict[str, str] | None = None) -> int:
        plain = [
            "assets",
            "image",
            kind,
            "--image",
            "site/made:1",
            "--engine",
            str(self.engine),
            "--manifest",
            str(self.manifest),
        ]
        return main([*plain, "--build-root", str(self.folder / "build"), *words], environ or {})

    def control(self, *words: str) -> int:
        return self.run("control", "--base-image", "site/base:1", "--wheels", str(self.wheels), *words)

    def burn(self, *words: str) -> int:
        bases = ("--builder-base-image", "site/devel:1", "--runtime-base-image", "site/base:1")
        return self.run("npu-burn", *bases, "--source", str(self.source), "--source-metadata", str(self.metadata), *words)

    def context(self) -> dict[str, object]:
        found = json.loads(self.place.read_text())["context"]
        assert isinstance(found, dict)
        return found

    def verbs(self) -> set[str]:
        return {" ".join(words[:2]) if words[0] == "image" else words[0] for words in json.loads(self.place.read_text())["log"]}


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def test_the_control_image_is_made_of_wheels_alone(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    assert yard.control() == 0, capsys.readouterr().err
    told = yard.context()
    assert told["names"] == [
        "Containerfile",
        "install.sh",
        "wheels/msgspec-0.19-cp311.whl",
        "wheels/nodeproof-0.1.0-py3-none-any.whl",
    ]
    text = str(told["text"])
    assert "USER 65530:65530" in text
    assert "@" not in text
    assert "COPY client" not in text
    manifest = read_image_manifest("--manifest", str(yard.manifest))
    assert (manifest.kind, manifest.image, manifest.image_id) == ("control", "site/made:1", "9" * 64)
    assert manifest.details["build_network"] == "none"
    assert manifest.details["bases"] == {"BASE": {"image": "site/base:1", "id": "0" * 64}}
    words = next(words for words in json.loads(yard.place.read_text())["log"] if words[0] == "build")
    assert words[1:4] == ["--pull=false", "--tag", "site/made:1"]
    assert words[words.index("--network") + 1] == "none"
    assert list((yard.folder / "build").iterdir()) == []


def test_the_engines_client_comes_along_when_it_is_wanted(yard: Yard) -> None:
    assert yard.control("--engine-client", str(yard.engine)) == 0
    assert "COPY client /usr/bin/docker" in str(yard.context()["text"])


def test_the_runner_is_built_of_the_administrators_sources(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    stream, dat = yard.folder / "a stream.c", yard.folder / "HPL.dat"
    stream.write_text("int main;")
    dat.write_text(HPL_DAT)
    hpl = yard.folder / "hpl"
    (hpl / "src").mkdir(parents=True)
    (hpl / "Make.top").write_text("")
    (hpl / "src" / "x.c").write_text("")
    words = ("--base-image", "site/base:1", "--wheels", str(yard.wheels), "--stream-src", str(stream), "--hpl-src", str(hpl))
    assert yard.run("cpu-runner", *words, "--hpl-dat", str(dat), "-o", "json") == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)["hpl_processes"] == [2]
    told = yard.context()
    assert isinstance(told["names"], list)
    assert {"sources/stream.c", "sources/hpl/Make.top", "sources/hpl/src/x.c", "sources/hpl.dat"} <= set(told["names"])
    text = str(told["text"])
    assert "--stream-src /sources/stream.c --hpl-src /sources/hpl --hpl-dat /sources/hpl.dat --only stream,hpl" in text
    assert "USER 65532:65532" in text
    assert text.index("FROM ${BASE}\n") > text.index("COPY sources")
    manifest = read_image_manifest("--manifest", str(yard.manifest))
    assert (manifest.benchmarks, manifest.details["build_network"]) == (["stream", "hpl"], "default")


def test_proxies_go_in_by_name_and_their_values_nowhere(yard: Yard) -> None:
    environ = {"https_proxy": "http://user:hunter2@proxy.example:3128", "NO_PROXY": ""}
    words = ("--base-image", "site/base:1", "--wheels", str(yard.wheels))
    assert yard.run("control", *words, "--build-network", "host", environ=environ) == 0
    asked = next(words for words in json.loads(yard.place.read_text())["log"] if words[0] == "build")
    assert [asked[place + 1] for place, word in enumerate(asked) if word == "--build-arg"] == ["BASE=site/base:1", "https_proxy"]
    assert read_image_manifest("--manifest", str(yard.manifest)).details["proxies"] == ["https_proxy"]
    assert "hunter2" not in yard.manifest.read_text() + yard.place.read_text()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            {"labels": {"io.nodeproof.inputs-sha256": "0"}},
            "has not the labels that were given to it (io.nodeproof.inputs-sha256)",
        ),
        ({"vanishes": True}, "there is no image site/made:1"),
        ({"moves": True}, "base image site/base:1 changed while site/made:1 was built"),
        ({"fails": True}, "preflight: torch_npu cannot be imported"),
    ],
)
def test_one_that_cannot_be_believed_has_no_manifest(
    yard: Yard, state: dict[str, object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    yard.save(**state)
    assert yard.control() == 1
    assert message in capsys.readouterr().err
    assert not yard.manifest.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--base-image", "none:1", "--wheels", "W"), "base image none:1 is not here; nothing is pulled"),
        (("--base-image", "--privileged", "--wheels", "W"), ""),
        (("--base-image", "site/base:1", "--wheels", "/none"), "--wheels /none: No such file"),
        (("--base-image", "site/base:1", "--wheels", "/"), "it holds no wheel of nodeproof"),
        (("--base-image", "site/base:1", "--wheels", "W", "--build-network", "bridge"), "--build-network 'bridge'"),
        (("--base-image", "site/base:1", "--wheels", "W", "--build-option", "x"), "--build-option 'x': expected --NAME"),
        (("--base-image", "site/base:1", "--wheels", "W", "--build-root", "here"), "--build-root 'here'"),
        (("--base-image", "site/base:1", "--wheels", "W", "--image", "A B"), "--image 'A B'"),
        (("--base-image", "site/base:1", "--wheels", "W", "--engine-client", "/none"), "/none: No such file"),
    ],
)
def test_refusals(yard: Yard, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = tuple(str(yard.wheels) if word == "W" else word for word in words)
    assert yard.run("control", *told) != 0
    assert message in capsys.readouterr().err
    assert "build" not in yard.verbs()
    assert not yard.manifest.exists()


def test_a_manifest_that_is_there_goes_only_by_force(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    assert yard.control() == 0
    assert yard.control() == 1
    assert "is there already; build another image with --force" in capsys.readouterr().err
    assert yard.control("--force") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to build"),
        (("--stream-src", "/none.c"), "/none.c: No such file"),
        (("--stream-src", "S", "--stream-array-size", "0"), "--stream-array-size 0"),
        (("--stream-src", "/etc/hostname"), "expected stream.c, a directory or an archive"),
        (("--stream-src", "L"), "is a link or a device"),
        (("--hpl-src", "D", "--hpl-dat", "/etc/hostname"), "it cannot be read as an input of HPL"),
    ],
)
def test_refusals_of_the_runner(yard: Yard, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    (yard.folder / "stream.c").write_text("")
    (yard.folder / "tree").mkdir()
    (yard.folder / "tree" / "stream.c").symlink_to("/etc/passwd")
    names = {"S": "stream.c", "L": "tree", "D": "the source"}
    told = tuple(str(yard.folder / names[word]) if word in names else word for word in words)
    assert yard.run("cpu-runner", "--base-image", "site/base:1", "--wheels", str(yard.wheels), *told) == 1
    assert message in capsys.readouterr().err
    assert "build" not in yard.verbs()


class TestBurn:
    """NPU Burn's source and image."""

    def test_a_sound_source_is_built_between_two_bases(self, yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
        package = yard.folder / "pciutils_3.9_amd64.deb"
        package.write_text("deb")
        assert yard.burn("--pciutils-package", str(package)) == 0, capsys.readouterr().err
        told = yard.context()
        assert told["names"] == [
            "Containerfile",
            "packages/pciutils_3.9_amd64.deb",
            "source/LICENSE",
            "source/pkg/main.py",
            "source/setup.py",
            "tools/cann-env.sh",
            "tools/npu-builder.sh",
            "tools/npu-runtime.sh",
            "tools/npu_preflight.py",
        ]
        assert "@" not in str(told["text"])
        tree = json.loads(yard.manifest.read_text())
        assert (tree["schema_version"], tree["kind"], tree["details"]["npu_workload_run"]) == ("6", "npu-burn", False)
        assert tree["details"]["source"] | {"metadata_sha256": ""} == {
            "name": "AscendNPUBurn",
            "revision": "381028b6",
            "licence": "MulanPSL-2.0",
            "files": 3,
            "metadata_sha256": "",
        }
        assert tree["details"]["build_network"] == "none"
        assert yard.verbs() == {"--version", "build", "image inspect"}

    def test_driver_libraries_stay_in_the_first_stage(self, yard: Yard) -> None:
        driver = yard.folder / "driver"
        driver.mkdir()
        (driver / "libascend_hal.so.1").write_text("so")
        (driver / "libascend_hal.so").symlink_to("libascend_hal.so.1")
        assert yard.burn("--build-driver-lib-dir", str(driver)) == 0
        told = yard.context()
        assert isinstance(told["names"], list)
        assert "driver/libascend_hal.so" in told["names"]
        last = str(told["text"]).rpartition("FROM ")[2]
        assert "driver" not in last

    def test_sums_beside_the_metadata_stand_for_the_list(self, yard: Yard) -> None:
        files = json.loads(yard.metadata.read_text())["files"]
        sums = "".join(f"{digest}  {name}\n" for name, digest in files.items())
        (yard.folder / "SOURCE_SHA256SUMS").write_text(sums)
        yard.describe(files={})
        assert yard.burn() == 0
        (yard.folder / "SOURCE_SHA256SUMS").write_text(sums + "what is this\n")
        assert yard.burn("--force") == 1

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda yard: (yard.source / "setup.py").write_text("import os\n"), "setup.py is not as the metadata have it"),
            (lambda yard: (yard.source / "more.py").write_text(""), "more.py is not in the metadata"),
            (lambda yard: (yard.source / "LICENSE").unlink(), "LICENSE is missing"),
            (lambda yard: (yard.source / "pkg" / "link").symlink_to("/etc/passwd"), "is a link or a device"),
            (lambda yard: ((yard.source / "setup.py").write_bytes(b"a\r\n"), yard.describe()), "has line ends of Windows"),
            (lambda yard: yard.describe(schema_version=99), "schema_version 99; 1 is understood"),
            (lambda yard: yard.describe(license=""), "revision and license must be said"),
            (lambda yard: yard.describe(files={"../x": "0" * 64}), "leads out of the source"),
            (lambda yard: yard.describe(files={}), "SOURCE_SHA256SUMS: No such file"),
            (lambda yard: yard.metadata.write_text("{"), "--source-metadata"),
            (lambda yard: yard.metadata.unlink(), "--source-metadata"),
        ],
    )
    def test_a_source_that_cannot_be_believed(
        self, yard: Yard, change: object, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert callable(change)
        change(yard)
        assert yard.burn() == 1
        assert message in capsys.readouterr().err
        assert "build" not in yard.verbs()

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--compat-profile", "a3"), "--compat-profile 'a3'"),
            (("--patch", "P"), "--patch goes with a --compat-profile other than none"),
            (("--compat-profile", "a2-cann83"), "--compat-profile a2-cann83 takes --patch"),
            (("--compat-profile", "a2-cann83", "--patch", "/none"), "/none: there is no such file"),
            (("--pciutils-package", "P"), "expected a DEB or an RPM"),
            (("--ascend-env-script", "set_env.sh"), "--builder-ascend-env-script 'set_env.sh'"),
            (("--build-driver-lib-dir", "/none"), "--build-driver-lib-dir /none: No such file"),
            (("--base-image", "site/base:1"), "give --base-image, or both"),
        ],
    )
    def test_refusals(self, yard: Yard, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        (yard.folder / "compat.patch").write_text("")
        told = tuple(str(yard.folder / "compat.patch") if word == "P" else word for word in words)
        assert yard.burn(*told) != 0
        assert message in capsys.readouterr().err
        assert "build" not in yard.verbs()


class Stage:
    """What runs inside a build of NPU Burn, outside of one: CANN, torch and the tools are words in files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.ascend = folder / "Ascend"
        self.tools = folder / "tools"
        self.tools.mkdir()
        for name in ("cann-env.sh", "npu-builder.sh", "npu-runtime.sh", "npu_preflight.py.txt"):
            (self.tools / name.removesuffix(".txt")).write_text(template(name))
        for name in ("bash", "cat", "dirname", "mkdir", "chmod", "rm", "sed"):
            (self.bin / name).symlink_to(f"/bin/{name}" if os.path.exists(f"/bin/{name}") else f"/usr/bin/{name}")
        self.tool("lspci", "echo lspci version 3.9.0")
        self.python(versions='{"python": "3.11", "torch": "2.8", "torch_npu": "2.8"}')
        (self.tools / "versions.json").write_text('{"python": "3.11", "torch": "2.8", "torch_npu": "2.8"}\n')

    def python(self, versions: str, *, vllm: bool = False) -> None:
        self.tool("python3", f"""if [ "$1" = -c ]; then exit {0 if vllm else 1}; fi\ncat >/dev/null\necho '{versions}'""")

    def tool(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def cann(self, *names: str) -> None:
        for name in names:
            path = self.ascend / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("export CANN_SEEN=yes${NOT_SET_ANYWHERE}\n")

    def run(self, script: str, env_script: str = "") -> "subprocess.CompletedProcess[str]":
        environ = {
            "PATH": str(self.bin),
            "ASCEND_ROOT": str(self.ascend),
            "NPU_PLACE": str(self.tools),
            "NPU_TOOLS": str(self.tools),
            "NPU_BUILD": str(self.folder / "build"),
            "NPU_PROGRAM": str(self.folder / "program" / "burn"),
            "NPU_PACKAGES": str(self.folder / "packages"),
        }
        argv = ["/bin/bash", str(self.tools / script), env_script]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


class TestStages:
    """The scripts of the two stages."""

    def test_the_last_stage_leaves_one_program(self, tmp_path: Path) -> None:
        stage = Stage(tmp_path)
        stage.cann("ascend-toolkit/set_env.sh")
        done = stage.run("npu-runtime.sh")
        assert done.returncode == 0, done.stderr
        program = (tmp_path / "program" / "burn").read_text()
        assert f". {stage.ascend}/ascend-toolkit/set_env.sh\n" in program
        assert program.endswith(f'exec {stage.tools}/site/bin/npu-burn "$@"\n')
        assert not (stage.tools / "npu-runtime.sh").exists()

    @pytest.mark.parametrize(
        ("names", "asked", "found"),
        [
            (("ascend-toolkit/set_env.sh", "cann-8.3/set_env.sh"), "", "ascend-toolkit/set_env.sh"),
            (("ascend-toolkit/latest/bin/setenv.bash",), "", "ascend-toolkit/latest/bin/setenv.bash"),
            (("cann-8.3/set_env.sh",), "", "cann-8.3/set_env.sh"),
            (("cann-8.3/set_env.sh", "cann-8.5/set_env.sh"), "cann-8.5/set_env.sh", "cann-8.5/set_env.sh"),
            (("cann-8.3/set_env.sh", "cann-8.5/set_env.sh"), "", ""),
            ((), "", ""),
        ],
    )
    def test_canns_environment_is_found_in_order(self, tmp_path: Path, names: tuple[str, ...], asked: str, found: str) -> None:
        stage = Stage(tmp_path)
        stage.cann(*names)
        done = stage.run("npu-runtime.sh", str(stage.ascend / asked) if asked else "")
        assert (done.returncode == 0) == bool(found), done.stderr
        if found:
            assert f". {stage.ascend / found}\n" in (tmp_path / "program" / "burn").read_text()
        elif names:
            assert "several versions of CANN are there" in done.stderr

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda stage: stage.tool("gcc", ""), "the runtime base holds gcc"),
            (lambda stage: stage.python("{}", vllm=True), "the runtime base holds vllm"),
            (lambda stage: (stage.bin / "lspci").unlink(), "lspci does not run"),
            (lambda stage: stage.tool("lspci", "exit 1"), "lspci does not run"),
            (
                lambda stage: stage.python('{"python": "3.10", "torch": "2.8", "torch_npu": "2.8"}'),
                "compiled parts would not fit",
            ),
        ],
    )
    def test_a_base_that_is_not_what_it_should_be(self, tmp_path: Path, spoil: object, message: str) -> None:
        stage = Stage(tmp_path)
        stage.cann("cann-8.3/set_env.sh")
        assert callable(spoil)
        spoil(stage)
        done = stage.run("npu-runtime.sh")
        assert done.returncode != 0
        assert message in done.stderr
        assert not (tmp_path / "program" / "burn").exists()


class TestBuilder:
    """The first stage with a real Python, a real wheel, and modules in place of torch and CANN."""

    def stage(
        self, folder: Path, *, hal: bool = True, tbe: bool = True, entry: str = "npu-burn"
    ) -> "subprocess.CompletedProcess[str]":
        stage = Stage(folder)
        stage.cann("cann-8.3/set_env.sh")
        modules = folder / "modules"
        modules.mkdir()
        for name in ("torch", "torch_npu", *(["tbe"] if tbe else [])):
            (modules / f"{name}.py").write_text("")
            info = modules / f"{name}-2.8.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.8\n")
        source = folder / "build" / "source"
        (source / "ascend_npu_burn").mkdir(parents=True)
        (source / "ascend_npu_burn" / "__init__.py").write_text("def main():\n    print('burning')\n")
        (source / "pyproject.toml").write_text(
            "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'\n"
            "[project]\nname = 'ascend-npu-burn'\nversion = '26.1'\n"
            f"[project.scripts]\n{entry} = 'ascend_npu_burn:main'\n"
            "[tool.hatch.build.targets.wheel]\npackages = ['ascend_npu_burn']\n"
        )
        libraries = folder / "lib"
        libraries.mkdir()
        if hal:
            subprocess.run(
                ["/usr/bin/gcc", "-shared", "-x", "c", "/dev/null", "-o", str(libraries / "libascend_hal.so")], check=True
            )
        (stage.bin / "python3").unlink()
        environ = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(modules),
            "LD_LIBRARY_PATH": str(libraries),
            "ASCEND_ROOT": str(stage.ascend),
            "NPU_TOOLS": str(stage.tools),
            "NPU_BUILD": str(folder / "build"),
        }
        argv = ["/bin/bash", str(stage.tools / "npu-builder.sh"), ""]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)

    @pytest.fixture(autouse=True)
    def _compiler(self, absent_here: list[str]) -> None:
        if not os.access("/usr/bin/gcc", os.X_OK):
            absent_here.append("gcc is not installed: the first stage of NPU Burn's image was not tried")
            pytest.skip("no gcc")

    def test_one_wheel_is_installed_into_the_overlay(self, tmp_path: Path) -> None:
        done = self.stage(tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        overlay = tmp_path / "build" / "overlay" / "opt" / "nodeproof-npu"
        assert (overlay / "site" / "ascend_npu_burn" / "__init__.py").exists()
        assert os.access(overlay / "site" / "bin" / "npu-burn", os.X_OK)
        assert json.loads((overlay / "versions.json").read_text())["torch_npu"] == "2.8"
        assert " ascend_npu_burn-26.1-" in (overlay / "wheel.sha256").read_text()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"hal": False}, "give the driver's libraries with --build-driver-lib-dir"),
            ({"tbe": False}, "tbe cannot be imported"),
            ({"entry": "other-name"}, "npu-burn"),
        ],
    )
    def test_what_is_missing_ends_the_build(self, tmp_path: Path, changes: dict[str, object], message: str) -> None:
        done = self.stage(tmp_path, **changes)  # type: ignore[arg-type]  # the keys are its own
        assert done.returncode != 0
        assert message in done.stderr


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema_version": "x", "kind": "", "generated_at": "", "image": "", "image_id": ""}']
)
def test_a_manifest_of_an_image_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(DeployError, match=r"m\.json"):
        read_image_manifest("--manifest", str(tmp_path / "m.json"))
    with pytest.raises(DeployError, match="No such file"):
        read_image_manifest("--manifest", str(tmp_path / "none.json"))
