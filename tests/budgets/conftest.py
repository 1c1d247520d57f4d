"""Budgets are those of the program itself, not of the program under a coverage tracer."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture(scope="session")
def in_memory() -> str | None:
    """Where thousands of small files are made quickly; None = the usual place for temporary files."""
    shared = Path("/dev/shm")  # noqa: S108 - only the parent of a folder of our own
    return str(shared) if shared.is_dir() else None
