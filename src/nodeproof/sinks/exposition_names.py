"""From catalogue rows to Prometheus families: names, units, types, help, labels.

``nodeproof_<component>_<name>_<unit>`` in base units, ``_total`` on counters; or, for dashboards of the reference,
``catmonitor_<component>_<name>`` in the reference's own units. Rules: Prometheus text format 0.0.4 and OpenMetrics 1.0.
"""

import functools
import re
import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from nodeproof.model.catalogue import UNITS, BaseUnit, Kind, MetricSpec
from nodeproof.model.metric import Labels

__all__ = ["Family", "Format", "Naming", "family", "header", "series"]

_MAX_VALUE_CHARS = 200
_KEPT_VALUE_CHARS = 180
_MAX_NAME_CHARS = 160
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_]")
_INFO_SUFFIX = "_info"
_TOTAL_SUFFIX = "_total"
_REPLACEMENT = "\ufffd"

_UNIT_WORDS: Mapping[str, tuple[str, ...]] = {
    "%": ("percent", "pct"),
    "GB": ("gb",),
    "KB": ("kb",),
    "MB": ("mb",),
    "MHz": ("mhz",),
    "RPM": ("rpm",),
    "count/s": ("rate",),
    "h": ("hours", "h"),
    "ms": ("ms", "milliseconds"),
}
"""Words for a unit that a metric's own name may end in; the base unit takes their place."""

_ESCAPES: dict[int, str | None] = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))
_ESCAPES |= {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n"}
"""The three escapes that the format defines; all other control characters are dropped."""


class Format(StrEnum):
    """How the page is written."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Naming(StrEnum):
    """Whose names and units."""

    NODEPROOF = "nodeproof"
    CATMONITOR = "catmonitor"


class Family(NamedTuple):
    """One family: the samples under one HELP and TYPE."""

    name: str
    """Name of its samples."""
    kind: str
    """``gauge``, ``counter`` or ``unknown``."""
    unit: str
    """Base unit that the name ends in (before ``_total``); empty when it has none."""
    help: str
    multiply: float
    divide: float
    constant: bool
    """The labels carry the content and the value is always 1."""


def family(component: str, name: str, unit: str, spec: MetricSpec | None, naming: Naming) -> Family:
    """The family of a metric; ``spec`` is None for one that the catalogue does not know."""
    text = spec.help if spec is not None else f"{component}.{name}, of a collector that does not describe it."
    kind = _kind(spec)
    if naming is Naming.CATMONITOR:
        return Family(_name(f"catmonitor_{component}_{name}"), kind, "", text, 1.0, 1.0, constant=False)
    if spec is not None and spec.kind is Kind.INFO:
        base = _name(f"nodeproof_{component}_{name}").removesuffix(_INFO_SUFFIX)
        return Family(base + _INFO_SUFFIX, kind, "", text, 1.0, 1.0, constant=True)
    base_unit = UNITS.get(unit, BaseUnit("", 1.0))
    base = _name(f"nodeproof_{component}_{name}")
    totals = kind == "counter" or (spec is None and base.endswith(_TOTAL_SUFFIX))
    base = base.removesuffix(_TOTAL_SUFFIX)
    for word in (base_unit.suffix, *_UNIT_WORDS.get(unit, ())):
        if word and base.endswith(f"_{word}"):
            base = base.removesuffix(f"_{word}")
            break
    base += f"_{base_unit.suffix}" if base_unit.suffix else ""
    multiply, divide = _factors(base_unit.scale)
    return Family(base + (_TOTAL_SUFFIX if totals else ""), kind, base_unit.suffix, text, multiply, divide, constant=False)


@functools.lru_cache(maxsize=64)
def header(of: Family, form: Format) -> str:
    """HELP, TYPE and UNIT lines of a family."""
    if form is Format.TEXT:
        kind = "untyped" if of.kind == "unknown" else of.kind
        return f"# HELP {of.name} {_help(of.help, quotes=False)}\n# TYPE {of.name} {kind}\n"
    kind = of.kind
    name = of.name
    if kind == "counter":
        # OpenMetrics wants every counter to end in _total; the reference's names do not.
        kind = "counter" if name.endswith(_TOTAL_SUFFIX) else "unknown"
        name = name.removesuffix(_TOTAL_SUFFIX)
    unit = f"# UNIT {name} {of.unit}\n" if of.unit and name.endswith(f"_{of.unit}") else ""
    return f"# TYPE {name} {kind}\n{unit}# HELP {name} {_help(of.help, quotes=True)}\n"


def series(name: str, labels: Labels | None) -> str:
    """Name and labels of one sample: sorted, escaped, bounded. Two samples are the same series when these are equal."""
    if not labels:
        return name
    parts: dict[str, str] = {}
    for key in sorted(labels):
        # To Prometheus an empty label is no label.
        if value := _label_value(labels[key]):
            parts.setdefault(_label_name(key), value)
    if not parts:
        return name
    inside = ",".join([f'{key}="{parts[key]}"' for key in sorted(parts)])
    return f"{name}{{{inside}}}"


def _kind(spec: MetricSpec | None) -> str:
    if spec is None:
        return "unknown"
    return "counter" if spec.kind is Kind.COUNTER else "gauge"


def _factors(scale: float) -> tuple[float, float]:
    """Multiplier and divisor: 9.56 / 100 is 0.0956, and 9.56 * 0.01 is 0.09560000000000002."""
    inverse = round(1 / scale)
    return (1.0, float(inverse)) if scale < 1 and abs(scale * inverse - 1) < 1e-12 else (scale, 1.0)


def _name(text: str) -> str:
    """``text`` as part of a metric name; too long a one keeps its beginning and a checksum."""
    if len(text) > _MAX_NAME_CHARS:
        text = f"{text[:_MAX_NAME_CHARS]}_{_checksum(text)}"
    return _NOT_IN_NAME.sub("_", text)


def _label_name(text: str) -> str:
    name = _name(text)
    # Names that begin with two underscores are Prometheus' own; none may begin with a digit.
    return f"label_{name.lstrip('_')}" if name[:1].isdigit() or name.startswith("__") or not name else name


def _label_value(value: str) -> str:
    text = _encodable(str(value))
    if len(text) > _MAX_VALUE_CHARS:
        text = f"{text[:_KEPT_VALUE_CHARS]}…{_checksum(text)}"
    return text.translate(_ESCAPES)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join([_REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text])
    return text


def _help(text: str, *, quotes: bool) -> str:
    escaped = _encodable(text).translate(_ESCAPES)
    return escaped if quotes else escaped.replace('\\"', '"')


def _checksum(text: str) -> str:
    """So that two long texts with one beginning stay apart."""
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"
