"""``/proc/net/bonding/bond0``: lines of ``Key: value``, the bond's first, then each member's (drivers/net/bonding/bond_procfs.c).

::

    Bonding Mode: IEEE 802.3ad Dynamic link aggregation
    MII Status: up
    802.3ad info
            Aggregator ID: 2
    Slave Interface: ens1f0
    MII Status: up
    Link Failure Count: 3
    Aggregator ID: 2

Hardware addresses in the file are not taken.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = ["Bond", "BondMember", "parse"]


class BondMember(NamedTuple):
    """One interface in a bond."""

    name: str
    up: bool | None
    """The bond's own judgement of its link; None when the file does not tell."""
    link_failures: int | None
    """Times its link failed since it was enslaved."""
    aggregator_id: int | None
    """Group of links that it belongs to; only in mode 802.3ad."""


class Bond(NamedTuple):
    """One bond and its members."""

    mode: str
    """As the kernel words it: ``fault-tolerance (active-backup)``."""
    up: bool | None
    active_member: str
    """The one that carries the traffic, in modes that have one; empty otherwise."""
    aggregator_id: int | None
    """The group of links in use; only in mode 802.3ad."""
    members: tuple[BondMember, ...]

    def carries(self, member: BondMember) -> bool | None:
        """Whether ``member`` has a link and is in the group of links that the bond uses; None when that cannot be told."""
        if self.aggregator_id is not None and member.aggregator_id not in {None, self.aggregator_id}:
            return False
        return member.up


def parse(raw: bytes, /) -> Bond:
    """Read one bond's file. Raises ParseError when it has no ``Bonding Mode``."""
    sections: list[dict[str, str]] = [{}]
    for line in raw.decode("utf-8", "replace").split("\n"):
        key, colon, value = line.strip().partition(":")
        if not colon:
            continue
        if key == "Slave Interface":
            sections.append({})
        sections[-1].setdefault(key, value.strip())
    head, *members = sections
    mode = head.get("Bonding Mode")
    if mode is None:
        raise ParseError("/proc/net/bonding", 0, raw[:40].decode("utf-8", "replace"), "a line Bonding Mode")
    active = head.get("Currently Active Slave", "")
    return Bond(
        mode,
        _up(head),
        "" if active == "None" else active,
        _number(head, "Aggregator ID"),
        tuple(map(_member, members)),
    )


def _member(lines: dict[str, str]) -> BondMember:
    return BondMember(lines["Slave Interface"], _up(lines), _number(lines, "Link Failure Count"), _number(lines, "Aggregator ID"))


def _up(lines: dict[str, str]) -> bool | None:
    status = lines.get("MII Status")
    return None if status is None else status == "up"


def _number(lines: dict[str, str], key: str) -> int | None:
    return unsigned(lines.get(key, ""))
