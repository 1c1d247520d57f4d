"""Component npu: every chip's readings by itself, from DCMI and ``npu-smi``; lost chips; the network port of each chip."""

from collections.abc import Mapping, Sequence

from nodeproof.clock import Instant, rfc3339
from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.npu.gains import EccGains
from nodeproof.collectors.npu.labels import ChipLabels
from nodeproof.collectors.npu.presence import Presence
from nodeproof.collectors.npu.statics import Statics
from nodeproof.collectors.npu.telling import Teller
from nodeproof.collectors.services.ascend import Ascend, ChipSaid, Look
from nodeproof.collectors.services.ascend_told import ChipIdentity, ChipKey
from nodeproof.collectors.services.hccn import Hccn, Port
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import npu as catalogue
from nodeproof.model.catalogue import npu_network
from nodeproof.model.metric import Metric

__all__ = ["create", "identity"]

_NETWORK = tuple(spec.name for spec in npu_network.METRICS)
_COUNTS = ("device_count", "device_nodes")
_STATICS = ("npu_num", "chip_type", "driver_version", "comm_topo")
_LINKS = ("hccs_tx_bandwidth", "hccs_rx_bandwidth")
_APART = {*_NETWORK, *_LINKS, *_COUNTS, *_STATICS, "npu_info"}
_QUICK = tuple(spec.name for spec in catalogue.METRICS if not spec.period_s and spec.name not in _APART)
_RARE = tuple(spec.name for spec in catalogue.METRICS if spec.period_s == catalogue.DETAIL_PERIOD_S and spec.name not in _APART)
_COUNT_PERIOD_S = 60.0
_IDENTITY_WAIT_S = 10.0
_LOST_READINGS = ("temperature", "health_status", "memory_usage", "utilization", "error_code", "hbm_double_ecc")
"""What is told missing of a chip that is gone: what rules look at."""
_GONE = NoData(
    Absence.READ_ERROR, "the chip no longer answers", remedy="restart the node; reseat or replace the card if it stays away"
)


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    chips = _Chips(machine)
    groups = (
        Group(_COUNTS, chips.presence.read_counts, _COUNT_PERIOD_S),
        Group(_QUICK, chips.read_quick),
        Group(_RARE, chips.read_rare, catalogue.DETAIL_PERIOD_S),
        Group((*_NETWORK, *_LINKS), chips.read_network, npu_network.NETWORK_PERIOD_S),
        Group(_STATICS, Statics(machine).read, catalogue.STATIC_PERIOD_S),
    )
    return GroupCollector("npu", groups, machine, selection)


def identity(machine: Machine) -> list[Metric]:
    """``npu_info`` of every chip: the card's number, and in labels what it is and its other ids.

    To be called in the background: it waits, at most ten seconds, for the first answer.
    """
    ascend = machine.shared(Ascend)
    if not ascend.some():
        return []
    for _ in range(2):
        try:
            ascend.look()
            break
        except NoData:
            ascend.wait(_IDENTITY_WAIT_S)
    timestamp = rfc3339(machine.clock.now().wall_s)
    return [
        Metric("npu", "npu_info", float(key.npu_id), "", _identity_labels(key, found), timestamp)
        for key, found in sorted(ascend.identities().items())
    ]


def _identity_labels(key: ChipKey, found: ChipIdentity) -> dict[str, str]:
    labels = ChipLabels.chip(key) | {"name": found.name, "bus_id": found.bus_id}
    labels |= {"logic_id": "" if found.logic_id is None else str(found.logic_id)}
    labels |= {"phy_id": "" if found.phy_id is None else str(found.phy_id)}
    return {name: value for name, value in labels.items() if value}


class _Chips:
    """Groups that read chips."""

    def __init__(self, machine: Machine) -> None:
        self._ascend = machine.shared(Ascend)
        self._labels = ChipLabels()
        self.presence = Presence(self._ascend, self._labels)
        self._quick = Teller(_QUICK, self._labels, EccGains())
        self._rare = Teller(_RARE, self._labels)
        self._hccn = machine.shared(Hccn)
        self._network = Teller((*_NETWORK, *_LINKS), self._labels)
        self._listed_at: Instant | None = None
        self._lost: tuple[list[ChipKey], list[str]] = ([], [])

    def read_quick(self, cycle: Cycle) -> None:
        """What is read at each cycle. Raises NoData when no source can be asked."""
        if not self._ascend.some():
            return  # the count of cards says so, once
        look = self._ascend.look()
        self._quick.tell(cycle, look.chips)
        self._tell_lost(cycle, look)

    def read_rare(self, cycle: Cycle) -> None:
        """What is read more rarely. Raises NoData when no source can be asked."""
        if self._ascend.some():
            chips: Mapping[ChipKey, Sequence[ChipSaid]] = self._ascend.details()
            self._rare.tell(cycle, chips)

    def read_network(self, cycle: Cycle) -> None:
        """The ports of the chips that are listed. Raises NoData when no source can be asked."""
        if not self._ascend.some():
            return
        look = self._ascend.look()
        known = self._ascend.identities()
        ports = [Port(key, known[key].phy_id if key in known else None) for key in sorted(look.listed)]
        answers = self._hccn.answers(ports)
        self._network.tell(cycle, {key: (*look.chips[key], said) for key, said in answers.items()})

    def _tell_lost(self, cycle: Cycle, look: Look) -> None:
        if self._listed_at != look.at:
            self._listed_at, self._lost = look.at, self.presence.lost(look)
        chips, addresses = self._lost
        for labels in (*map(ChipLabels.chip, chips), *({"npu_id": address} for address in addresses)):
            cycle.add("card_drop", 1.0, labels)
            cycle.miss_all(_LOST_READINGS, _GONE, labels)
