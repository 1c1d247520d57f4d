"""From readings to the numbers that a rule judges."""

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.errors import Absence
from nodeproof.health.growth import Growth, Key
from nodeproof.health.readings import Readings
from nodeproof.health.rules import How, Probe
from nodeproof.model.catalogue import Kind
from nodeproof.model.metric import Labels, Metric, Missing

__all__ = ["Moment", "Sample", "Seen", "Sight", "entity_of", "is_counter", "look", "series", "stamp_of"]

_NOT_ASKED = "no collector brought it"
_SECOND_READING = "a second reading is needed to tell growth"
_NO_SIZE = "no device tells both its size and how much of it is in use"
_NO_FACTOR = "what the threshold is reckoned from could not be read"


class Sample(NamedTuple):
    """One number to be judged."""

    metric: Metric
    value: float
    entity: tuple[str, ...]
    stamp: str
    """Tells a fresh reading from one already seen."""
    factor: float = 1.0


class Moment(NamedTuple):
    """What is known at one moment, and what counters did until then."""

    readings: Readings
    growth: Growth
    at: Instant
    changed: Collection[str]
    """Components with a batch that was not judged before. The others have nothing new to say: conditions move with fresh readings
    only, and growth is reckoned up to the newest of them."""
    seen: "dict[int, Seen]"
    """What each probe saw before, by its identity. Outlives the moment."""
    touched: Mapping[str, Collection[str] | None] = {}
    """Names of metrics that a changed component tells anew, or tells no more; None = all of them."""

    def leaves_alone(self, probe: Probe) -> bool:
        """Whether nothing that ``probe`` looks at was read anew."""
        if probe.component not in self.changed:
            return True
        touched = self.touched.get(probe.component)
        return touched is not None and not any(name in touched for name in (*probe.names, probe.unless))


class Sight(NamedTuple):
    """What one probe saw."""

    samples: list[Sample]
    unread: list[Missing]
    """What applies to this node and could not be read."""
    applies: bool
    known: float
    """Share of the things looked for that could be read, 0 to 1."""


class Seen(NamedTuple):
    """A sight and all that it was reckoned from."""

    probe: Probe
    """Kept, so that its identity stays its own."""
    found: list[Sequence[Metric]]
    told: list[Sequence[Missing]]
    sight: Sight


def look(probe: Probe, moment: Moment) -> Sight:
    """Everything that ``probe`` is about.

    The same sight as the last time, the same object, when nothing of that was read anew since: slow groups hand out what they
    read last, and most of what a large host tells comes from slow groups.
    """
    seen = moment.seen.get(id(probe))
    if seen is not None and moment.leaves_alone(probe):
        return seen.sight
    readings = moment.readings
    if probe.from_zero:
        _mark_families(probe, moment)
    found = [readings.metrics(probe.component, name) for name in (*probe.names, *_exceptions(probe))]
    told = [readings.missing(probe.component, name) for name in probe.names]
    if seen is not None and _same(found, seen.found) and _same(told, seen.told):
        return seen.sight
    sight = _reckon(probe, moment, found, told)
    if _stands(probe, sight):
        moment.seen[id(probe)] = Seen(probe, found, told, sight)
    else:
        moment.seen.pop(id(probe), None)
    return sight


def _exceptions(probe: Probe) -> tuple[str, ...]:
    return (probe.unless,) if probe.unless else ()


def _same(one: Sequence[Sequence[object]], other: Sequence[Sequence[object]]) -> bool:
    return all(len(a) == len(b) and all(map(operator.is_, a, b)) for a, b in zip(one, other, strict=True))


def _stands(probe: Probe, sight: Sight) -> bool:
    """Whether ``sight`` follows from its readings alone: growth fades with time, and factors are read elsewhere."""
    if probe.factor:
        return False
    return probe.how is not How.GROWTH or not any(sample.value for sample in sight.samples)


def _reckon(probe: Probe, moment: Moment, found: Sequence[Sequence[Metric]], told: Sequence[Sequence[Missing]]) -> Sight:
    metrics: Sequence[Metric]
    if probe.unless:
        *found, exceptions = found
        excepted = {entity_of(probe, one.labels) for one in exceptions if one.value}
        found = [[one for one in metrics if entity_of(probe, one.labels) not in excepted] for metrics in found]
        if excepted and not any(found):
            return Sight([], [], applies=False, known=1.0)
    if len(found) == 1 and not probe.where:
        metrics = found[0]
    else:
        metrics = [metric for metrics in found for metric in metrics if not probe.where or _matches(probe.where, metric.labels)]
    absences = [entry for entries in told for entry in entries if not probe.where or _may_match(probe.where, entry.labels)]
    unread = [entry for entry in absences if entry.state is not Absence.NOT_APPLICABLE]
    if not metrics and not unread:
        if absences or any(found):
            return Sight([], [], applies=False, known=1.0)
        return Sight([], [_never_told(probe)], applies=True, known=0.0)
    samples, doubts = _samples(probe, metrics, moment)
    unread += doubts
    read = {entity_of(probe, one.labels) for one in metrics} if probe.how is How.POOL else {one.entity for one in samples}
    return Sight(samples, unread, applies=True, known=_known(probe, read, unread) if samples else 0.0)


def _mono_s(probe: Probe, moment: Moment) -> float:
    """When the component was read."""
    batch = moment.readings.batch(probe.component)
    return moment.at.mono_s if batch is None else batch.mono_s


def _mark_families(probe: Probe, moment: Moment) -> None:
    """Remember since when a metric is read at all: series of it that appear later began at 0."""
    for name in probe.names:
        if moment.readings.metrics(probe.component, name):
            moment.growth.mark(_family(probe, name), _mono_s(probe, moment))


def _family(probe: Probe, name: str) -> Key:
    return (probe.component, name, probe.window_s)


def _matches(where: tuple[tuple[str, str], ...], labels: Labels | None) -> bool:
    if labels is None:
        return not where
    for key, wanted in where:
        value = labels.get(key)
        if value != wanted and not _fits(wanted, value):
            return False
    return True


def _fits(wanted: str, value: str | None) -> bool:
    if value is None or wanted[-1:] != "*":
        return False
    part = wanted[:-1]
    return part[1:] in value if part.startswith("*") else value.startswith(part)


def _may_match(where: tuple[tuple[str, str], ...], labels: Labels | None) -> bool:
    """Whether an absence is about something the probe looks for: labels it does not have say nothing against it."""
    return labels is None or _matches(tuple(pair for pair in where if pair[0] in labels), labels)


def _never_told(probe: Probe) -> Missing:
    return Missing(probe.component, probe.names[0], Absence.UNKNOWN, _NOT_ASKED)


def entity_of(probe: Probe, labels: Labels | None) -> tuple[str, ...]:
    """Which thing labels speak of; empty where they name none."""
    keys = probe.entity
    if not keys or labels is None:
        return ()
    # Asked for thousands of readings at each judgement, most of them told apart by one label.
    return (labels.get(keys[0], ""),) if len(keys) == 1 else tuple([labels.get(key, "") for key in keys])


def _samples(probe: Probe, metrics: Sequence[Metric], moment: Moment) -> tuple[list[Sample], list[Missing]]:
    readings, growth = moment.readings, moment.growth
    mono_s = _mono_s(probe, moment)
    if probe.how is How.GROWTH:
        return _grown(probe, metrics, readings, growth, mono_s)
    if probe.how in {How.POOL, How.OCCUPIED}:
        metrics = _pooled(metrics) if probe.how is How.POOL else _occupied(probe, metrics)
        if not metrics:
            return [], [Missing(probe.component, probe.names[0], Absence.UNKNOWN, _NO_SIZE)]
    plain = [Sample(m, m.value, entity_of(probe, m.labels), stamp_of(m, mono_s)) for m in metrics]
    if probe.how is How.PEAK:
        plain = [s._replace(value=growth.of_peak(series(probe, s.metric), s.value, mono_s)) for s in plain]
    return (plain, []) if not probe.factor else _with_factor(probe, plain, readings)


def stamp_of(metric: Metric, mono_s: float) -> str:
    """What tells this reading from the one before it."""
    return metric.timestamp or str(mono_s)


def series(probe: Probe, metric: Metric) -> Key:
    """What tells the series of ``metric`` from all others that ``probe`` or another one looks at."""
    labels = metric.labels
    return (metric.component, metric.name, probe.window_s, *(labels.values() if labels else ()))


def is_counter(readings: Readings, metric: Metric) -> bool:
    """Whether it counts since some beginning; a reading that is a gain since the one before it does not."""
    spec = readings.catalogue.get((metric.component, metric.name))
    return spec is None or spec.kind is Kind.COUNTER


def _grown(
    probe: Probe, metrics: Sequence[Metric], readings: Readings, growth: Growth, mono_s: float
) -> tuple[list[Sample], list[Missing]]:
    samples: list[Sample] = []
    doubts: list[Missing] = []
    counters: dict[str, bool] = {}
    for metric in metrics:
        key = series(probe, metric)
        stamp = stamp_of(metric, mono_s)
        counts = counters.get(metric.name)
        if counts is None:
            counts = counters[metric.name] = is_counter(readings, metric)
        if counts:
            late = probe.from_zero and growth.began_before(_family(probe, metric.name), mono_s)
            gain = growth.of_counter(key, metric.value, stamp, mono_s, probe.window_s, from_zero=late)
        else:
            gain = growth.of_gains(key, metric.value, stamp, mono_s, probe.window_s)
        if gain is None:
            doubts.append(Missing(probe.component, metric.name, Absence.UNKNOWN, _SECOND_READING, metric.labels))
        else:
            samples.append(Sample(metric, gain, entity_of(probe, metric.labels), stamp))
    return samples, doubts


def _pooled(metrics: Iterable[Metric]) -> list[Metric]:
    used: dict[str, Metric] = {}
    total: dict[str, Metric] = {}
    for metric in metrics:
        labels = metric.labels or {}
        field = labels.get("field")
        if field == "used":
            used.setdefault(labels.get("device", ""), metric)
        elif field == "total":
            total.setdefault(labels.get("device", ""), metric)
    both = [device for device in total if device in used]
    size = sum(total[device].value for device in both)
    if not size:
        return []
    first = total[both[0]]
    share = 100.0 * sum(used[device].value for device in both) / size
    return [Metric(first.component, first.name, round(share, 2), "%", None, first.timestamp)]


def _occupied(probe: Probe, metrics: Iterable[Metric]) -> list[Metric]:
    used: dict[tuple[str, ...], Metric] = {}
    available: dict[tuple[str, ...], float] = {}
    for metric in metrics:
        field = (metric.labels or {}).get("field")
        if field == "used":
            used.setdefault(entity_of(probe, metric.labels), metric)
        elif field == "available":
            available.setdefault(entity_of(probe, metric.labels), metric.value)
    found = []
    for entity, metric in used.items():
        size = metric.value + available.get(entity, 0.0)
        if entity in available and size > 0:
            share = round(100.0 * metric.value / size, 2)
            labels = {key: value for key, value in (metric.labels or {}).items() if key != "field"}
            found.append(Metric(metric.component, metric.name, share, "%", labels, metric.timestamp))
    return found


def _with_factor(probe: Probe, plain: list[Sample], readings: Readings) -> tuple[list[Sample], list[Missing]]:
    factors: dict[tuple[str, ...], float] = {}
    for component, name in probe.factor:
        for metric in readings.metrics(component, name):
            factors.setdefault(entity_of(probe, metric.labels), metric.value)
    samples = [s._replace(factor=factors[s.entity]) for s in plain if s.entity in factors]
    if samples or not plain:
        return samples, []
    return [], [Missing(probe.component, probe.names[0], Absence.UNKNOWN, _NO_FACTOR)]


def _known(probe: Probe, read: set[tuple[str, ...]], unread: list[Missing]) -> float:
    """Share of entities read. Where several names tell of one entity, one of them is enough."""
    if not probe.entity:
        return 1.0
    dark: set[tuple[str, ...]] = set()
    for entry in unread:
        entity = entity_of(probe, entry.labels)
        if entity:
            dark.add(entity)
        elif len(probe.names) == 1:
            dark.add(("", entry.reason))
    dark -= read
    return len(read) / (len(read) + len(dark))
