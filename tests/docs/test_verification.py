"""``docs/verification.md`` and the list of defects that are put back say the same, and what they name exists."""

import re
from pathlib import Path

import pytest

from put_back_defects import BEGIN, END, Mutation, mutations

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "verification.md").read_text("utf-8")
DEFECTS = range(1, 34)
"""Numbers of the reference's list of defects."""
OF_HOSTS = frozenset({*range(1, 23), *range(25, 33)})
"""Those that concern the observation of hosts, NPUs and GPUs, and faults."""
CASES = (1, 3, 5, 7, 10, 12, 16, 18, 20, 21, 23, 25, 28, 30, 32, 34, 36, 38, 41, 43, 45, 48, 51, 53, 56, 58, 60, 61)


def _rows(heading: str) -> dict[int, list[str]]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = [re.split(r" *(?<!\\)\| *", line.strip("| \n")) for line in section.splitlines() if re.match(r"\| \d+ \|", line)]
    return {int(row[0]): row for row in cells}


@pytest.mark.parametrize("mutation", mutations(), ids=lambda one: f"{one.of}: {one.what}")
def test_what_is_put_back_still_has_its_place_and_its_tests(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text("utf-8").count(mutation.old) == 1
    assert mutation.old != mutation.new
    assert mutation.tests
    for test in mutation.tests:
        assert _exists(test), test


def test_every_defect_of_the_reference_has_a_row() -> None:
    rows = _rows("Defects of the reference")
    assert set(rows) == set(DEFECTS)
    put_back = [int(one.of.removeprefix("defect ")) for one in mutations() if one.of.startswith("defect ")]
    for number, row in rows.items():
        if number in OF_HOSTS:
            assert int(row[3]) == put_back.count(number) > 0, row
            assert all(_exists(f"tests/{test}") for test in re.findall("`([^`]+)`", row[2])), row
        else:
            named = re.findall("`([^`]+)`", row[2])
            assert named, row
            assert all(_exists(f"tests/{test}") for test in named), row
            assert number not in put_back


def test_every_case_of_a_host_source_has_a_row() -> None:
    rows = _rows("Cases from the field")
    put_back = [int(one.of.removeprefix("case ")) for one in mutations() if one.of.startswith("case ")]
    assert tuple(rows) == CASES
    for number, row in rows.items():
        assert int(row[3]) == put_back.count(number) > 0, row
        assert all(_exists(f"tests/{test}") for test in re.findall("`([^`]+)`", row[2])), row


def test_the_record_is_of_the_whole_list_and_nothing_went_unnoticed() -> None:
    record = PAGE.partition(BEGIN)[2].partition(END)[0]
    listed = mutations()
    told = re.search(r"On (\d{4}-\d\d-\d\d), (\d+) of (\d+) changes made a test named for them fail\.", record)
    assert told is not None
    assert int(told[2]) == int(told[3]) == len(listed)
    for mutation in listed:
        what = mutation.what.replace("|", "\\|")
        assert f"| {mutation.of} | {what} |" in record, "run tools/put_back_defects.py --record"


def _exists(test: str) -> bool:
    """Whether a test file, class or function of that name stands there."""
    path, *names = test.partition("[")[0].split("::")
    source = ROOT / path
    if source.is_dir():
        return True
    if not source.is_file():
        return False
    text = source.read_text("utf-8")
    return all(re.search(rf"^ *(?:class|def) {name}\b", text, re.MULTILINE) for name in names)
