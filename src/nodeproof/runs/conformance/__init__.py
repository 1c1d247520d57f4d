"""Holds any benchmark to the contract of the executor, by running it through every road that a run can take (bench.md 8.1).

For a test suite::

    import pytest
    from nodeproof.runs.conformance import CASES, Case, Subject

    SUBJECT = Subject(my_package.DESCRIPTOR, overrides={"seconds": "1"})

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_contract(case: Case) -> None:
        case.check(SUBJECT)

:func:`failures` does the same without pytest. A case that does not hold raises :class:`ConformanceError`, whose text says what
was expected and what was seen. Each run uses a temporary directory, and the box is not looked at.
"""

from nodeproof.runs.conformance.ends import END_CASES
from nodeproof.runs.conformance.roads import ROAD_CASES
from nodeproof.runs.conformance.static import STATIC_CASES
from nodeproof.runs.conformance.subject import Case, ConformanceError, Subject

__all__ = ["CASES", "Case", "ConformanceError", "Subject", "failures"]

CASES: tuple[Case, ...] = (*STATIC_CASES, *ROAD_CASES, *END_CASES)
"""Every case, by a name that does not change."""


def failures(subject: Subject) -> dict[str, str]:
    """What does not hold, by the name of the case; empty when the benchmark keeps the contract."""
    found = {}
    for case in CASES:
        try:
            case.check(subject)
        except ConformanceError as error:
            found[case.name] = str(error)
    return found
