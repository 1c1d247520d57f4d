"""InfiniBand and RoCE ports: ``/sys/class/infiniband``. The adapter's firmware is asked for counters: a slow source."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import Rate, SlowRead, listing
from nodeproof.collectors.network.links import optional
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import sys_class_net, sys_infiniband
from nodeproof.sources.sys_infiniband import PortRate, PortState

__all__ = ["Rdma"]

_ROOT = "/sys/class/infiniband"
_STATE_NAMES = ("ib_port_state", "ib_physical_state", "ib_rate", "ib_width")
_COUNTER_NAMES = (
    "ib_data_total",
    "ib_throughput",
    "ib_packet_total",
    "ib_error_total",
    "ib_errors",
    "ib_xmit_wait_total",
    "ib_hw_total",
    "ib_saturated",
)
_DATA = {"port_rcv_data": "rx", "port_xmit_data": "tx"}
_PACKETS = {"port_rcv_packets": "rx", "port_xmit_packets": "tx"}
_WAIT = "port_xmit_wait"
_SATURATED = "counter saturated, reset needed"
_REMEDY = "reset the port's counters (perfquery -R)"
_ACTIVE = "ACTIVE"
_LINK_UP = "LinkUp"


class _Port(NamedTuple):
    """One port as it was read; None or a missing counter = its file could not be read."""

    device: str
    number: str
    state: PortState | None
    physical: PortState | None
    rate: PortRate | None
    link_layer: str
    counters: Mapping[str, int]
    hw_counters: Mapping[str, int]


class Rdma:
    """All ports of all adapters; what vanished ports left is dropped with them."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._source = SlowRead(machine, _ROOT, self._read, self._render)
        self._rates: dict[tuple[str, str], dict[str, Rate]] = {}

    def groups(self) -> tuple[Group, ...]:
        """The one group of this source."""
        return (Group((*_STATE_NAMES, *_COUNTER_NAMES), self._source.read),)

    def _read(self) -> list[_Port]:
        ports = [self._port(device, number) for device in self._names(_ROOT) for number in self._names(f"{_ROOT}/{device}/ports")]
        if not ports:
            raise NoData(Absence.NOT_APPLICABLE, "there is no InfiniBand or RoCE adapter")
        return ports

    def _names(self, folder: str) -> list[str]:
        try:
            return self._files.names(folder)
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:
                return []
            raise

    def _port(self, device: str, number: str) -> _Port:
        folder = f"{_ROOT}/{device}/ports/{number}"
        files = self._files
        wanted = (*sys_infiniband.ERROR_COUNTERS, *_DATA, *_PACKETS, _WAIT)
        return _Port(
            device,
            number,
            optional(files, f"{folder}/state", sys_infiniband.parse_state),
            optional(files, f"{folder}/phys_state", sys_infiniband.parse_state),
            optional(files, f"{folder}/rate", sys_infiniband.parse_rate),
            optional(files, f"{folder}/link_layer", sys_class_net.parse_word) or "",
            self._counters(f"{folder}/counters", wanted),
            self._counters(f"{folder}/hw_counters", sys_infiniband.HW_COUNTERS),
        )

    def _counters(self, folder: str, wanted: Sequence[str]) -> dict[str, int]:
        present = set(self._names(folder))
        values = {
            name: optional(self._files, f"{folder}/{name}", sys_infiniband.parse_counter) for name in wanted if name in present
        }
        return {name: value for name, value in values.items() if value is not None}

    def _render(self, cycle: Cycle, ports: Sequence[_Port]) -> None:
        self._rates = {key: self._rates.get(key, {}) for key in ((port.device, port.number) for port in ports)}
        for port in ports:
            labels = {"device": port.device, "port": port.number}
            _render_state(cycle, port, labels)
            _Counters(cycle, port, labels, self._rates[port.device, port.number]).render()


def _render_state(cycle: Cycle, port: _Port, labels: Labels) -> None:
    if port.state is None:
        cycle.miss("ib_port_state", Absence.READ_ERROR, "the port does not tell its state", labels)
    else:
        layer = {"link_layer": port.link_layer} if port.link_layer else {}
        cycle.add("ib_port_state", float(port.state.name == _ACTIVE), {**labels, **layer, "state": port.state.name})
    if port.physical is None:
        cycle.miss("ib_physical_state", Absence.READ_ERROR, "the port does not tell its physical state", labels)
    else:
        cycle.add("ib_physical_state", float(port.physical.name == _LINK_UP), {**labels, "state": port.physical.name})
    if port.state is None or port.state.name != _ACTIVE:
        # The kernel gives a port without a link a rate all the same: the slowest it could have.
        cycle.miss_all(("ib_rate", "ib_width"), NoData(Absence.UNKNOWN, "the port is not active"), labels)
        return
    if port.rate is None:
        cycle.miss_all(("ib_rate", "ib_width"), NoData(Absence.UNSUPPORTED, "the port does not tell its rate"), labels)
        return
    generation = {"generation": port.rate.generation} if port.rate.generation else {}
    cycle.add("ib_rate", port.rate.speed_mbps, {**labels, **generation})
    if port.rate.lanes is None:
        cycle.miss("ib_width", Absence.UNSUPPORTED, "the port does not tell its width", labels)
    else:
        cycle.add("ib_width", port.rate.lanes, labels)


class _Counters:
    """The counters of one port in one answer."""

    def __init__(self, cycle: Cycle, port: _Port, labels: Labels, rates: dict[str, Rate]) -> None:
        self._cycle = cycle
        self._port = port
        self._labels = labels
        self._rates = rates
        self._unrated: dict[str, list[str]] = {}

    def render(self) -> None:
        """Put the metrics of all counters into the cycle."""
        self._traffic()
        self._errors()
        for name, value in self._port.hw_counters.items():
            self._total("ib_hw_total", name, value, {**self._labels, "counter": name})
        self._absent()
        for metric, names in self._unrated.items():
            self._cycle.miss(metric, Absence.UNKNOWN, f"needs two readings that only grow: {listing(names)}", self._labels)

    def _traffic(self) -> None:
        counters = self._port.counters
        for name, direction in _DATA.items():
            if name in counters:
                labels = {**self._labels, "direction": direction}
                growth = self._total("ib_data_total", name, counters[name], labels, sys_infiniband.DATA_WORD_BYTES)
                if growth is not None:
                    rate = growth[0] * sys_infiniband.DATA_WORD_BYTES / growth[1]
                    self._cycle.add("ib_throughput", round(rate, 0), labels)
                else:
                    self._unknown("ib_throughput", name, counters[name], labels)
        for name, direction in _PACKETS.items():
            if name in counters:
                self._total("ib_packet_total", name, counters[name], {**self._labels, "direction": direction})
        if _WAIT in counters:
            self._total("ib_xmit_wait_total", _WAIT, counters[_WAIT], self._labels)

    def _errors(self) -> None:
        for name in sys_infiniband.ERROR_COUNTERS:
            if name in self._port.counters:
                value = self._port.counters[name]
                labels = {**self._labels, "type": name}
                growth = self._total("ib_error_total", name, value, labels)
                if growth is not None:
                    self._cycle.add("ib_errors", growth[0], labels)
                else:
                    self._unknown("ib_errors", name, value, labels)

    def _total(self, metric: str, name: str, value: int, labels: Labels, scale: int = 1) -> tuple[int, float] | None:
        """The counter itself, and its growth; a saturated one is neither 0 nor a number."""
        at = self._cycle.at
        rate = self._rates.setdefault(name, Rate())
        if not sys_infiniband.is_saturated(name, value):
            self._cycle.add(metric, value * scale, labels)
            return rate.step(value, at)
        rate.step(None, at)
        self._cycle.miss(metric, Absence.UNKNOWN, _SATURATED, labels, remedy=_REMEDY)
        self._cycle.add("ib_saturated", 1.0, {**self._labels, "counter": name})
        return None

    def _unknown(self, metric: str, name: str, value: int, labels: Labels) -> None:
        if sys_infiniband.is_saturated(name, value):
            self._cycle.miss(metric, Absence.UNKNOWN, _SATURATED, labels, remedy=_REMEDY)
        else:
            self._unrated.setdefault(metric, []).append(name)

    def _absent(self) -> None:
        counters = self._port.counters
        for metric, names in (
            ("ib_data_total", _DATA),
            ("ib_throughput", _DATA),
            ("ib_packet_total", _PACKETS),
            ("ib_error_total", sys_infiniband.ERROR_COUNTERS),
            ("ib_errors", sys_infiniband.ERROR_COUNTERS),
            ("ib_xmit_wait_total", (_WAIT,)),
        ):
            without = [name for name in names if name not in counters]
            if without:
                self._cycle.miss(metric, Absence.UNSUPPORTED, f"the port does not count {listing(without)}", self._labels)
        if not self._port.hw_counters:
            self._cycle.miss("ib_hw_total", Absence.UNSUPPORTED, "the driver keeps no counters known here", self._labels)
