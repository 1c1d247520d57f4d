"""DESIGN 5: data files of a day take at most 30 MB of an ordinary host's disk. What the largest host would take is told."""

from pathlib import Path

import pytest

from nodeproof.config.resolve import defaults
from nodeproof.daemon.assembly import assemble
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.sinks.base import finite
from nodeproof.sinks.jsonl import JsonLines
from support.data_size import on_disk_a_day
from support.hosts import write_host

LIMITS = {"vm-2cpu": 30_000_000, "bare-x86-256cpu": 80_000_000}
"""The second is beyond what one day may take: there the sink leaves full sets out, all day long."""
SECONDS = 130
FROM_S, TO_S = 65, 125
"""A minute without the beginning, which writes every constant."""


@pytest.mark.parametrize("host", LIMITS)
def test_bytes_a_day(host: str, tmp_path: Path) -> None:
    clock = ManualClock()
    machine = recorded_machine(write_host(host, str(tmp_path / "root")), clock=clock)
    entries = assemble(defaults({"HOME": "/nonexistent"}), machine)
    sink = JsonLines(str(tmp_path / "data"), clock)
    before: dict[str, int] = {}
    for second in range(SECONDS):
        for entry in entries:
            if second % max(1, round(entry.interval_s)) == 0:
                sink.write(finite(entry.collector.collect()))
        clock.advance(1.0)
        if second == FROM_S:
            before = _sizes(tmp_path / "data")
        elif second == TO_S:
            break
    sink.close()
    lines = {path: path.read_bytes()[before[path.name] :] for path in (tmp_path / "data").glob("*.jsonl") if path.name in before}
    a_day = sum(on_disk_a_day(text, (TO_S - FROM_S) / 60) for text in lines.values() if text)
    assert 1_000_000 < a_day <= LIMITS[host], f"{a_day / 1e6:.1f} MB a day"


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.jsonl")}
