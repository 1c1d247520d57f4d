"""Bonds and their members: ``/proc/net/bonding``."""

from collections.abc import Mapping

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import SlowRead, net_root
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.files import legible
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_net_bonding
from nodeproof.sources.proc_net_bonding import Bond

__all__ = ["Bonds"]

_NAMES = ("bond_status", "bond_members", "bond_members_up", "bond_member_status", "bond_link_failures")


class Bonds:
    """All bonds of the host."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._folder = f"{net_root(machine.files)}/bonding"
        self._source = SlowRead(machine, self._folder, self._read, _render)

    def groups(self) -> tuple[Group, ...]:
        """The one group of this source."""
        return (Group(_NAMES, self._source.read),)

    def _read(self) -> dict[str, Bond | NoData]:
        try:
            names = self._files.names(self._folder)
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            names = []
        if not names:
            raise NoData(Absence.NOT_APPLICABLE, "no bond is set up")
        return {legible(name): self._bond(name) for name in names}

    def _bond(self, name: str) -> Bond | NoData:
        try:
            return proc_net_bonding.parse(self._files.read(f"{self._folder}/{name}"))
        except NoData as absence:
            return absence.again()
        except ParseError as error:
            return NoData(Absence.READ_ERROR, str(error))


def _render(cycle: Cycle, bonds: Mapping[str, Bond | NoData]) -> None:
    for name, bond in bonds.items():
        if isinstance(bond, NoData):
            cycle.miss_all(_NAMES, bond, {"interface": name})
        else:
            _render_bond(cycle, name, bond)


def _render_bond(cycle: Cycle, name: str, bond: Bond) -> None:
    labels = {"interface": name}
    if bond.up is None:
        cycle.miss("bond_status", Absence.UNKNOWN, "the bond does not tell its MII status", labels)
    else:
        cycle.add("bond_status", float(bond.up), {"interface": name, "mode": bond.mode})
    cycle.add("bond_members", len(bond.members), labels)
    carrying = [bond.carries(member) for member in bond.members]
    if None in carrying:
        cycle.miss("bond_members_up", Absence.UNKNOWN, "a member does not tell its MII status", labels)
    else:
        cycle.add("bond_members_up", sum(map(bool, carrying)), labels)
    for member, carries in zip(bond.members, carrying, strict=True):
        member_labels = {"interface": name, "member": member.name}
        if carries is None:
            cycle.miss("bond_member_status", Absence.UNKNOWN, "the member does not tell its MII status", member_labels)
        else:
            cycle.add("bond_member_status", float(carries), member_labels)
        if member.link_failures is None:
            cycle.miss("bond_link_failures", Absence.UNSUPPORTED, "not told by this kernel", member_labels)
        else:
            cycle.add("bond_link_failures", member.link_failures, member_labels)
