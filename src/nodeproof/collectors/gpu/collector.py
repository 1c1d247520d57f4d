"""Component gpu: what each card tells, as metrics of the catalogue.

The readings come from :class:`GpuFleet`, whatever source brought them, under the names of the catalogue. What a card does not
tell is missing with its reason; where all cards lack the same thing for the same reason, that is said once for all of them.
"""

from collections import Counter

from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.gpu.judgement import Judge
from nodeproof.collectors.services.gpu_fleet import FleetCard, GpuFleet, VendorReading
from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import component_specs
from nodeproof.model.gpu import CardState, Key, Untold
from nodeproof.model.metric import Labels

__all__ = ["create"]

_COUNT_PERIOD_S = 60.0
_MAX_PROCESSES = 64
_NO_CARDS = "there is no NVIDIA or AMD GPU on the PCI bus"
_FLEET = ("cards", "driver_up", "device_info", "card_state")
_ASIDE = frozenset({"device_count", *_FLEET, "processes", "process_memory"})
_SPECS = component_specs("gpu")
_QUICK = tuple(name for name, spec in _SPECS.items() if name not in _ASIDE and not spec.period_s)
_DEEP = tuple(name for name, spec in _SPECS.items() if name not in _ASIDE and spec.period_s)
"""What every card is asked for, in each cycle and every half minute."""
_ANOTHERS = {("nvidia", "partition_info"): Untold(Absence.NOT_APPLICABLE, "this card is divided by MIG, if at all")} | {
    ("amd", name): Untold(Absence.NOT_APPLICABLE, "only cards of NVIDIA have it")
    for name, spec in _SPECS.items()
    if "amd" not in spec.source and "gpu_id" in spec.labels
}
"""What only cards of the other vendor have."""
_NOT_THERE = {
    CardState.SILENT: (Absence.STALE, "its driver does not answer"),
    CardState.RESET_REQUIRED: (Absence.READ_ERROR, "it must be reset"),
    CardState.LOST: (Absence.READ_ERROR, "it is lost"),
}


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    bus = machine.shared(PciAccelerators)
    fleet = machine.shared(GpuFleet)
    judge = Judge()
    return GroupCollector(
        "gpu",
        (
            Group(("device_count",), lambda cycle: _count(bus, cycle), _COUNT_PERIOD_S),
            Group((*_FLEET, *_QUICK, "processes", "process_memory"), _Cards(fleet, judge, _QUICK, deep=False).read),
            Group(_DEEP, _Cards(fleet, judge, _DEEP, deep=True).read, _SPECS[_DEEP[0]].period_s),
        ),
        machine,
        selection,
    )


def _count(bus: PciAccelerators, cycle: Cycle) -> None:
    cards = bus.cards("gpu")
    if not cards:
        cycle.miss("device_count", Absence.NOT_APPLICABLE, _NO_CARDS)
    for vendor, count in sorted(Counter(card.vendor for card in cards).items()):
        cycle.add("device_count", count, {"vendor": vendor})


def _add_fleet(cycle: Cycle, vendor: VendorReading) -> None:
    """How many cards there should be and are, and whether their driver answers."""
    name = {"vendor": vendor.vendor}
    answering = sum(one.card.state is CardState.ANSWERS for one in vendor.cards)
    cycle.add("cards", len(vendor.cards), {**name, "state": "expected"})
    cycle.add("cards", answering, {**name, "state": "answering"})
    absence = vendor.absence
    if absence is None:
        cycle.add("driver_up", 1.0, name)
    elif absence.state in {Absence.UNKNOWN, Absence.UNSUPPORTED, Absence.NO_PERMISSION}:
        cycle.miss("driver_up", absence.state, absence.reason, name, remedy=absence.remedy)
    else:
        cycle.add("driver_up", 0.0, name)


class _Lacking:
    """Absences of one vendor's cards, gathered so that what all of them lack alike is told once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Absence, str], list[Labels]] = {}

    def note(self, name: str, why: Untold, labels: Labels) -> None:
        """One card lacks this."""
        self._found.setdefault((name, why.state, why.reason), []).append(labels)

    def tell(self, cycle: Cycle, cards: int, remedy: str) -> None:
        """Every absence; once, without a card, where all cards share it."""
        for (name, state, reason), labels in self._found.items():
            if cards > 1 and len({one["gpu_id"] for one in labels}) == cards:
                cycle.miss(name, state, reason, remedy=remedy)
                continue
            for one in labels:
                cycle.miss(name, state, reason, one, remedy=remedy)


class _Cards:
    """All cards, card by card: the metrics ``names`` of each."""

    def __init__(self, fleet: GpuFleet, judge: Judge, names: tuple[str, ...], *, deep: bool) -> None:
        self._fleet = fleet
        self._judge = judge
        self._names = names
        self._mine = frozenset(names)
        self._deep = deep
        self._labels: dict[tuple[str, Key], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        """Everything of every card. Raises NoData when the bus cannot be looked through."""
        for vendor in self._fleet.read(deep=self._deep).vendors:
            self._vendor(cycle if vendor.at is None else cycle.as_of(vendor.at), cycle, vendor)

    def _vendor(self, past: Cycle, cycle: Cycle, vendor: VendorReading) -> None:
        absence = vendor.absence
        if not self._deep:
            _add_fleet(past, vendor)
        lacking = _Lacking()
        for one in vendor.cards:
            self._card(past, one, lacking, known=absence is None)
        lacking.tell(past, len(vendor.cards), absence.remedy if absence is not None else "")
        if past is not cycle:
            cycle.take(past)

    def _card(self, cycle: Cycle, one: FleetCard, lacking: _Lacking, *, known: bool) -> None:
        gpu_id = one.gpu_id
        values, untold = self._judge.judge(one.card)
        brought = set()
        for key, value in values.items():
            if key[0] in self._mine:
                brought.add(key[0])
                cycle.add(key[0], value, self._label(gpu_id, key))
        for key, absence in untold.items():
            if key[0] in self._mine:
                brought.add(key[0])
                lacking.note(key[0], absence, self._label(gpu_id, key))
        rest = self._rest(one, known=known)
        for name in self._names:
            if name not in brought:
                lacking.note(name, _ANOTHERS.get((one.card.vendor, name), rest), {"gpu_id": gpu_id})
        if not self._deep:
            self._state(cycle, one, lacking, known=known)
            self._processes(cycle, one, lacking, rest)

    def _state(self, cycle: Cycle, one: FleetCard, lacking: _Lacking, *, known: bool) -> None:
        card, gpu_id = one.card, one.gpu_id
        identity = {key: value for key, value in card.identity.items() if key in {"name", "uuid", "driver", "vbios"} and value}
        cycle.add("device_info", 1.0, {"gpu_id": gpu_id, "vendor": card.vendor, "pci_bus_id": card.address, **identity})
        if known:
            cycle.add("card_state", float(card.state), self._label(gpu_id, ("card_state",)))
        else:
            lacking.note("card_state", Untold(Absence.UNKNOWN, card.reason), {"gpu_id": gpu_id})

    @staticmethod
    def _rest(one: FleetCard, *, known: bool) -> Untold:
        """Why a card tells nothing of what is left."""
        if not known:
            return Untold(Absence.UNKNOWN, one.card.reason)
        if one.card.state is CardState.ANSWERS:
            return Untold(Absence.UNSUPPORTED, f"{one.source} does not tell it")
        state, text = _NOT_THERE[one.card.state]
        return Untold(state, f"{text}: {one.card.reason}")

    def _processes(self, cycle: Cycle, one: FleetCard, lacking: _Lacking, rest: Untold) -> None:
        processes = one.card.processes
        if processes is None:
            for name in ("processes", "process_memory"):
                lacking.note(name, rest, {"gpu_id": one.gpu_id})
            return
        working = [process for process in processes if not process.graphics]
        cycle.add("processes", len(working), self._label(one.gpu_id, ("processes",)))
        if not cycle.wants("process_memory"):
            return
        told = [process for process in working[:_MAX_PROCESSES] if process.used_mib is not None]
        for process in told:
            labels = {"gpu_id": one.gpu_id, "pid": str(process.pid), "process": process.name}
            cycle.add("process_memory", process.used_mib or 0.0, labels)
        if not told:
            reason = "no process runs on it" if not working else f"{one.source} does not tell it"
            state = Absence.NOT_APPLICABLE if not working else Absence.UNSUPPORTED
            lacking.note("process_memory", Untold(state, reason), {"gpu_id": one.gpu_id})

    def _label(self, gpu_id: str, key: Key) -> Labels:
        """Labels of a reading, made once."""
        found = self._labels.get((gpu_id, key))
        if found is None:
            # An absence may be of all that a metric has of this card: then its other labels have no value.
            found = self._labels[gpu_id, key] = dict(zip(_SPECS[key[0]].labels, (gpu_id, *key[1:]), strict=False))
        return found
