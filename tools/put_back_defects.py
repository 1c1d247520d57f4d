"""Put known defects back, one at a time, and see whether the tests notice.

``tools/defects.toml`` lists them: what a change does, in which file which text becomes which, and the tests that must fail then.
Each is applied to a copy of the tree in a temporary folder, never here; there the named tests run, first unchanged, then with the
defect.

Use: put_back_defects.py [NAME ...]      only those whose name begins with one of these: "defect 6", "case 41"
     put_back_defects.py --record        and write the outcome into docs/verification.md
"""

import concurrent.futures
import datetime as dt
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "defects.toml"
PAGE = ROOT / "docs" / "verification.md"
BEGIN, END = "<!-- put back: begin -->\n", "<!-- put back: end -->\n"
_COPIED = ("src", "tests", "pyproject.toml", "tools", "docs", "README.md", "CHANGELOG.md")
_SKIPPED = shutil.ignore_patterns("__pycache__", ".hypothesis", ".*_cache")
_FAILED = 1
"""What pytest ends with when tests ran and some failed; other codes mean that they did not run."""
_AT_ONCE = 2


class Mutation(NamedTuple):
    """One way to put a defect back."""

    of: str
    """``defect 6`` of the reference's list, or ``case 41`` of the field's reports."""
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutations() -> list[Mutation]:
    """All that are listed."""
    listed = tomllib.loads(LIST.read_text("utf-8"))["mutation"]
    return [Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in listed]


class Outcome(NamedTuple):
    """What became of one mutation."""

    mutation: Mutation
    failed: str
    """The first test that failed, as it must; empty when the change was not noticed."""
    problem: str
    """What happened instead."""


def run_tests(tree: Path, tests: Sequence[str]) -> tuple[int, str, str]:
    """Run ``tests`` in a copy of the tree; exit code, the first test that failed, and the last line printed."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "-rf", *tests]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=300, check=False)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"]
    failed = next((line.removeprefix("FAILED ").partition(" - ")[0] for line in lines if line.startswith("FAILED ")), "")
    failed = failed.partition("[")[0]
    return done.returncode, failed, lines[-1]


def put_back(tree: Path, mutation: Mutation) -> Outcome:
    """Run a mutation's tests in the copy ``tree``."""
    path = tree / mutation.file
    text = path.read_text("utf-8")
    found = text.count(mutation.old)
    if found != 1:
        return Outcome(mutation, "", f"the text to replace is found {found} times in {mutation.file}")
    path.write_text(text.replace(mutation.old, mutation.new), "utf-8")
    try:
        code, failed, last = run_tests(tree, mutation.tests)
    finally:
        path.write_text(text, "utf-8")
    if code == _FAILED and failed:
        return Outcome(mutation, failed, "")
    problem = f"tests passed all the same: {last}" if code == 0 else f"tests did not run (exit {code}): {last}"
    return Outcome(mutation, "", problem)


def copy_tree(folder: str) -> Path:
    """A copy of what tests need."""
    tree = Path(folder) / "tree"
    tree.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, symlinks=True, ignore=_SKIPPED)
        else:
            shutil.copy2(source, tree / name)
    return tree


def work(share: Sequence[Mutation]) -> list[Outcome]:
    """Put back a share of the list, one after the other, in one copy."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="nodeproof-defects-") as folder:
        tree = copy_tree(folder)
        code, failed, last = run_tests(tree, sorted({test for mutation in share for test in mutation.tests}))
        if code != 0:
            return [Outcome(mutation, "", f"tests fail without any change: {failed or last}") for mutation in share]
        for mutation in share:
            outcomes.append(put_back(tree, mutation))
            print(f"{'noticed ' if outcomes[-1].failed else 'NOT SEEN'}  {mutation.of}: {mutation.what}", flush=True)
    return outcomes


def record(outcomes: Sequence[Outcome]) -> None:
    """Write the outcome into the page."""
    noticed = sum(bool(outcome.failed) for outcome in outcomes)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    rows = [f"On {today}, {noticed} of {len(outcomes)} changes made a test named for them fail.\n\n"]
    rows.append("| of | what was put back | in | the test that failed first |\n| --- | --- | --- | --- |\n")
    for mutation, failed, problem in outcomes:
        test = f"`{failed.removeprefix('tests/')}`" if failed else problem
        cells = (mutation.of, mutation.what, f"`{mutation.file.removeprefix('src/nodeproof/')}`", test)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    page = PAGE.read_text("utf-8")
    head, tail = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(head + BEGIN + "".join(rows) + END + tail, "utf-8")


def main(arguments: Sequence[str]) -> int:
    """Put back what is asked for; 0 when each was noticed."""
    names = [argument for argument in arguments if not argument.startswith("--")]
    chosen = [one for one in mutations() if not names or any(f"{one.of} ".startswith(f"{name} ") for name in names)]
    if not chosen:
        print(f"nothing of that name in {LIST}")
        return 2
    with concurrent.futures.ProcessPoolExecutor(_AT_ONCE) as pool:
        shares = [chosen[start::_AT_ONCE] for start in range(min(_AT_ONCE, len(chosen)))]
        found = {outcome.mutation: outcome for outcomes in pool.map(work, shares) for outcome in outcomes}
    outcomes = [found[mutation] for mutation in chosen]
    for outcome in outcomes:
        if outcome.problem:
            print(f"{outcome.mutation.of}: {outcome.mutation.what}: {outcome.problem}")
    noticed = sum(bool(outcome.failed) for outcome in outcomes)
    print(f"{noticed} of {len(outcomes)} noticed")
    if "--record" in arguments:
        record(outcomes)
    return 0 if noticed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
