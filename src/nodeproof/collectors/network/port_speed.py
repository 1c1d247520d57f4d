"""What the physical ports could do at best, against which the speed they have is judged."""

from collections.abc import Mapping

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import SlowRead, is_foreign_namespace, listing
from nodeproof.collectors.network.links import interface_names, is_physical
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.ethtool import link_settings
from nodeproof.host.files import legible
from nodeproof.host.machine import Machine
from nodeproof.sources import ethtool_link

__all__ = ["PortSpeed"]

_PERIOD_S = 60.0


class PortSpeed:
    """Greatest speed of each port. Its driver is asked, so this is a slow source."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._source = SlowRead(machine, "link modes of the network ports", self._read, _render, interval_s=_PERIOD_S)

    def groups(self) -> tuple[Group, ...]:
        """The one group of this source."""
        return (Group(("speed_max",), self._source.read),)

    def _read(self) -> dict[str, int | None]:
        if is_foreign_namespace(self._files):
            raise NoData(
                Absence.UNSUPPORTED,
                "the host's ports lie in another network namespace than this container",
                remedy="run the container with the host's network",
            )
        ports = {legible(name): self._speed(name) for name in interface_names(self._files) if is_physical(self._files, name)}
        if not ports:
            raise NoData(Absence.NOT_APPLICABLE, "there are no physical ports")
        return ports

    def _speed(self, name: str) -> int | None:
        try:
            return ethtool_link.parse(link_settings(self._files, name))
        except (NoData, ParseError):
            return None


def _render(cycle: Cycle, ports: Mapping[str, int | None]) -> None:
    for name, speed in ports.items():
        if speed is not None:
            cycle.add("speed_max", speed, {"interface": name})
    untold = [name for name, speed in ports.items() if speed is None]
    if untold:
        cycle.miss("speed_max", Absence.UNSUPPORTED, f"the driver lists no link modes known here: {listing(untold)}")
