"""What the tests of component network share: a collector over a folder, readings by name, and files that can be rewritten."""

import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from nodeproof.collectors.network import collector as network
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.metric import Batch, Missing
from support import tree

__all__ = ["DEV_HEADER", "Everything", "Host", "dev_line", "link_settings_answer", "missing_of", "readings"]

DEV_HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)


class Everything:
    """Somebody who wants all metrics."""

    def wants(self, component: str, name: str) -> bool:
        """Always."""
        return bool(component and name)


class Host:
    """A made-up host with a clock, and one collector of it."""

    def __init__(self, root: Path, clock: ManualClock | None = None) -> None:
        self.root = str(root)
        self.clock = clock or ManualClock()
        self.machine = recorded_machine(self.root, clock=self.clock)
        self.collector = network.create(self.machine, Everything())

    def write(self, files: Mapping[str, str | bytes | float]) -> None:
        """Write files, by their path on the host."""
        for path, content in files.items():
            tree.write(self.root, path, content)

    def collect(self, after_s: float = 0.0) -> Batch:
        """A cycle ``after_s`` seconds later, and the slow sources' answers to it."""
        self.clock.advance(after_s)
        self.collector.collect()
        self.machine.settle(5.0)
        return self.collector.collect()

    def cycle(self, after_s: float) -> Batch:
        """One cycle ``after_s`` seconds later, whatever the slow sources have by then."""
        self.clock.advance(after_s)
        return self.collector.collect()


def dev_line(name: str, *numbers: int) -> str:
    """A line of ``/proc/net/dev``: rx bytes, packets, errs, drop, tx bytes, packets, errs, drop; the rest is 0."""
    rx, tx = [*numbers[:4], *[0] * 4][:4], [*numbers[4:], *[0] * 4][:4]
    return f"{name}: {' '.join(map(str, rx))} 0 0 0 0 {' '.join(map(str, tx))} 0 0 0 0\n"


def link_settings_answer(*bits: int) -> bytes:
    """An answer to ``ETHTOOL_GLINKSETTINGS`` with maps of four words, in which ``bits`` are supported."""
    head = struct.pack("=IIBBBBBBBb32x", 0x4C, 100_000, 1, 3, 0, 1, 0, 0, 0, 4)
    return head + sum(1 << bit for bit in bits).to_bytes(16, sys.byteorder) + bytes(32)


def readings(batch: Batch, name: str) -> dict[tuple[str, ...], float]:
    """Values of metric ``name`` by the values of its labels."""
    return {tuple((metric.labels or {}).values()): metric.value for metric in batch.metrics if metric.name == name}


def missing_of(batch: Batch, name: str) -> list[Missing]:
    """Absences of metric ``name``."""
    return [entry for entry in batch.missing if entry.name == name]
