"""What differs between two sides, gravest first, and what could not be compared."""

from collections.abc import Iterable, Iterator
from enum import IntEnum

import msgspec

from nodeproof.errors import Absence
from nodeproof.model.catalogue import CATALOGUE, Kind, MetricSpec, Priority
from nodeproof.model.metric import Metric
from nodeproof.operate.compare.side import Key, Side

__all__ = ["Comparison", "Difference", "NotCompared", "Weight", "compare"]

_APART = 0.25
"""Numbers that go up and down are told of when they differ by more than this share of the larger one."""
_ERRORS = (
    "error",
    "fault",
    "fail",
    "drop",
    "retrain",
    "retr",
    "uncorrect",
    "remap",
    "bad",
    "flap",
    "lost",
    "machine_check",
    "oom",
)
_OWN = ("serial", "uuid", "guid", "mac", "address", "wwn", "wwid", "ip", "hostname", "asset", "gid", "lid", "boot_id", "nqn")
"""Labels that differ from node to node and mean nothing by it."""


class Weight(IntEnum):
    """How much a difference matters; the least number first."""

    VERDICT = 1
    """A rule that speaks on one side only."""
    MADE_OF = 2
    """Hardware, firmware, kernel, driver: constants and names."""
    STATE = 3
    """One of a few states."""
    ERRORS = 4
    """Counters of errors, of which one side has none, or far fewer."""
    DEVICE = 5
    """Something that only one side has."""
    NUMBER = 6
    """Other numbers, far apart."""


class Difference(msgspec.Struct, frozen=True):
    """One thing that differs."""

    weight: Weight
    what: str
    """Component, name and labels, or a rule."""
    left: str
    right: str
    apart: float = 0.0
    """For numbers: difference over the larger one, 0 to 1."""


class NotCompared(msgspec.Struct, frozen=True):
    """Something that one side, or both, cannot tell."""

    what: str
    left: str
    """State and reason; empty = it was told."""
    right: str


class Comparison(msgspec.Struct, frozen=True):
    """Everything that came of it."""

    compared: int
    """Readings that both sides have."""
    differences: list[Difference]
    not_compared: list[NotCompared]
    cautions: list[str]


def compare(left: Side, right: Side) -> Comparison:
    """``left`` against ``right``."""
    both = left.metrics.keys() & right.metrics.keys()
    told = [*_verdicts(left, right), *_made_of(left, right), *_readings(left, right, both), *_devices(left, right)]
    told.sort(key=lambda one: (one.weight, -one.apart, one.what))
    cautions = [f"{side.name}: {side.caution}" for side in (left, right) if side.caution]
    return Comparison(len(both), told, _not_compared(left, right), cautions)


def _verdicts(left: Side, right: Side) -> Iterator[Difference]:
    rules = [_rules(side) for side in (left, right)]
    for rule in sorted(rules[0].keys() | rules[1].keys()):
        told = [side.get(rule, "") for side in rules]
        if bool(told[0]) != bool(told[1]) and None not in (left.health, right.health):
            yield Difference(Weight.VERDICT, rule, told[0] or "not found", told[1] or "not found")


def _rules(side: Side) -> dict[str, str]:
    if side.health is None:
        return {}
    return {f"{one.component}: {one.rule}": f"{one.severity}: {one.message}" for one in side.health.findings}


def _made_of(left: Side, right: Side) -> Iterator[Difference]:
    """Constants and names: what the labels say is the content, so sets are compared, without what is each node's own."""
    contents = [_contents(side) for side in (left, right)]
    for what in sorted(contents[0].keys() & contents[1].keys()):
        ours, theirs = contents[0][what], contents[1][what]
        if ours != theirs:
            yield Difference(Weight.MADE_OF, what, _some(ours - theirs), _some(theirs - ours))


def _contents(side: Side) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    named = [one for one in side.metrics.values() if _is_constant(CATALOGUE.get((one.component, one.name)))]
    for one in (*named, *side.specs):
        labels = " ".join(f"{key}={text}" for key, text in sorted((one.labels or {}).items()) if not _own(key))
        found.setdefault(f"{one.component}.{one.name}", set()).add(f"{labels} {_number(one)}".strip())
    return found


def _is_constant(spec: MetricSpec | None) -> bool:
    return spec is not None and spec.kind in {Kind.INFO, Kind.STATIC}


def _own(label: str) -> bool:
    return any(word in label.lower().split("_") or label.lower().startswith(word) for word in _OWN)


def _some(values: set[str]) -> str:
    listed = sorted(values)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more


def _readings(left: Side, right: Side, both: Iterable[Key]) -> Iterator[Difference]:
    for key in both:
        spec = CATALOGUE.get(key[:2])
        ours, theirs = left.metrics[key], right.metrics[key]
        if spec is None or ours.value == theirs.value or _is_constant(spec):
            continue
        weight = _weight(spec, ours.value, theirs.value)
        if weight is not None:
            apart = _share(ours.value, theirs.value)
            yield Difference(weight, _shown(key), _number(ours), _number(theirs), round(apart, 3))


def _weight(spec: MetricSpec, ours: float, theirs: float) -> Weight | None:
    if spec.kind is Kind.STATE:
        return Weight.STATE
    if any(word in spec.name for word in _ERRORS):
        few, many = sorted((abs(ours), abs(theirs)))
        return Weight.ERRORS if few == 0 or many > 10 * few else None
    far = _share(ours, theirs) > _APART and spec.kind is Kind.GAUGE and spec.priority is not Priority.LOW
    return Weight.NUMBER if far else None


def _share(ours: float, theirs: float) -> float:
    return abs(ours - theirs) / max(abs(ours), abs(theirs))


def _devices(left: Side, right: Side) -> Iterator[Difference]:
    """What only one side has, a line a thing, where the other could have told of it."""
    things: dict[tuple[str, str], list[int]] = {}
    both = _components(left) & _components(right)
    for number, (side, other) in enumerate(((left, right), (right, left))):
        for component, name, labels in side.metrics.keys() - other.metrics.keys():
            spec = CATALOGUE.get((component, name))
            untold = (component, name) in other.missing or (component, "*") in other.missing
            if untold or not labels or spec is None or _is_constant(spec) or component not in both:
                continue
            thing = " ".join(f"{key}={text}" for key, text in labels[:2])
            things.setdefault((component, thing), [0, 0])[number] += 1
    for (component, thing), counts in things.items():
        if 0 in counts:
            ours, theirs = (f"{count} readings" if count else "not there" for count in counts)
            yield Difference(Weight.DEVICE, f"{component} {thing}", ours, theirs)


def _components(side: Side) -> set[str]:
    """Those that it tells anything of: of a node that is not observed by a daemon, nobody tells what that costs."""
    dark = {what[0] for what, one in side.missing.items() if one.state is not Absence.NOT_APPLICABLE}
    return dark | {key[0] for key in side.metrics}


def _not_compared(left: Side, right: Side) -> list[NotCompared]:
    found = []
    for what in sorted(left.missing.keys() | right.missing.keys()):
        absences = [side.missing.get(what) for side in (left, right)]
        if all(one is None or one.state is Absence.NOT_APPLICABLE for one in absences):
            continue
        texts = [f"{one.state}: {one.reason}" if one is not None else "" for one in absences]
        found.append(NotCompared(".".join(what), *texts))
    none = "no readings of it"
    found += [NotCompared(f"{component}.*", "", none) for component in sorted(_components(left) - _components(right))]
    found += [NotCompared(f"{component}.*", none, "") for component in sorted(_components(right) - _components(left))]
    for side, other in ((left, right), (right, left)):
        if side.health is None and other.health is not None:
            untold = "it was not judged"
            found.append(NotCompared("health", untold if side is left else "", untold if side is right else ""))
    return found


def _shown(key: Key) -> str:
    component, name, labels = key
    return f"{component}.{name}" + (" " + " ".join(f"{label}={text}" for label, text in labels) if labels else "")


def _number(one: Metric) -> str:
    return f"{one.value:g} {one.unit}".strip()
