"""A made-up host with GPUs and one collector of them."""

from collections.abc import Mapping
from pathlib import Path

from nodeproof.collectors.gpu import collector as gpu
from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, recorded_machine
from nodeproof.model.metric import Batch
from support.network import Everything

__all__ = ["GpuHost", "value"]


class GpuHost:
    """Files below a folder, recorded programs, a clock that a test moves."""

    def __init__(self, root: Path, answers: Mapping[str, bytes | CommandResult | CommandError] | None = None) -> None:
        self.root = str(root)
        self.clock = ManualClock()
        self.machine: Machine = recorded_machine(self.root, answers, clock=self.clock)
        self.collector = gpu.create(self.machine, Everything())

    @property
    def commands(self) -> RecordedCommands:
        """The recorded programs."""
        commands = self.machine.commands
        assert isinstance(commands, RecordedCommands)
        return commands

    def collect(self, after_s: float = 15.0) -> Batch:
        """A cycle ``after_s`` seconds later, and the slow sources' answers to it."""
        self.clock.advance(after_s)
        self.collector.collect()
        self.machine.settle(5.0)
        return self.collector.collect()


def value(batch: Batch, name: str, *labels: str) -> float:
    """The one reading of ``name`` with these label values."""
    found = [metric.value for metric in batch.metrics if metric.name == name and tuple((metric.labels or {}).values()) == labels]
    assert len(found) == 1, (name, labels, found)
    return found[0]
