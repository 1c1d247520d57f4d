"""Conditions of health rules as PromQL over the series of our exporter, in its names and base units."""

import re
from collections.abc import Sequence

from nodeproof.health.rules import Compare, How, Limit, Probe
from nodeproof.model.catalogue import CATALOGUE, Kind
from nodeproof.sinks.exposition_names import Family, Naming, family

__all__ = ["Untranslatable", "expression", "family_of", "number"]

_PEAK_WINDOW = "7d"
_GOOD_WINDOW = "1d"
_NODE = "instance"


class Untranslatable(ValueError):  # noqa: N818 - it is an answer: this rule has no such form
    """A condition that series of an exporter cannot express; the message says why."""


def family_of(component: str, name: str) -> Family:
    """The family of a metric. Raises Untranslatable for one that is no series."""
    spec = CATALOGUE.get((component, name))
    if spec is None:
        raise Untranslatable(f"{component}.{name} is concluded by the daemon and no series of its own")
    return family(component, name, spec.unit, spec, Naming.NODEPROOF)


def expression(limit: Limit, *, after_good: bool = False) -> str:
    """When ``limit`` holds, an entity a result. Raises Untranslatable."""
    text = " or ".join(_one(limit, name, after_good=after_good) for name in limit.probe.names)
    if limit.probe.unless:
        on = ", ".join((_NODE, *limit.probe.entity))
        state = family_of(limit.probe.component, limit.probe.unless).name
        text = f"({text}) unless on ({on}) ({state} != 0)"
    return text


def _one(limit: Limit, name: str, *, after_good: bool) -> str:
    probe = limit.probe
    of = family_of(probe.component, name)
    scale = _scale(of, probe.how)
    series = of.name + _matchers(probe.where)
    if limit.compare is Compare.BITS:
        return _bits(series, int(limit.threshold))
    text = f"{_value(probe, name, series)} {_operator(limit.compare)} {_edge(probe, limit.threshold * scale)}"
    if probe.how is How.GROWTH and probe.from_zero:
        window = _window(probe.window_s)
        text = f"({text} or ({series} > {number(limit.threshold * scale)} unless {series} offset {window}))"
    if after_good:
        text = f"({text} and max_over_time({series}[{_GOOD_WINDOW}]) >= {number(limit.threshold * scale)})"
    return text


def _value(probe: Probe, name: str, series: str) -> str:
    match probe.how:
        case How.VALUE:
            return series
        case How.GROWTH:
            return _growth(probe, name, series)
        case How.PEAK:
            return f"{series} / max_over_time({series}[{_PEAK_WINDOW}])"
        case How.POOL:
            by = ", ".join((_NODE, *probe.entity))
            parts = [_with(series, "field", field) for field in ("used", "total")]
            return f"sum by ({by}) ({parts[0]}) / sum by ({by}) ({parts[1]})"
        case How.OCCUPIED:
            used, free = (_with(series, "field", field) for field in ("used", "available"))
            return f"{used} / ignoring (field) ({used} + ignoring (field) {free})"


def _growth(probe: Probe, name: str, series: str) -> str:
    if CATALOGUE[probe.component, name].kind is not Kind.COUNTER:
        raise Untranslatable(f"{probe.component}.{name} is a gain between two readings, which scrapes miss or count twice")
    return f"increase({series}[{_window(probe.window_s)}])"


def _edge(probe: Probe, threshold: float) -> str:
    if not probe.factor:
        return number(threshold)
    on = ", ".join((_NODE, *probe.entity))
    factors = " or ".join(family_of(*factor).name for factor in probe.factor)
    return f"on ({on}) group_left () ({number(threshold)} * ({factors}))"


def _bits(series: str, mask: int) -> str:
    """PromQL knows no bits: each is found by halving."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return " or ".join(f"(floor({series} / {bit}) % 2 == 1)" for bit in bits)


def _scale(of: Family, how: How) -> float:
    """From the unit of the rule to that of the series; shares are reckoned here, as ratios."""
    return 0.01 if how in {How.POOL, How.OCCUPIED, How.PEAK} else of.multiply / of.divide


def _matchers(where: Sequence[tuple[str, str]]) -> str:
    parts = []
    for label, value in where:
        if "*" in value:
            pattern = ".*".join(re.escape(part).replace("\\", "\\\\") for part in value.split("*"))
            parts.append(f'{label}=~"{pattern}"')
        else:
            parts.append(f'{label}="{value}"')
    return "{" + ",".join(parts) + "}" if parts else ""


def _with(series: str, label: str, value: str) -> str:
    if series.endswith("}"):
        return f'{series[:-1]},{label}="{value}"}}'
    return f'{series}{{{label}="{value}"}}'


def _operator(compare: Compare) -> str:
    return "==" if compare is Compare.EQUAL else str(compare)


def _window(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def number(value: float) -> str:
    """As short as it can be written exactly enough."""
    return f"{value:.12g}"
