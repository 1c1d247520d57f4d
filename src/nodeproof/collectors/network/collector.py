"""Component network: traffic and errors of interfaces, links, bonds, sockets, the network stack, InfiniBand and RoCE ports."""

from nodeproof.collectors.base import Collector, GroupCollector, Selection
from nodeproof.collectors.network.bonds import Bonds
from nodeproof.collectors.network.flaps import Flaps
from nodeproof.collectors.network.identity import identity
from nodeproof.collectors.network.links import Links
from nodeproof.collectors.network.pcie import Pcie
from nodeproof.collectors.network.port_speed import PortSpeed
from nodeproof.collectors.network.rdma import Rdma
from nodeproof.collectors.network.sockets import Sockets
from nodeproof.collectors.network.stack import Stack
from nodeproof.collectors.network.tables import Tables
from nodeproof.collectors.network.traffic import Traffic
from nodeproof.host.machine import Machine

__all__ = ["create", "identity"]


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    links = Links(machine)
    parts = (
        Traffic(machine),
        links,
        Flaps(machine, links.states),
        Bonds(machine),
        PortSpeed(machine),
        Pcie(machine),
        Sockets(machine),
        Stack(machine),
        Tables(machine),
        Rdma(machine),
    )
    groups = tuple(group for part in parts for group in part.groups())
    return GroupCollector("network", groups, machine, selection)
