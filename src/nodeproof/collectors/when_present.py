"""A collector whose code is loaded when its devices are there: most nodes have none, and need not carry what reads them."""

from collections.abc import Callable

import msgspec

from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Batch

__all__ = ["Devices", "WhenPresent"]

_LOOK_S = 60.0


class Devices(msgspec.Struct, frozen=True):
    """What there is to look for, and what reads it."""

    component: str
    present: Callable[[Machine], bool]
    """Whether anything here hints at one. Raises NoData when it cannot be told."""
    make: Callable[[Machine, Selection], Collector]
    """Loads the collector itself."""
    nothing: str
    """Said while there is none."""


class WhenPresent:
    """Says that there are none until there are; then it is the collector of them, for good."""

    def __init__(self, devices: Devices, machine: Machine, selection: Selection) -> None:
        self._devices = devices
        self._machine = machine
        self._selection = selection
        look = Group(("device_count",), self._look, _LOOK_S)
        self._empty = GroupCollector(devices.component, (look,), machine, selection)
        self._real: Collector | None = None
        self._cycles = 0
        self.name = self.component = devices.component
        self.default_interval_s = self._empty.default_interval_s

    def collect(self) -> Batch:
        """One cycle."""
        self._cycles += 1
        if self._real is None:
            batch = self._empty.collect()
            if self._real is None:
                return batch
        batch = self._real.collect()
        return batch if batch.sequence == self._cycles else msgspec.structs.replace(batch, sequence=self._cycles)

    def forget(self) -> None:
        """Run every group at the next cycle, however recently it ran."""
        (self._real or self._empty).forget()

    def _look(self, cycle: Cycle) -> None:
        """Raises NoData."""
        if self._devices.present(self._machine):
            self._real = self._devices.make(self._machine, self._selection)
        else:
            cycle.miss("device_count", Absence.NOT_APPLICABLE, self._devices.nothing)
