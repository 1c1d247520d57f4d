"""Rules and samples in words: thresholds, readings, what ends a condition."""

from nodeproof.clock import rfc3339
from nodeproof.errors import Absence
from nodeproof.health.latch import Held
from nodeproof.health.readings import Readings
from nodeproof.health.rules import HOUR_S, Compare, How, Limit, Probe
from nodeproof.health.sample import Moment, Sample
from nodeproof.model.health import Finding, Reading, Severity, UnknownConcern
from nodeproof.model.metric import Missing

__all__ = ["clears_text", "finding", "plain", "reading_of", "threshold_text", "unit_of", "unknown_of"]

_TELLING = {Absence.NO_PERMISSION: 0, Absence.READ_ERROR: 1, Absence.STALE: 2, Absence.UNKNOWN: 3, Absence.UNSUPPORTED: 4}
"""States of absence, the most telling first."""

_ENDS = {
    Compare.ABOVE: "<=",
    Compare.AT_LEAST: "<",
    Compare.BELOW: ">=",
    Compare.EQUAL: "other than",
    Compare.BITS: "without any bit of",
}
"""The opposite of a condition."""

_LONGEST = 120
"""Characters of a label that a message repeats."""


def _span(seconds: float) -> str:
    """``24 h``, ``10 min``, ``3 s``."""
    if seconds >= HOUR_S:
        return f"{seconds / HOUR_S:g} h"
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def _amount(value: float, unit: str) -> str:
    number = f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return f"{number} {unit}".rstrip()


def unit_of(probe: Probe, readings: Readings) -> str:
    """Unit of the numbers that are judged."""
    if probe.how in {How.PEAK, How.POOL, How.OCCUPIED}:
        return "%"
    spec = readings.catalogue.get((probe.component, probe.names[0]))
    return "" if spec is None else spec.unit


def _judged_as(probe: Probe) -> str:
    if probe.how is How.GROWTH:
        return f"growth within {_span(probe.window_s)}"
    return "share of its best" if probe.how is How.PEAK else ""


def _edge(limit: Limit, edge: float, factor: float | None, unit: str) -> str:
    if limit.probe.factor and factor is None:
        return f"{edge:g} * {limit.probe.factor[0][1]}"
    return _amount(edge * (1.0 if factor is None else factor), unit)


def threshold_text(limit: Limit, unit: str, factor: float | None) -> str:
    """The condition: ``> 90 %``, ``> 0 count (growth within 24 h)``."""
    note = _judged_as(limit.probe)
    return f"{limit.compare} {_edge(limit, limit.threshold, factor, unit)}" + (f" ({note})" if note else "")


def clears_text(limit: Limit, unit: str, factor: float | None) -> str:
    """What ends it: ``<= 88 % for 30 s``."""
    edge = limit.threshold if limit.clear is None else limit.clear
    sign = _ENDS[limit.compare] if limit.clear is None or limit.compare is Compare.BELOW else "<="
    note = _judged_as(limit.probe)
    hold = f" for {_span(limit.leave_s)}" if limit.leave_s else ""
    return f"{sign} {_edge(limit, edge, factor, unit)}" + (f" ({note})" if note else "") + hold


def reading_of(probe: Probe, sample: Sample) -> Reading:
    """The sample as evidence: the reading itself, and the number that was judged where it is another one."""
    metric = sample.metric
    note = _judged_as(probe)
    return Reading(
        metric.component,
        metric.name,
        metric.value,
        metric.unit,
        metric.labels,
        round(sample.value, 6) if note else None,
        note,
    )


def finding(
    rule: str,
    severity: Severity,
    *,
    component: str,
    message: str,
    evidence: tuple[Limit, Held],
    moment: Moment,
    penalty: float = 0.0,
) -> Finding:
    """The finding that an active latch stands for."""
    limit, held = evidence
    readings, at = moment.readings, moment.at
    latch = held.latch
    sample = latch.sample
    spec = readings.catalogue.get((limit.probe.component, sample.metric.name))
    unit = unit_of(limit.probe, readings)
    return Finding(
        rule,
        severity,
        component,
        message,
        reading_of(limit.probe, sample),
        "" if spec is None else spec.source,
        round(max(0.0, at.mono_s - latch.read_mono_s), 3),
        threshold_text(limit, unit, sample.factor),
        clears_text(limit, unit, sample.factor),
        rfc3339(latch.since_wall_s),
        penalty,
        not held.current,
    )


def plain(text: str) -> str:
    """A label's value, fit for a sentence: printable, and not without end."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_LONGEST])


def unknown_of(component: str, concern: str, unread: list[Missing], weight: float) -> UnknownConcern:
    """Why ``concern`` could not be told: the most telling of its absences."""
    entry = min(unread, key=lambda one: _TELLING[one.state])
    more = len({(one.name, one.reason, one.state) for one in unread}) - 1
    reason = entry.reason + (f" (and {more} more)" if more else "")
    return UnknownConcern(component, concern, entry.state, reason, entry.remedy, entry.source, round(weight, 3))
