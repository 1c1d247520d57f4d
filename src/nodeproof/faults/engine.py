"""From conditions and kernel events to faults that begin and end, and the log of what happened. Pure.

One fault is one rule about one thing. It begins when a rule of health counts, or when the kernel writes a line that means it. It
ends by evidence alone: its reading is good again, there was quiet for the time the rule names (while the log could be read), a
new boot, or an operator's word. A reading that is gone ends nothing.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from nodeproof.clock import Instant, rfc3339, rfc3339_parse
from nodeproof.errors import UsageError
from nodeproof.faults.coalesce import CoalescedEvent
from nodeproof.faults.identity import card_at, card_id, device_of, known_labels, naming_labels
from nodeproof.faults.kernel_rules import UNVERIFIED, KernelRule
from nodeproof.faults.meaning import detail_of, meaning_of
from nodeproof.faults.vocabulary import Naming, naming_of
from nodeproof.model.event import Severity
from nodeproof.model.fault import (
    Acknowledgement,
    Change,
    Fault,
    FaultClass,
    FaultEvent,
    FaultState,
    KernelPlace,
    Order,
    OrderKind,
    Origin,
)
from nodeproof.model.health import Standing
from nodeproof.model.metric import Labels

__all__ = ["SCHEMA_VERSION", "DrillRule", "Engine", "ReadsWell"]

SCHEMA_VERSION = 1
_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}
_MOST_FAULTS = 4096
"""A machine with more things broken has told enough; what is beyond is counted in ``dropped``."""
_MOST_TOLD = 1024
_FIRST_REPEAT_S = 60.0
_LAST_REPEAT_S = 3600.0
_UNVERIFIED_REPEAT_S = 3600.0
_BURST = 120
_BURST_EVERY_S = 5.0
"""Entries of things that are no state: a burst of so many, then one in so long; the others are counted."""

ReadsWell = Callable[[str, Callable[[Labels], bool]], bool | None]
"""``Evaluator.reads_well``."""


class DrillRule(NamedTuple):
    """A rule as a drill pretends it."""

    rule: str
    naming: Naming
    component: str
    message: str
    action: str


class _Told:
    """When an entry that is no state was written last, and when the next one may be."""

    __slots__ = ("due_s", "step_s")

    def __init__(self, now_s: float, step_s: float) -> None:
        self.step_s = step_s
        self.due_s = now_s + step_s


class Engine:
    """All faults of one node. Not for more than one thread at a time; what it has to say collects in :attr:`said`."""

    def __init__(
        self, state: FaultState | None, boot_id: str, new_id: Callable[[], str], at: Instant, *, off: Collection[str] = ()
    ) -> None:
        """``off``: types that are not detected. Faults of an earlier boot that end with a boot are cleared at once."""
        self.said: list[FaultEvent] = []
        self.sequence = 0 if state is None else state.sequence
        self.active: dict[tuple[str, str], Fault] = {} if state is None else {fault.key: fault for fault in state.faults}
        self.place = KernelPlace(boot_id) if state is None or state.kernel.boot_id != boot_id else state.kernel
        self.dropped = 0
        """Entries and faults that were not written for want of room."""
        self.changed = state is None
        """What stands differs from what :meth:`state` gave last."""
        self.cards: Mapping[tuple[str, str], Labels] = {}
        """What is known of each card, by component and the id that it has in readings now: UUID, bus address."""
        self._boot_id = boot_id
        self._new_id = new_id
        self._off = frozenset(off)
        self._quiet_since: dict[tuple[str, str], float] = {}
        self._told: OrderedDict[tuple[str, str], _Told] = OrderedDict()
        self._counted: OrderedDict[tuple[str, str], deque[tuple[float, int]]] = OrderedDict()
        self._ended: OrderedDict[tuple[str, str], float] = OrderedDict()
        """When a fault of the kernel log ended: a count that goes on since before does not make the next one older."""
        self._tokens, self._tokens_s = float(_BURST), at.mono_s
        for fault in list(self.active.values()):
            self._resume(fault, at)

    def _resume(self, fault: Fault, at: Instant) -> None:
        if fault.until_boot and fault.boot_id != self._boot_id and self._boot_id:
            self._end(fault, at, "the machine was booted")
        elif fault.type in self._off and not fault.drill:
            self._end(fault, at, "its rule is switched off")
        elif fault.quiet_s:
            # The time while the machine was off was not quiet: nobody listened.
            heard_s = at.wall_s - rfc3339_parse(fault.last or fault.since) if fault.boot_id == self._boot_id else 0.0
            self._quiet_since[fault.key] = at.mono_s - max(0.0, heard_s)

    def state(self, at: Instant) -> FaultState:
        """What stands, to be kept."""
        self.changed = False
        return FaultState(
            schema=SCHEMA_VERSION,
            sequence=self.sequence,
            timestamp=rfc3339(at.wall_s),
            faults=list(self.active.values()),
            kernel=self.place,
        )

    def replay(self, event: FaultEvent) -> None:
        """Take over an entry that the log has and the kept state has not: the daemon died between the two.

        A fault of the kernel log of which no more than its entry is left stands until the next boot, or until somebody clears it.
        """
        self.sequence = max(self.sequence, event.sequence)
        self.changed = True
        if event.change is Change.CLEARED:
            self.active = {key: fault for key, fault in self.active.items() if fault.fault_id != event.fault_id}
        elif event.change is Change.SET and (event.rule, event.device) not in self.active:
            self.active[event.rule, event.device] = _from_event(event)
        else:
            fault = self.active.get((event.rule, event.device))
            if fault is not None and fault.fault_id == event.fault_id:
                self.active[fault.key] = _as_noted(fault, event)

    def judge(self, conditions: Iterable[Standing], reads_well: ReadsWell, at: Instant) -> None:
        """Compare what rules of health say now with what stands."""
        present: set[tuple[str, str]] = set()
        for condition in conditions:
            naming = naming_of(condition)
            if naming is not None and naming.type not in self._off:
                present.add(self._condition(condition, naming, at))
        for key, fault in list(self.active.items()):
            if fault.origin is Origin.READING and key not in present:
                self._look_again(fault, reads_well, at)

    def _condition(self, condition: Standing, naming: Naming, at: Instant) -> tuple[str, str]:
        labels = known_labels(condition.component, condition.labels, self.cards)
        device = device_of(condition.component, labels, condition.entity)
        key = (condition.rule, device)
        fault = self.active.get(key)
        if fault is None:
            self._begin(_from_condition(condition, naming, labels, device), at.wall_s)
        else:
            severity = naming.severity or fault.severity
            if _RANK[severity] > _RANK[fault.severity]:
                self._worsen(fault, severity, condition.message, at)
            elif fault.unseen is condition.current or fault.over:
                self._put(msgspec.structs.replace(fault, unseen=not condition.current, over=False))
        return key

    def _look_again(self, fault: Fault, reads_well: ReadsWell, at: Instant) -> None:
        entity = tuple(fault.labels)

        def same(labels: Labels) -> bool:
            return device_of(fault.component, known_labels(fault.component, labels, self.cards), entity) == fault.device

        well = reads_well(fault.rule, same)
        if well:
            self._finish(fault, at, "it reads well again")
        elif fault.unseen is not (well is None):
            self._put(msgspec.structs.replace(fault, unseen=well is None))

    def kernel(self, wholes: Iterable[CoalescedEvent], at: Instant) -> None:
        """Take in what the kernel log told."""
        for whole in wholes:
            event = whole.event
            rule = meaning_of(event) if event.verified else UNVERIFIED
            if rule is None or rule.type in self._off:
                continue
            device = event.device if event.verified else ""
            # The log's times are since boot; a clock that was set since then moves them with it.
            happened_s = at.wall_s - max(0.0, at.mono_s - whole.last_s)
            if rule.stands and self._enough(rule, device, whole):
                self._kernel_fault(rule, device, whole, happened_s, at)
            elif not rule.stands:
                self._entry(rule, device, whole, happened_s, at)
            if event.sequence > self.place.sequence:
                self.place = KernelPlace(self._boot_id, event.sequence)
                self.changed = True

    def _enough(self, rule: KernelRule, device: str, whole: CoalescedEvent) -> bool:
        """Whether there were as many within the window as make a fault."""
        if rule.least <= 1 or (rule.name, device) in self.active:
            return True
        past = self._counted.setdefault((rule.name, device), deque(maxlen=256))
        self._counted.move_to_end((rule.name, device))
        if len(self._counted) > _MOST_TOLD:
            self._counted.popitem(last=False)
        while past and past[0][0] < whole.last_s - rule.window_s:
            past.popleft()
        # Of a whole that is not older than the window all of it counts, else what came since the oldest look within it.
        before = 0 if whole.first_s >= whole.last_s - rule.window_s else past[0][1] if past else whole.count - 1
        past.append((whole.last_s, whole.count))
        return whole.count - before >= rule.least

    def _kernel_fault(self, rule: KernelRule, device: str, whole: CoalescedEvent, happened_s: float, at: Instant) -> None:
        key = (rule.name, device)
        self._quiet_since[key] = min(at.mono_s, whole.last_s)
        fault = self.active.get(key)
        if fault is None:
            fault = _from_kernel(rule, device, whole)
            began_s = at.wall_s - max(0.0, at.mono_s - self._first_s(rule, key, whole))
            known = card_at(rule.component, device, self.cards)
            self._begin(msgspec.structs.replace(fault, labels=known, since=rfc3339(began_s)), happened_s)
        elif _RANK[rule.severity] > _RANK[fault.severity]:
            self._worsen(fault, rule.severity, whole.event.message, at)
        else:
            self._put(msgspec.structs.replace(fault, last=rfc3339(happened_s), count=max(fault.count, whole.count), over=False))

    def _first_s(self, rule: KernelRule, key: tuple[str, str], whole: CoalescedEvent) -> float:
        """Seconds since boot of the first line that belongs to a fault which begins now."""
        first_s = whole.first_s
        if rule.least > 1 and first_s < whole.last_s - rule.window_s:
            first_s = self._counted[key][0][0]
        return first_s if first_s > self._ended.get(key, -1.0) else whole.last_s

    def _entry(self, rule: KernelRule, device: str, whole: CoalescedEvent, happened_s: float, at: Instant) -> None:
        """Write of what is no state: the first one, then ever more seldom, each with the count until then."""
        key = (rule.name, device)
        told = self._told.get(key)
        if told is not None and at.mono_s < told.due_s:
            return
        if not self._may_write(at):
            self.dropped += 1
            return
        step_s = _UNVERIFIED_REPEAT_S if rule is UNVERIFIED else min(_LAST_REPEAT_S, 2 * told.step_s if told else _FIRST_REPEAT_S)
        self._told[key] = _Told(at.mono_s, step_s)
        self._told.move_to_end(key)
        if len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)
        fault = msgspec.structs.replace(_from_kernel(rule, device, whole), labels=card_at(rule.component, device, self.cards))
        self._say(fault, Change.EVENT, happened_s, verified=whole.event.verified)

    def _may_write(self, at: Instant) -> bool:
        self._tokens = min(float(_BURST), self._tokens + (at.mono_s - self._tokens_s) / _BURST_EVERY_S)
        self._tokens_s = at.mono_s
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def expire(self, at: Instant, *, log_readable: bool) -> None:
        """End what was quiet for long enough, and drills whose time is over. Quiet that nobody could hear does not count."""
        for key, fault in list(self.active.items()):
            if fault.drill:
                if at.wall_s >= fault.drill_ends:
                    self._end(fault, at, "the drill is over")
            elif fault.quiet_s and not log_readable:
                self._quiet_since[key] = at.mono_s
            elif fault.quiet_s and not fault.over and at.mono_s - self._quiet_since[key] >= fault.quiet_s:
                self._finish(fault, at, f"there was quiet for {fault.quiet_s:g} s")

    def obey(self, order: Order, at: Instant, drill: DrillRule | None = None) -> Fault:
        """Do what an operator asks; the fault it was about. ``drill``: what ``inject`` pretends. Raises UsageError."""
        if order.kind is OrderKind.INJECT:
            return self._inject(order, drill, at)
        fault = next((one for one in self.active.values() if one.fault_id == order.target), None)
        if fault is None:
            raise UsageError(f"no fault {order.target!r} stands; nodeproof faults active lists those that do")
        note = {"by": order.by, "note": order.note}
        match order.kind:
            case OrderKind.ACKNOWLEDGE:
                seen = Acknowledgement(order.by, rfc3339(at.wall_s), order.note)
                return self._noted(msgspec.structs.replace(fault, acknowledged=seen), Change.ACKNOWLEDGED, note, at)
            case OrderKind.HOLD:
                return self._noted(msgspec.structs.replace(fault, held=True), Change.HELD, note, at)
            case OrderKind.RELEASE:
                released = self._noted(msgspec.structs.replace(fault, held=False), Change.RELEASED, note, at)
                if released.over:
                    self._end(released, at, "it had ended, and nobody holds it any more")
                return released
            case _:
                if fault.origin is Origin.READING and not fault.unseen and not fault.over:
                    raise UsageError(
                        f"{fault.fault_id} cannot be cleared: {fault.rule} still reads so ({fault.message});"
                        " acknowledge it, or mend what it is about"
                    )
                self._end(fault, at, f"cleared by {order.by}", note)
                return fault

    def _noted(self, fault: Fault, change: Change, note: Mapping[str, str], at: Instant) -> Fault:
        self._put(fault)
        self._say(fault, change, at.wall_s, {key: text for key, text in note.items() if text})
        return fault

    def _inject(self, order: Order, drill: DrillRule | None, at: Instant) -> Fault:
        if drill is None:
            raise UsageError(f"no rule {order.target!r} makes a fault; nodeproof faults list lists those that do")
        fault = Fault(
            fault_id="",
            rule=drill.rule,
            type=drill.naming.type,
            fault_class=drill.naming.fault_class,
            component=drill.component,
            device="drill",
            severity=drill.naming.severity or Severity.WARNING,
            message=f"DRILL: {drill.message}",
            action=drill.action,
            since=rfc3339(at.wall_s),
            clears_when=f"the drill ends by itself {order.seconds:g} s after it began",
            origin=Origin.DRILL,
            boot_id=self._boot_id,
            event_id="",
            detail={"injected_by": order.by},
            drill=True,
            drill_ends=at.wall_s + order.seconds,
        )
        if fault.key in self.active:
            raise UsageError(f"a drill of {drill.rule} is under way; it ends by itself, or by nodeproof faults clear")
        return self._begin(fault, at.wall_s)

    def record(self, event: FaultEvent, at: Instant) -> FaultEvent:
        """Write an event that somebody handed in; it gets its number here. It makes no fault."""
        self.sequence += 1
        self.changed = True
        event = msgspec.structs.replace(
            event,
            event_id=event.event_id or self._new_id(),
            timestamp=event.timestamp or rfc3339(at.wall_s),
            sequence=self.sequence,
            boot_id=self._boot_id,
        )
        self.said.append(event)
        return event

    def _begin(self, fault: Fault, happened_s: float) -> Fault:
        if len(self.active) >= _MOST_FAULTS:
            self.dropped += 1
            return fault
        event = self._say(fault, Change.SET, happened_s, fault_id=f"f{self.sequence + 1}")
        fault = msgspec.structs.replace(fault, fault_id=event.fault_id, event_id=event.event_id, boot_id=self._boot_id)
        self._put(fault)
        return fault

    def _worsen(self, fault: Fault, severity: Severity, message: str, at: Instant) -> None:
        worse = msgspec.structs.replace(fault, severity=severity, message=message, unseen=False, over=False)
        self._put(worse)
        self._say(worse, Change.GRAVER, at.wall_s)

    def _finish(self, fault: Fault, at: Instant, why: str) -> None:
        """Its cause has ended: so has it, unless somebody holds it."""
        if not fault.held:
            self._end(fault, at, why)
        elif not fault.over:
            self._put(msgspec.structs.replace(fault, over=True, unseen=False))

    def _end(self, fault: Fault, at: Instant, why: str, note: Mapping[str, str] = {}) -> None:
        del self.active[fault.key]
        self._quiet_since.pop(fault.key, None)
        if fault.origin is Origin.KERNEL:
            self._ended[fault.key] = at.mono_s
            if len(self._ended) > _MOST_TOLD:
                self._ended.popitem(last=False)
        detail = {"cleared_by": why, **{key: text for key, text in note.items() if text}}
        self._say(fault, Change.CLEARED, at.wall_s, detail)

    def _put(self, fault: Fault) -> None:
        self.active[fault.key] = fault
        self.changed = True

    def _say(
        self,
        fault: Fault,
        change: Change,
        happened_s: float,
        detail: Mapping[str, str] | None = None,
        *,
        fault_id: str | None = None,
        verified: bool = True,
    ) -> FaultEvent:
        self.sequence += 1
        self.changed = True
        card = card_id(fault.component, fault.labels)
        event = FaultEvent(
            event_id=self._new_id(),
            type=fault.type,
            component=fault.component,
            npu_id=card if fault.component == "npu" else "",
            gpu_id=card if fault.component == "gpu" else "",
            severity=fault.severity,
            detail=dict(fault.detail if detail is None else detail),
            timestamp=rfc3339(happened_s),
            recovered=change is Change.CLEARED,
            sequence=self.sequence,
            change=change,
            fault_class=fault.fault_class,
            rule=fault.rule,
            device=fault.device,
            message=fault.message,
            boot_id=self._boot_id,
            labels=fault.labels,
            fault_id=fault.fault_id if fault_id is None else fault_id,
            action=fault.action,
            count=fault.count,
            drill=fault.drill,
            verified=verified,
            since=fault.since,
        )
        self.said.append(event)
        return event


def _from_condition(condition: Standing, naming: Naming, known: Labels, device: str) -> Fault:
    labels = naming_labels(known, condition.entity)
    return Fault(
        fault_id="",
        rule=condition.rule,
        type=naming.type,
        fault_class=naming.fault_class,
        component=condition.component,
        device=device,
        severity=naming.severity or Severity.WARNING,
        message=condition.message,
        action=condition.remedy,
        since=rfc3339(condition.since_wall_s),
        clears_when=condition.clears_when,
        origin=Origin.READING,
        boot_id="",
        event_id="",
        detail={**condition.labels, "value": f"{condition.value:g}"},
        labels=labels,
        unseen=not condition.current,
    )


def _from_kernel(rule: KernelRule, device: str, whole: CoalescedEvent) -> Fault:
    event = whole.event
    ends = f"no other one for {rule.quiet_s:g} s" if rule.quiet_s else "the next boot, or an operator's word"
    detail = {
        **detail_of(event),
        "kernel_sequence": str(event.sequence),
        "first_s": f"{whole.first_s:.6f}",
        "last_s": f"{whole.last_s:.6f}",
        "facility": str(event.facility),
    }
    return Fault(
        fault_id="",
        rule=rule.name,
        type=rule.type,
        fault_class=rule.fault_class,
        component=rule.component,
        device=device,
        severity=rule.severity,
        message=rule.meaning,
        action=rule.action,
        since="",
        clears_when=ends,
        origin=Origin.KERNEL,
        boot_id="",
        event_id="",
        detail=detail,
        count=whole.count,
        quiet_s=rule.quiet_s,
        until_boot=not rule.quiet_s,
    )


def _as_noted(fault: Fault, event: FaultEvent) -> Fault:
    """``fault`` as an entry of the log left it."""
    match event.change:
        case Change.GRAVER:
            return msgspec.structs.replace(fault, severity=event.severity, message=event.message)
        case Change.ACKNOWLEDGED:
            seen = Acknowledgement(event.detail.get("by", ""), event.timestamp, event.detail.get("note", ""))
            return msgspec.structs.replace(fault, acknowledged=seen)
        case Change.HELD | Change.RELEASED:
            return msgspec.structs.replace(fault, held=event.change is Change.HELD)
        case _:
            return fault


def _from_event(event: FaultEvent) -> Fault:
    return Fault(
        fault_id=event.fault_id,
        rule=event.rule,
        type=event.type,
        fault_class=FaultClass(event.fault_class),
        component=event.component,
        device=event.device,
        severity=event.severity,
        message=event.message,
        action=event.action,
        since=event.since or event.timestamp,
        clears_when="an operator's word, or its rule",
        origin=Origin.DRILL if event.drill else Origin.KERNEL if event.rule.partition(".")[0] in _OF_KERNEL else Origin.READING,
        boot_id=event.boot_id,
        event_id=event.event_id,
        detail=event.detail,
        labels=event.labels,
        count=event.count,
        drill=event.drill,
        until_boot=event.rule.partition(".")[0] in _OF_KERNEL,
    )


_OF_KERNEL = frozenset({"kernel", "xid", "sxid"})
"""Rules that rest on the kernel log, by the first part of their id."""
