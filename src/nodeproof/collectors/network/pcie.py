"""PCIe links of the network adapters: trained as wide and as fast as they could be, or not."""

from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import SlowRead
from nodeproof.collectors.network.links import interface_names, optional
from nodeproof.errors import Absence, NoData
from nodeproof.host.files import legible
from nodeproof.host.machine import Machine
from nodeproof.sources import sys_pci

__all__ = ["Pcie"]

_PERIOD_S = 60.0
_NAMES = ("pcie_link_width", "pcie_link_width_max", "pcie_link_speed", "pcie_link_speed_max")


class _Link(NamedTuple):
    """In the order of the metrics' names; None = not told."""

    width: int | None
    width_max: int | None
    speed_gt_s: float | None
    speed_max_gt_s: float | None


class Pcie:
    """Links of all adapters. The files ask the device itself, which a dead one never answers: a slow source."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._source = SlowRead(machine, "PCIe links of the network adapters", self._read, _render, interval_s=_PERIOD_S)

    def groups(self) -> tuple[Group, ...]:
        """The one group of this source."""
        return (Group(_NAMES, self._source.read),)

    def _read(self) -> dict[str, _Link]:
        links: dict[str, _Link] = {}
        for name in interface_names(self._files):
            folder = f"/sys/class/net/{name}/device"
            if self._files.exists(f"{folder}/current_link_width"):
                links[legible(name)] = _Link(
                    optional(self._files, f"{folder}/current_link_width", sys_pci.parse_link_width),
                    optional(self._files, f"{folder}/max_link_width", sys_pci.parse_link_width),
                    optional(self._files, f"{folder}/current_link_speed", sys_pci.parse_link_speed),
                    optional(self._files, f"{folder}/max_link_speed", sys_pci.parse_link_speed),
                )
        if not links:
            raise NoData(Absence.NOT_APPLICABLE, "no interface is a PCIe device with a link of its own")
        return links


def _render(cycle: Cycle, links: Mapping[str, _Link]) -> None:
    for name, link in links.items():
        labels = {"interface": name}
        for metric, value in zip(_NAMES, link, strict=True):
            if value is None:
                cycle.miss(metric, Absence.UNSUPPORTED, "the device has no link of its own (a virtual function)", labels)
            else:
                cycle.add(metric, value, labels)
