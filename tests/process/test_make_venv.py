"""``tools/make_venv.sh`` on machines whose Python is less than whole: a stand-in for the interpreter lacks what they lack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "make_venv.sh"
pytestmark = pytest.mark.timeout(120)

_PYTHON = """#!/bin/sh
# Stands for a Python: {lacks}
case "$*" in
*"-m venv --without-pip"*) ;;
"-m venv"*) [ -e "{folder}/ensurepip" ] || exit 1 ;;
"-m pip --version") [ -e "{folder}/pip" ] || exit 1 ;;
"-m pip --python"*) echo "$*" >> "{folder}/pip.log"; exit 0 ;;
esac
exec "{real}" "$@"
"""


class Box:
    """A folder with a Python, and programs beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.venv = folder / "venv"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.program("python-here", _PYTHON.format(lacks="what is not in its folder", folder=folder, real=sys.executable))

    def has(self, *parts: str) -> None:
        for part in parts:
            (self.folder / part).touch()

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def make(self, python: str = "python-here") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["/bin/sh", str(SCRIPT), str(self.venv)],
            env={"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder), "PYTHON": python},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_a_whole_python(box: Box) -> None:
    box.has("ensurepip")
    done = box.make()
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(box.venv / "bin" / "pip", os.X_OK)
    (box.bin / "python-here").unlink()
    assert box.make().returncode == 0  # what is there already is left alone


def test_without_ensurepip_the_pip_of_the_system_fills_the_environment(box: Box) -> None:
    box.has("pip")
    done = box.make()
    assert (done.returncode, done.stderr) == (0, "")
    asked = (box.folder / "pip.log").read_text().split()
    assert asked[:4] == ["-m", "pip", "--python", str(box.venv / "bin" / "python")]
    assert asked[-1] == "pip"


def test_root_has_the_missing_package_installed(box: Box) -> None:
    box.program("id", "#!/bin/sh\necho 0\n")
    box.program(
        "apt-get", f'#!/bin/sh\necho "$*" >> {box.folder}/apt.log\n[ "$2" = install ] && touch {box.folder}/ensurepip\nexit 0\n'
    )
    done = box.make()
    assert done.returncode == 0, done.stderr
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert (box.folder / "apt.log").read_text().splitlines() == ["-qq update", f"-qq install -y python{version}-venv"]
    assert os.access(box.venv / "bin" / "pip", os.X_OK)


@pytest.mark.parametrize("user", ["0", "1000"])
def test_what_cannot_be_had_is_named_and_nothing_is_left(box: Box, user: str) -> None:
    box.program("id", f"#!/bin/sh\necho {user}\n")
    box.program("apt-get", "#!/bin/sh\nexit 0\n")
    done = box.make()
    assert done.returncode == 1
    assert "python-here cannot make a virtual environment with pip here" in done.stderr
    assert "-venv), or name another interpreter: PYTHON=" in done.stderr
    assert not box.venv.exists()


def test_a_named_python_that_will_not_do_is_an_error(box: Box) -> None:
    done = box.make("python-elsewhere")
    assert (done.returncode, done.stderr) == (1, "PYTHON=python-elsewhere: not there, or older than 3.11\n")
    box.program("old", "#!/bin/sh\nexit 1\n")
    assert box.make("old").stderr == "PYTHON=old: not there, or older than 3.11\n"
    assert not box.venv.exists()
