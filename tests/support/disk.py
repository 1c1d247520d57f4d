"""Helpers of the tests of component disk: a made-up host, its collector, and a way to look readings up."""

from collections.abc import Mapping

from nodeproof.collectors.base import Collector
from nodeproof.collectors.disk.collector import create
from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, recorded_machine
from nodeproof.model.metric import Batch, Missing
from support.bmc import EVERYTHING
from support.hosts_disk import write_disks, write_sick_storage, write_vm_disk

__all__ = ["DiskHost", "absences", "label_values", "smartctl_line", "value"]


def smartctl_line(device: str) -> str:
    """The command line that asks for ``device``."""
    return f"smartctl --json=c -n standby -x /dev/{device}"


_WRITERS = {"bare-x86-256cpu": write_disks, "storage-sick": write_sick_storage, "vm-2cpu": write_vm_disk}


class DiskHost:
    """The disk part of a made-up host, and its disk collector on a clock that the test moves."""

    def __init__(
        self, root: str, name: str = "", answers: Mapping[str, bytes | CommandResult | CommandError] | None = None
    ) -> None:
        self.root = root
        if name:
            _WRITERS[name](root)
        self.clock = ManualClock()
        self.machine: Machine = recorded_machine(self.root, answers, self.clock)
        self.collector: Collector = create(self.machine, EVERYTHING)

    @property
    def asked(self) -> list[str]:
        """Command lines run so far."""
        commands = self.machine.commands
        assert isinstance(commands, RecordedCommands)
        return commands.asked

    def cycle(self, pause_s: float = 5.0) -> Batch:
        """One cycle, ``pause_s`` after the last; slow sources that it started have answered before the next."""
        self.clock.advance(pause_s)
        batch = self.collector.collect()
        self.machine.settle(10.0)
        return batch


def value(batch: Batch, name: str, **labels: str) -> float:
    """The one reading of ``name`` whose labels hold ``labels``."""
    found = [m.value for m in batch.metrics if m.name == name and labels.items() <= (m.labels or {}).items()]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def absences(batch: Batch, name: str) -> list[Missing]:
    """Absences of one metric."""
    return [entry for entry in batch.missing if entry.name == name]


def label_values(batch: Batch, name: str, key: str) -> set[str]:
    """Every value of label ``key`` that readings of ``name`` have."""
    return {(metric.labels or {})[key] for metric in batch.metrics if metric.name == name}
