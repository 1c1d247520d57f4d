"""A host of 256 processors must be able to write its snapshot every second: encoding and writing under 3 ms of CPU."""

import time
from pathlib import Path

from nodeproof.host.recorded import ManualClock
from nodeproof.sinks.base import StaleAfter, finite
from nodeproof.sinks.snapshot import ComponentSnapshots
from support.batches import batch, metric

LIMIT_S = 0.003
ROUNDS = 40


def test_3400_readings_with_history_and_constants(tmp_path: Path) -> None:
    clock = ManualClock()
    sink = ComponentSnapshots(str(tmp_path), clock, StaleAfter({"cpu": 1.0}))
    labels = [{"core": "total"}, *({"core": str(core)} for core in range(256))]
    constants = [metric(f"{level}_cache_size", 32.0, label, unit="KB") for level in ("l1d", "l1i", "l2") for label in labels]
    best = float("inf")
    for number in range(ROUNDS):
        changing = [metric(name, number + 0.5, label) for label in labels for name in ("usage", *"abcdefghi")]
        one = batch([*changing, *constants], at=clock.now(), sequence=number)
        began = time.process_time()
        sink.write(finite(one))
        best = min(best, time.process_time() - began)
        clock.advance(1.0)
    assert len(one.metrics) == 3341
    assert (tmp_path / "snapshot_cpu.json").stat().st_size > 300_000
    assert best < LIMIT_S, best
