"""What all tests share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from support.golden import GoldenFile

_ABSENT: list[str] = []

# How long one example takes is the machine's affair: a busy one must not fail a property. Hangs are caught by pytest's timeout.
settings.register_profile("nodeproof", deadline=None)
settings.load_profile("nodeproof")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing with them")


def pytest_configure() -> None:
    """Let interrupts be interrupts: a shell's background job is born with them ignored, and so would be all that tests start."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What this machine lacks, so that a check which did not run is seen."""
    if record := os.environ.get("NODEPROOF_FAILED_TESTS"):
        failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())]
        Path(record).write_text("\n".join(dict.fromkeys(failed)), encoding="utf-8")
    if _ABSENT:
        terminalreporter.section("not checked here")
        for line in sorted(set(_ABSENT)):
            terminalreporter.line(line)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenFile:
    """Compares with files in ``tests/fixtures/golden``."""
    folder = Path(__file__).parent / "fixtures" / "golden"
    return GoldenFile(folder, update=bool(request.config.getoption("--update-golden")))


@pytest.fixture
def absent_here() -> list[str]:
    """Lines added here are shown at the end of the run: a tool that this machine lacks, and what was not checked without it."""
    return _ABSENT
