"""A lock that lacks a tool, or holds a version or an address that it must not, is told of."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PROJECT = {
    "name": "nodeproof",
    "dependencies": ["PyYAML>=6.0.1"],
    "optional-dependencies": {"dev": ["pytest>=8.2", "nodeproof[stress]"], "stress": ["numpy>=2.0"], "web": ["starlette>=1"]},
}
LOCK = """numpy==2.3.0 \\
    --hash=sha256:aa
pytest==9.2.0 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
pyyaml==6.0.4 ; sys_platform != 'win32' \\
    --hash=sha256:dd
"""


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_lock", ROOT / "tools" / "check_lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_lock_that_is_current(check: ModuleType) -> None:
    assert check.problems(PROJECT, LOCK) == []
    assert [requirement.name for requirement in check.needed(PROJECT)] == ["numpy", "pytest", "PyYAML"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("pytest==9.2.0 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n", "", "pytest is not locked"),
        ("numpy==2.3.0", "numpy==1.26.4", "numpy is locked to 1.26.4, and pyproject.toml asks for >=2.0"),
        ("    --hash=sha256:aa\n", "", "numpy==2.3.0 has no hash"),
        ("numpy==2.3.0", "--index-url https://index.invalid/simple\nnumpy==2.3.0", "an address of a package index stands in it"),
    ],
)
def test_what_is_wrong_with_a_lock(check: ModuleType, old: str, new: str, problem: str) -> None:
    assert check.problems(PROJECT, LOCK.replace(old, new)) == [problem]
