"""Traffic of the interfaces: ``/proc/net/dev``, read once a cycle for all of them."""

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import listing, net_root
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_net_dev
from nodeproof.sources.proc_net_dev import NetDevice
from nodeproof.sources.sys_class_net import is_virtual

__all__ = ["Traffic"]

_TOTALS_PERIOD_S = 5.0
_MAX_BYTES_S = 1e12
_MAX_PACKETS_S = 1e10
"""No interface is within a factor of five of these: what is above is a counter gone wild."""
_ERROR_TYPES = ("rx_err", "rx_drop", "tx_err", "tx_drop")
_MORE_ERROR_TYPES = ("rx_fifo", "rx_frame", "tx_fifo", "tx_colls", "tx_carrier")
_NOTHING = NetDevice(*[0] * len(NetDevice._fields))
_FIRST = "needs a second reading of /proc/net/dev"
_RESTART = "the counter stepped back: the interface or its driver has restarted"
_WILD = "the counter grew faster than any interface can"


class _Interface:
    """What is kept of one interface between cycles."""

    __slots__ = ("at_s", "before", "errors", "more_errors", "own", "rx", "tx")

    def __init__(self, name: str) -> None:
        self.own = {"interface": name}
        self.rx = {"interface": name, "direction": "rx"}
        self.tx = {"interface": name, "direction": "tx"}
        self.errors = tuple({"interface": name, "type": kind} for kind in _ERROR_TYPES)
        self.more_errors = tuple({"interface": name, "type": kind} for kind in _MORE_ERROR_TYPES)
        self.before = _NOTHING
        self.at_s = 0.0
        """When ``before`` was read; 0 = never."""


class _Unknown:
    """Interfaces without a rate, by metric and reason: one entry each, however many interfaces there are."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def note(self, metric: str, reason: str, interface: str) -> None:
        """``interface`` has no reading of ``metric``."""
        names = self._names.setdefault((metric, reason), [])
        if interface not in names:
            names.append(interface)

    def tell(self, cycle: Cycle) -> None:
        """Put the entries into ``cycle``."""
        for (metric, reason), names in self._names.items():
            state = Absence.READ_ERROR if reason is _WILD else Absence.UNKNOWN
            cycle.miss(metric, state, f"{reason}: {listing(names)}")


class Traffic:
    """Rates each cycle; the totals of packets and errors more slowly. What vanished interfaces left is dropped with them."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._path = f"{net_root(machine.files)}/dev"
        self._interfaces: dict[str, _Interface] = {}
        self._table: dict[str, NetDevice] = {}
        self._table_at: Instant | None = None

    def groups(self) -> tuple[Group, ...]:
        """The groups of this source."""
        rates = ("throughput", "packet_count", "error_count", "rx_bytes_total", "tx_bytes_total")
        return (
            Group(rates, self.read_rates),
            Group(("packet_total", "error_total"), self.read_totals, _TOTALS_PERIOD_S),
        )

    def read_rates(self, cycle: Cycle) -> None:
        """What has passed since the cycle before."""
        unknown = _Unknown()
        for name, device in self._devices(cycle.at).items():
            interface = self._interfaces[name]
            cycle.add("rx_bytes_total", device.rx_bytes, interface.own)
            cycle.add("tx_bytes_total", device.tx_bytes, interface.own)
            elapsed_s = cycle.at.mono_s - interface.at_s
            if interface.at_s and elapsed_s > 0:
                _rates(cycle, unknown, interface, device, elapsed_s)
            else:
                for metric in ("throughput", "packet_count", "error_count"):
                    unknown.note(metric, _FIRST, name)
            interface.before, interface.at_s = device, cycle.at.mono_s
        unknown.tell(cycle)

    def read_totals(self, cycle: Cycle) -> None:
        """Packets and errors since the interface was made."""
        for name, device in self._devices(cycle.at).items():
            interface = self._interfaces[name]
            cycle.add("packet_total", device.rx_packets, interface.rx)
            cycle.add("packet_total", device.tx_packets, interface.tx)
            for labels, count in zip(interface.errors, _errors(device), strict=True):
                cycle.add("error_total", count, labels)
            more = (device.rx_fifo, device.rx_frame, device.tx_fifo, device.tx_colls, device.tx_carrier)
            for labels, count in zip(interface.more_errors, more, strict=True):
                cycle.add("error_total", count, labels)

    def _devices(self, at: Instant) -> dict[str, NetDevice]:
        """The file as of this cycle, read by whichever group comes first."""
        if self._table_at != at:
            self._table = proc_net_dev.parse(self._files.read_kept(self._path), keep=lambda name: not is_virtual(name))
            self._table_at = at
            known = self._interfaces
            self._interfaces = {name: known.get(name) or _Interface(name) for name in self._table}
        if not self._table:
            raise NoData(Absence.NOT_APPLICABLE, "there are no interfaces but loopback and virtual ones")
        return self._table


def _errors(device: NetDevice) -> tuple[int, int, int, int]:
    return device.rx_errs, device.rx_drop, device.tx_errs, device.tx_drop


def _rates(cycle: Cycle, unknown: _Unknown, interface: _Interface, now: NetDevice, elapsed_s: float) -> None:
    before = interface.before
    name = interface.own["interface"]
    for metric, digits, limit, labels, growth in (
        ("throughput", 0, _MAX_BYTES_S, interface.rx, now.rx_bytes - before.rx_bytes),
        ("throughput", 0, _MAX_BYTES_S, interface.tx, now.tx_bytes - before.tx_bytes),
        ("packet_count", 2, _MAX_PACKETS_S, interface.rx, now.rx_packets - before.rx_packets),
        ("packet_count", 2, _MAX_PACKETS_S, interface.tx, now.tx_packets - before.tx_packets),
    ):
        rate = growth / elapsed_s
        if growth < 0:
            unknown.note(metric, _RESTART, name)
        elif rate > limit:
            unknown.note(metric, _WILD, name)
        else:
            cycle.add(metric, round(rate, digits), labels)
    for labels, count_before, count in zip(interface.errors, _errors(before), _errors(now), strict=True):
        if count < count_before:
            unknown.note("error_count", _RESTART, name)
        else:
            cycle.add("error_count", count - count_before, labels)
