"""State of the links: ``/sys/class/net``.

Two slow sources, because they fail apart: state and counters of a link need no lock, while speed, duplex and carrier wait for the
lock of the whole network configuration, which one wedged adapter can hold for ever.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import SlowRead, listing
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.background import Answer
from nodeproof.host.files import FileTree, legible
from nodeproof.host.machine import Machine
from nodeproof.sources import sys_class_net

__all__ = ["LinkState", "Links", "interface_names", "is_physical", "optional"]

_T = TypeVar("_T")

_ROOT = "/sys/class/net"


class LinkState(NamedTuple):
    """What the kernel knows of a link without asking its driver; None = the file could not be read."""

    operstate: str
    """RFC 2863: ``up``, ``down``, ``lowerlayerdown``, ``dormant``, ``unknown`` ..."""
    admin_up: bool | None
    physical: bool
    """There is a device behind it: no bridge, bond, VLAN or tunnel."""
    mtu: int | None
    carrier_changes: int | None
    carrier_ups: int | None
    """Linux 4.16 and newer."""
    carrier_downs: int | None


class _Settings(NamedTuple):
    """What the driver says."""

    speed_mbps: int | None
    duplex: str
    carrier: bool | None


class Links:
    """Both sources and their groups. The groups are asked each cycle; the files are read every ten seconds."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._state = SlowRead(machine, f"{_ROOT} (state)", self._read_states, _render_states)
        self._settings = SlowRead(machine, f"{_ROOT} (speed)", self._read_settings, _render_settings)
        self._status: tuple[object, object, Cycle] | None = None

    def groups(self) -> tuple[Group, ...]:
        """The groups of these sources."""
        return (
            Group(("interface_admin_up", "mtu", "carrier_changes"), self._state.read),
            Group(("interface_status", "link_lost"), self._read_status),
            Group(("speed", "duplex"), self._settings.read),
        )

    def states(self) -> dict[str, LinkState]:
        """State by interface, at most ten seconds old. Raises NoData."""
        return self._state.latest().value

    def _read_status(self, cycle: Cycle) -> None:
        """Only interfaces that keep no state need their carrier: a wedged driver costs nobody else its status."""
        answer = self._state.latest()
        settings: Answer[dict[str, _Settings]] | NoData
        try:
            settings = self._settings.latest()
        except NoData as absence:
            settings = absence.again()
        if self._status is None or self._status[0] is not answer or not _alike(self._status[1], settings):
            made = cycle.as_of(answer.at)
            _render_status(made, answer.value, settings)
            self._status = answer, settings, made
        cycle.take(self._status[2])

    def _read_states(self) -> dict[str, LinkState]:
        states: dict[str, LinkState] = {}
        for name in interface_names(self._files):
            folder = f"{_ROOT}/{name}"
            operstate = optional(self._files, f"{folder}/operstate", sys_class_net.parse_word)
            if not operstate:
                continue  # it has just gone
            count = sys_class_net.parse_count
            states[legible(name)] = LinkState(
                operstate,
                optional(self._files, f"{folder}/flags", sys_class_net.parse_flags),
                is_physical(self._files, name),
                optional(self._files, f"{folder}/mtu", count),
                optional(self._files, f"{folder}/carrier_changes", count),
                optional(self._files, f"{folder}/carrier_up_count", count),
                optional(self._files, f"{folder}/carrier_down_count", count),
            )
        return states

    def _read_settings(self) -> dict[str, _Settings]:
        settings: dict[str, _Settings] = {}
        for name in interface_names(self._files):
            folder = f"{_ROOT}/{name}"
            settings[legible(name)] = _Settings(
                optional(self._files, f"{folder}/speed", sys_class_net.parse_speed),
                optional(self._files, f"{folder}/duplex", sys_class_net.parse_word) or "",
                optional(self._files, f"{folder}/carrier", sys_class_net.parse_flag),
            )
        return settings


def _alike(one: object, other: object) -> bool:
    """Whether both are the same answer, or absences for the same reason."""
    if isinstance(one, NoData) and isinstance(other, NoData):
        return (one.state, one.reason, one.remedy) == (other.state, other.reason, other.remedy)
    return one is other


def interface_names(files: FileTree) -> list[str]:
    """Interfaces that are looked at, sorted, as their folders are named. Raises NoData for none, or no way to list them."""
    names = [name for name in files.names(_ROOT) if name != "bonding_masters" and not sys_class_net.is_virtual(name)]
    if not names:
        raise NoData(Absence.NOT_APPLICABLE, "there are no interfaces but loopback and virtual ones")
    return names


def is_physical(files: FileTree, name: str) -> bool:
    """Whether there is a device behind interface ``name``."""
    return files.exists(f"{_ROOT}/{name}/device")


def optional(files: FileTree, path: str, parse: Callable[[bytes], _T]) -> _T | None:
    """Content of ``path``; None when it cannot be read or makes no sense: drivers answer EINVAL for what they do not know."""
    try:
        return parse(files.read(path))
    except (NoData, ParseError):
        return None


def _render_states(cycle: Cycle, states: Mapping[str, LinkState]) -> None:
    without: list[str] = []
    for name, link in states.items():
        labels = {"interface": name}
        if link.admin_up is not None:
            cycle.add("interface_admin_up", float(link.admin_up), labels)
        if link.mtu is not None:
            cycle.add("mtu", link.mtu, labels)
        if link.carrier_changes is not None:
            cycle.add("carrier_changes", link.carrier_changes, labels)
        if None in {link.admin_up, link.mtu, link.carrier_changes}:
            without.append(name)
    if without:
        for metric in ("interface_admin_up", "mtu", "carrier_changes"):
            cycle.miss(metric, Absence.UNSUPPORTED, f"not told for {listing(without)}")


def _render_status(cycle: Cycle, states: Mapping[str, LinkState], settings: Answer[dict[str, _Settings]] | NoData) -> None:
    untold: list[str] = []
    uncounted: list[str] = []
    for name, link in states.items():
        known = None if isinstance(settings, NoData) else settings.value.get(name)
        up = sys_class_net.is_up(link.operstate, admin_up=link.admin_up, carrier=known.carrier if known else None)
        if up is None:
            untold.append(name)
            continue
        cycle.add("interface_status", float(up), {"interface": name, "status": link.operstate})
        if not link.physical:
            continue
        if link.carrier_ups is None or link.admin_up is None:
            uncounted.append(name)
        else:
            cycle.add("link_lost", float(link.admin_up and not up and link.carrier_ups > 0), {"interface": name})
    if untold:
        state, reason = Absence.UNSUPPORTED, "the driver keeps neither a state nor a carrier"
        if isinstance(settings, NoData):
            state, reason = settings.state, settings.reason
        cycle.miss("interface_status", state, f"{reason}: {listing(untold)}")
    if uncounted:
        reason = "the kernel does not count how often a link came (before Linux 4.16)"
        cycle.miss("link_lost", Absence.UNSUPPORTED, f"{reason}: {listing(uncounted)}")


def _render_settings(cycle: Cycle, settings: Mapping[str, _Settings]) -> None:
    untold: dict[str, list[str]] = {"speed": [], "duplex": []}
    unlinked: dict[str, list[str]] = {"speed": [], "duplex": []}
    for name, link in settings.items():
        without = untold if link.carrier else unlinked
        if link.speed_mbps is None or link.carrier is False:  # some drivers go on telling the speed of a link that is gone
            without["speed"].append(name)
        else:
            cycle.add("speed", link.speed_mbps, {"interface": name})
        if link.duplex in {"full", "half"} and link.carrier is not False:
            cycle.add("duplex", float(link.duplex == "full"), {"interface": name, "duplex": link.duplex})
        else:
            without["duplex"].append(name)
    for metric in ("speed", "duplex"):
        if untold[metric]:
            cycle.miss(metric, Absence.UNSUPPORTED, f"the driver does not tell: {listing(untold[metric])}")
        if unlinked[metric]:
            cycle.miss(metric, Absence.UNKNOWN, f"there is no link: {listing(unlinked[metric])}")
