"""What all tests share."""

import os
import signal
import sys
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


def pytest_configure(config: pytest.Config) -> None:
    """Let interrupts be interrupts: a shell's background job is born with them ignored, and so would be all that tests start."""
    if config.pluginmanager.hasplugin("dsession"):
        config.pluginmanager.register(_Leader())
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if seconds := os.environ.get("NODEPROOF_TEST_SWITCH_S"):  # make test-race: threads meet where they seldom do
        sys.setswitchinterval(float(seconds))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What this machine lacks, so that a check which did not run is seen."""
    if (record := os.environ.get("NODEPROOF_FAILED_TESTS")) and not _is_worker(terminalreporter.config):
        failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())]
        with Path(record).open("a", encoding="utf-8") as file:
            file.writelines(f"{test}\n" for test in dict.fromkeys(failed))
    if _ABSENT and not _is_worker(terminalreporter.config):
        terminalreporter.section("not checked here")
        for line in sorted(set(_ABSENT)):
            terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands on what it found lacking; only the process that leads the run prints."""
    if _is_worker(session.config):
        session.config.workeroutput["absent"] = _ABSENT  # type: ignore[attr-defined]  # xdist gives it to a worker's


class _Leader:
    """Of a run that is spread over workers."""

    def pytest_testnodedown(self, node: object) -> None:
        """Take what a worker found lacking; one that crashed has left nothing."""
        _ABSENT.extend(getattr(node, "workeroutput", {}).get("absent", ()))


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workeroutput")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenFile:
    """Compares with files in ``tests/fixtures/golden``."""
    folder = Path(__file__).parent / "fixtures" / "golden"
    return GoldenFile(folder, update=bool(request.config.getoption("--update-golden")))


@pytest.fixture
def absent_here() -> list[str]:
    """Lines added here are shown at the end of the run: a tool that this machine lacks, and what was not checked without it."""
    return _ABSENT
