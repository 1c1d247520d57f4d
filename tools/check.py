"""Run every check of the project in order, and report all failures.

The tests come last, so that the output of a good run ends with the test runner's summary; whatever fails makes the exit status 1,
and is named in the last line when that summary does not say it. ``--lint`` leaves the tests out.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
COVERAGE = "build/coverage.json"

LINT: tuple[tuple[str, list[str]], ...] = (
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("types", [str(BIN / "mypy")]),
    ("import contracts", [str(BIN / "lint-imports"), "--no-cache"]),
    ("sizes", [sys.executable, "tools/check_sizes.py"]),
    ("generated documents", [sys.executable, "tools/generate_docs.py", "--check"]),
    ("locked tools", [sys.executable, "tools/check_lock.py"]),
)
FAILED = "build/failed-tests.txt"
"""Filled by the tests' configuration: a line for each test that did not pass."""
MOST_SECOND_LOOKS = 25
ALONE = ("tests/budgets", "tests/browser")
"""What measures the machine's time, or paints against it: one test after the other. The rest share the processors."""
PYTEST = [sys.executable, "-m", "pytest", "--cov"]
TESTS_ALONE = [*PYTEST, "--cov-report=", *ALONE]
TESTS = [
    *PYTEST,
    "--cov-append",
    "--cov-report=term:skip-covered",
    f"--cov-report=json:{COVERAGE}",
    f"--numprocesses={max(2, len(os.sched_getaffinity(0)))}",
    "--dist=loadfile",
    "--no-loadscope-reorder",
    *(f"--ignore={folder}" for folder in ALONE),
]
ROOMS = [sys.executable, "tools/check_coverage.py", COVERAGE]


def holds(name: str, command: list[str]) -> bool:
    """Run one check under its name."""
    print(f"== {name}", flush=True)
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code < 0:
        print(f"1 failed: {name} was ended by {signal.Signals(-code).name}", flush=True)
    return code == 0


def second_look() -> bool:
    """Run a few failed tests once more, alone.

    Hundreds of tests kill, freeze and time real processes; a neighbour on the machine can make one of them late. What fails twice
    is wrong; what fails once is named here, so that it is seen.
    """
    record = ROOT / FAILED
    failed = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    if not 0 < len(failed) <= MOST_SECOND_LOOKS:
        return False
    print(f"== failed once, run again alone: {', '.join(failed)}", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", *failed], cwd=ROOT, check=False).returncode == 0


def main() -> int:
    """Run the checks; 0 when all hold."""
    failed = [name for name, command in LINT if not holds(name, command)]
    if failed:
        print(f"== not clean: {', '.join(failed)}", flush=True)
    if "--lint" in sys.argv[1:]:
        return 1 if failed else 0
    (ROOT / COVERAGE).unlink(missing_ok=True)
    (ROOT / FAILED).unlink(missing_ok=True)
    (ROOT / FAILED).parent.mkdir(exist_ok=True)
    os.environ["NODEPROOF_FAILED_TESTS"] = str(ROOT / FAILED)
    passed = [holds(name, command) for name, command in (("tests that want the machine", TESTS_ALONE), ("tests", TESTS))]
    if not all(passed) and not second_look():
        # What a failed run has not come to says nothing of coverage; the test runner's own last line stands.
        return 1
    # Silent when every room holds its limit, so that the test runner's summary stays the last line.
    if subprocess.run(ROOMS, cwd=ROOT, check=False).returncode != 0:
        failed.append("coverage")
    if failed:
        print(f"{len(failed)} failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
