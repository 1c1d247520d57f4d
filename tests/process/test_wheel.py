"""The distribution as others get it: its content, the same to the last byte each time, and that it runs where it is alone."""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from configparser import ConfigParser
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from nodeproof import __version__
from support.daemon import free_port, until

ROOT = Path(__file__).parents[2]
EPOCH = "1790000000"
LEFT_BEHIND = {
    "src/nodeproof/__pycache__/errors.cpython-311.pyc",
    "tests/__pycache__/conftest.cpython-311-pytest-9.pyc",
    "src/nodeproof.egg-info/PKG-INFO",
    ".venv/pyvenv.cfg",
    ".hypothesis/unicode_data/x",
    ".mypy_cache/x.json",
    ".coverage",
    "coverage.json",
    "dist/nodeproof-0.0.0.tar.gz",
}
COLLECTORS = {"chassis", "cpu", "disk", "gpu", "memory", "network", "npu", "system"}

pytestmark = pytest.mark.timeout(180)


def build(tree: Path, folder: Path) -> tuple[Path, Path]:
    """Wheel and source distribution, built without isolation."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as it lies in a folder where somebody works: with what tools leave behind."""
    copy = tmp_path_factory.mktemp("project") / "nodeproof"
    shutil.copytree(
        ROOT,
        copy,
        symlinks=True,
        ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".hypothesis", ".coverage*"),
    )
    for left in LEFT_BEHIND:
        (copy / left).parent.mkdir(parents=True, exist_ok=True)
        (copy / left).write_bytes(b"left behind")
    return copy


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tree, tmp_path_factory.mktemp("first"))


def test_the_wheel_holds_the_package_and_nothing_else(tree: Path, built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    info = f"nodeproof-{__version__}.dist-info"
    ours = {name for name in names if name.startswith("nodeproof/")}
    sources = {path.relative_to(tree / "src").as_posix() for path in (tree / "src").rglob("*.py")}
    assert {name for name in ours if name.endswith(".py")} == sources
    assert "nodeproof/py.typed" in ours
    static = tree / "src" / "nodeproof" / "web" / "static"
    page = {path.relative_to(tree / "src").as_posix() for path in static.rglob("*") if path.is_file()}
    assert {"nodeproof/web/static/index.html", "nodeproof/web/static/vendor/LICENSE.preact"} <= page <= ours
    assert not [name for name in ours if name.endswith((".pyc", ".so")) or "test_" in name or "__pycache__" in name]
    assert names - ours == {f"{info}/{part}" for part in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")}


def test_the_wheel_names_its_licence_needs_and_entry_points(built: tuple[Path, Path]) -> None:
    info = f"nodeproof-{__version__}.dist-info"
    with zipfile.ZipFile(built[0]) as wheel:
        licence = wheel.read(f"{info}/licenses/LICENSE")
        metadata = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())
        entries = ConfigParser()
        entries.read_string(wheel.read(f"{info}/entry_points.txt").decode())
        tags = wheel.read(f"{info}/WHEEL").decode()
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert (metadata["Name"], metadata["Version"]) == ("nodeproof", __version__)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert metadata["Requires-Python"] == ">=3.11"
    always = {need.lower() for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert always == {need.lower() for need in project["dependencies"]}
    assert dict(entries["console_scripts"]) == {"nodeproof": "nodeproof.cli.main:main"}
    assert set(entries["nodeproof.collectors"]) >= COLLECTORS
    assert "Tag: py3-none-any" in tags


def test_the_source_distribution_can_be_tested_and_built_from(tree: Path, built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        path.relative_to(tree).as_posix() for room in ("src", "tests", "benchmarks") for path in (tree / room).rglob("*.py")
    }
    wanted |= {path.name for path in tree.glob("*.md")}
    wanted |= {
        "pyproject.toml",
        "Makefile",
        "LICENSE",
        ".ci/run",
        "requirements/dev.lock",
        "tools/check.py",
        "tools/make_venv.sh",
    }
    assert wanted <= names
    assert names.isdisjoint(LEFT_BEHIND)


def test_two_builds_are_the_same_to_the_last_byte(tree: Path, built: tuple[Path, Path], tmp_path: Path) -> None:
    again = build(tree, tmp_path)
    assert [_sha256(path) for path in again] == [_sha256(path) for path in built]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def lent_modules() -> set[Path]:
    """Top-level modules and packages of everything that the distribution depends on, as they lie in this environment."""
    waiting, seen = ["nodeproof"], {"nodeproof"}
    places: set[Path] = set()
    while waiting:
        distribution = importlib.metadata.distribution(waiting.pop())
        for need in map(Requirement, distribution.requires or ()):
            name = canonicalize_name(need.name)
            if name not in seen and (need.marker is None or need.marker.evaluate({"extra": ""})):
                seen.add(name)
                waiting.append(name)
        if canonicalize_name(distribution.name) != "nodeproof":
            tops = {Path(file.parts[0]) for file in distribution.files or () if file.suffix in {".py", ".so"}}
            places |= {Path(str(distribution.locate_file(top))) for top in tops}
    return places


class Installed:
    """A clean environment that holds the wheel, and commands run there with nothing of ours in reach."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True, capture_output=True)
        self.environment = {
            "PATH": f"{self.venv / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.note = self._install(wheel)

    def _install(self, wheel: Path) -> str:
        """Why the dependencies are not real ones; empty when they are."""
        done = self._pip("--retries", "0", "--timeout", "10", str(wheel))
        if done.returncode == 0:
            return ""
        done = self._pip("--no-deps", "--no-index", str(wheel))
        assert done.returncode == 0, done.stderr
        # No index within reach: lend the clean environment what this one has, and nothing else of it.
        target = next(self.venv.glob("lib/python3*/site-packages"))
        for place in lent_modules():
            (target / place.name).symlink_to(place)
        return "the wheel's dependencies were lent by the environment of the tests: no package index could be reached"

    def _pip(self, *options: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "pip", "--python", str(self.venv / "bin" / "python"), "install", "--quiet"]
        return subprocess.run(
            [*command, "--disable-pip-version-check", "--no-compile", *options], capture_output=True, text=True, check=False
        )

    def run(self, *argv: str, code: int = 0) -> str:
        """Output of one command, which must exit with ``code``."""
        done = subprocess.run(
            [str(self.venv / "bin" / "nodeproof"), *argv],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Installed:
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not in the environment of the tests: the wheel was not installed")
    return Installed(tmp_path_factory.mktemp("clean"), built[0])


def test_it_is_the_installed_one_that_runs(installed: Installed, absent_here: list[str]) -> None:
    if installed.note:
        absent_here.append(installed.note)
    python = str(installed.venv / "bin" / "python")
    ask = "import nodeproof, sys; print(nodeproof.__file__); print([p for p in sys.path if p.endswith('src')])"
    done = subprocess.run([python, "-c", ask], cwd=installed.folder, env=installed.environment, capture_output=True, check=True)
    where, sources = done.stdout.decode().splitlines()
    assert where.startswith(str(installed.venv))
    assert sources == "[]"
    assert str(ROOT / "src") not in where
    for folder in site.getsitepackages():
        assert not where.startswith(folder)


def test_one_shot_commands(installed: Installed) -> None:
    assert installed.run("version").split()[:2] == ["nodeproof", f"v{__version__}"]
    table = installed.run("collect", "-o", "table", "--component", "cpu", "--component", "memory")
    assert "core_num" in table
    assert "usage" in table
    health = json.loads(installed.run("health", "-o", "json"))
    assert 0 <= health["score"] <= 100
    assert "built-in defaults" in installed.run("config", "check")


def test_check_without_a_daemon_knows_nothing(installed: Installed) -> None:
    assert "no daemon" in installed.run("check", code=3).lower()


@pytest.fixture
def daemon(installed: Installed) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    port = free_port()
    config = installed.folder / "nodeproof.yaml"
    config.write_text(f"exporter: {{address: '127.0.0.1:{port}'}}\n", encoding="utf-8")
    command = [str(installed.venv / "bin" / "nodeproof"), "daemon", "-c", str(config)]
    child = subprocess.Popen(command, cwd=installed.folder, env=installed.environment, stderr=subprocess.DEVNULL)
    yield child, port
    if child.poll() is None:
        child.kill()
    child.wait()


def test_a_daemon_serves_and_ends(installed: Installed, daemon: "tuple[subprocess.Popen[bytes], int]") -> None:
    child, port = daemon

    def page() -> str:
        """The exposition once rates are in it."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                text = str(answer.read().decode())
        except OSError:
            return ""
        return text if "nodeproof_cpu_usage_ratio{" in text else ""

    body = until(page, "a page with rates", 20.0)
    assert "nodeproof_memory_" in body
    until((installed.folder / "state" / "nodeproof" / "snapshot" / "snapshot.json").is_file, "the node's snapshot")
    child.send_signal(signal.SIGTERM)
    assert child.wait(15) == 0
