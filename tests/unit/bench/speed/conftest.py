"""What tests of the benchmarks of speed share."""

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no finding here: what the instrument says of its own lateness has tests of its own (test_stats)."""
    monkeypatch.setattr("nodeproof.bench.stats.report._LAG_S", 60.0)
    monkeypatch.setattr("nodeproof.bench.stats.report._CPU_SHARE", 60.0)
