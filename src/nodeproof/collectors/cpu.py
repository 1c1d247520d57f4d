"""Component cpu."""

from nodeproof.collectors import cpu_times
from nodeproof.collectors.base import Collector, Group, GroupCollector, Selection
from nodeproof.host.machine import Machine

__all__ = ["create"]


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    groups = (
        Group(cpu_times.STAT, cpu_times.Times(machine).read),
        Group(cpu_times.LOAD, cpu_times.Load(machine).read),
    )
    return GroupCollector("cpu", groups, machine, selection)
