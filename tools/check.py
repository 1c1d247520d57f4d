"""Run every check of the project in order, and report all failures before the last line.

The tests come last, so that the output ends with the test runner's summary. ``--lint`` leaves them out.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

LINT: tuple[tuple[str, list[str]], ...] = (
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("types", [str(BIN / "mypy")]),
    ("import contracts", [str(BIN / "lint-imports"), "--no-cache"]),
    ("sizes", [sys.executable, "tools/check_sizes.py"]),
    ("generated documents", [sys.executable, "tools/generate_docs.py", "--check"]),
)
TESTS = ("tests", [sys.executable, "-m", "pytest", "--cov", "--cov-report=term:skip-covered"])


def main() -> int:
    """Run the checks; 0 when all hold."""
    failed = []
    for name, command in (*LINT, *(() if "--lint" in sys.argv[1:] else (TESTS,))):
        print(f"== {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
        if failed and name == LINT[-1][0]:
            print(f"== not clean: {', '.join(failed)}", flush=True)
    if failed and failed[-1] != TESTS[0]:
        print(f"1 failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
