"""A third party's strict reader of a snapshot directory, written from the format's description alone, never from our writer.

What the description names must be there with its type: a missing key, null, a wrong type, a number that is none, a time without
offset are all errors. Unknown keys are let pass, as a typed reader does. ``deductions`` alone may be null.

``read_directory`` gives typed values or raises :class:`StrictError` with every problem found, each with file and JSON path.
"""

import json
import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

__all__ = [
    "CollectorRow",
    "ComponentFile",
    "ComponentHealth",
    "Deduction",
    "Directory",
    "GlobalFile",
    "Health",
    "MetricRow",
    "StrictError",
    "read_component",
    "read_directory",
    "read_global",
]

_T = TypeVar("_T")

_COMPONENTS = {"chassis", "cpu", "disk", "gpu", "memory", "network", "npu"}
_SPEC_COMPONENTS = _COMPONENTS | {"system"}
_SERVER_TYPES = {"cpu_only", "accelerated"}
_PRIORITIES = {"Low", "Medium", "High"}
_HISTORY_POINTS = 60
_RFC3339 = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$")
_GO_DURATION = re.compile(r"^(\d+h)?(\d+m)?(\d+(\.\d+)?(ns|us|µs|ms|s))?$")


class StrictError(Exception):
    """The directory does not hold what the format says."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class MetricRow:
    """One metric."""

    component: str
    name: str
    value: float
    unit: str
    timestamp: datetime
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ComponentFile:
    """``snapshot_<component>.json``."""

    component: str
    timestamp: datetime
    metrics: list[MetricRow]
    history: dict[str, list[float]]
    specs: list[MetricRow]


@dataclass(frozen=True)
class Deduction:
    """One rule that took points."""

    rule: str
    penalty: float


@dataclass(frozen=True)
class ComponentHealth:
    """Score of one component."""

    score: int
    max: int
    deductions: list[Deduction]


@dataclass(frozen=True)
class Health:
    """Score of the whole."""

    score: int
    grade: str
    server_type: str
    components: dict[str, ComponentHealth]
    timestamp: datetime


@dataclass(frozen=True)
class CollectorRow:
    """One collector of the daemon."""

    name: str
    component: str
    priority: str
    interval: str
    enabled: bool


@dataclass(frozen=True)
class GlobalFile:
    """``snapshot.json``."""

    session_id: str
    timestamp: datetime
    refresh_interval_ms: int
    intervals_ms: dict[str, int]
    health: Health
    collectors: list[CollectorRow]
    system_specs: list[MetricRow]


@dataclass(frozen=True)
class Directory:
    """Everything in one snapshot directory."""

    overall: GlobalFile
    components: dict[str, ComponentFile]


class _Stop(Exception):  # noqa: N818 - leaves one value; the problem is already noted
    pass


class _Node:
    """One JSON value, the way to it, and the list that problems go to."""

    def __init__(self, value: Any, path: str, problems: list[str]) -> None:
        self.value = value
        self.path = path
        self.problems = problems

    def wrong(self, expected: str) -> _Stop:
        shown = json.dumps(self.value, ensure_ascii=False)[:60]
        self.problems.append(f"{self.path}: {shown} is not {expected}")
        return _Stop()

    def key(self, name: str) -> "_Node":
        """A required key."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        if name not in self.value:
            self.problems.append(f"{self.path}: key {name!r} is missing")
            raise _Stop
        return _Node(self.value[name], f"{self.path}.{name}", self.problems)

    def optional(self, name: str, read: "Callable[[_Node], _T]", default: _T) -> _T:
        """An optional key: left out, or of its type; null is neither."""
        if isinstance(self.value, dict) and name not in self.value:
            return default
        return read(self.key(name))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def name(self) -> str:
        if not self.text():
            raise self.wrong("a string that is not empty")
        return self.text()

    def one_of(self, allowed: set[str]) -> str:
        if self.text() not in allowed:
            raise self.wrong(f"one of {', '.join(sorted(allowed))}")
        return self.text()

    def integer(self) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.wrong("an integer")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise self.wrong("a finite number")
        return float(self.value)

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def moment(self) -> datetime:
        match = _RFC3339.match(self.text())
        if match is None:
            raise self.wrong("an RFC 3339 time with its offset")
        fraction = (match[2] or ".0")[:7].ljust(7, "0")
        try:
            return datetime.fromisoformat(f"{match[1]}{fraction}{match[3].replace('Z', '+00:00')}")
        except ValueError:
            raise self.wrong("a moment that exists") from None

    def items(self, read: "Callable[[_Node], _T]") -> list[_T]:
        """Every item of a list; one bad item does not hide the others' problems."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        nodes = [_Node(item, f"{self.path}[{number}]", self.problems) for number, item in enumerate(self.value)]
        return _all(nodes, read)

    def entries(self, read: "Callable[[_Node], _T]") -> dict[str, _T]:
        """Every value of an object used as a map."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        nodes = [_Node(item, f"{self.path}[{name!r}]", self.problems) for name, item in self.value.items()]
        return dict(zip(self.value, _all(nodes, read), strict=True))


def _all(nodes: list[_Node], read: Callable[[_Node], _T]) -> list[_T]:
    found: list[_T] = []
    failed = False
    for node in nodes:
        try:
            found.append(read(node))
        except _Stop:
            failed = True
    if failed:
        raise _Stop
    return found


def _labels(node: _Node) -> dict[str, str]:
    labels = node.entries(_Node.text)
    if not labels:
        raise node.wrong("left out, as empty labels are")
    return labels


def _metric(node: _Node, components: set[str]) -> MetricRow:
    return MetricRow(
        component=node.key("component").one_of(components),
        name=node.key("name").name(),
        value=node.key("value").number(),
        unit=node.key("unit").text(),
        timestamp=node.key("timestamp").moment(),
        labels=node.optional("labels", _labels, {}),
    )


def _specs(node: _Node) -> list[MetricRow]:
    specs = node.items(lambda item: _metric(item, _SPEC_COMPONENTS))
    if not specs:
        raise node.wrong("left out, as empty specs are")
    return specs


def _component(node: _Node, component: str) -> ComponentFile:
    def points(series: _Node) -> list[float]:
        values = series.items(_Node.number)
        if len(values) > _HISTORY_POINTS:
            raise series.wrong(f"at most {_HISTORY_POINTS} points")
        return values

    history = node.key("history")
    found = ComponentFile(
        component=node.key("component").one_of({component}),
        timestamp=node.key("timestamp").moment(),
        metrics=node.key("metrics").items(lambda item: _metric(item, {component})),
        history=history.entries(points),
        specs=node.optional("specs", _specs, []),
    )
    for key in found.history:
        if not key.startswith(f"{component}_"):
            raise _Node(key, f"{history.path} key", node.problems).wrong(f"a series of {component}: {component}_...")
    return found


def _component_health(node: _Node) -> ComponentHealth:
    deductions = node.key("deductions")
    return ComponentHealth(
        score=node.key("score").integer(),
        max=node.key("max").integer(),
        deductions=[]
        if deductions.value is None
        else deductions.items(lambda item: Deduction(item.key("rule").name(), item.key("penalty").number())),
    )


def _health(node: _Node) -> Health:
    return Health(
        score=node.key("score").integer(),
        grade=node.key("grade").name(),
        server_type=node.key("server_type").one_of(_SERVER_TYPES),
        components=node.key("components").entries(_component_health),
        timestamp=node.key("timestamp").moment(),
    )


def _collector(node: _Node) -> CollectorRow:
    interval = node.key("interval")
    if not _GO_DURATION.match(interval.name()):
        raise interval.wrong("a duration such as 3s or 1m30s")
    return CollectorRow(
        name=node.key("name").name(),
        component=node.key("component").name(),
        priority=node.key("priority").one_of(_PRIORITIES),
        interval=interval.text(),
        enabled=node.key("enabled").boolean(),
    )


def _intervals(node: _Node) -> dict[str, int]:
    intervals = node.entries(_Node.integer)
    if not intervals:
        raise node.wrong("left out, as empty intervals are")
    return intervals


def _global(node: _Node) -> GlobalFile:
    session = node.key("session_id")
    if not re.fullmatch(r"\d+", session.text()):
        raise session.wrong("seconds since the epoch, as a string")
    return GlobalFile(
        session_id=session.text(),
        timestamp=node.key("timestamp").moment(),
        refresh_interval_ms=node.key("refresh_interval_ms").integer(),
        intervals_ms=node.optional("intervals_ms", _intervals, {}),
        health=_health(node.key("health")),
        collectors=node.key("collectors").items(_collector),
        system_specs=node.optional("system_specs", _specs, []),
    )


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _load(path: Path, read: Callable[[_Node], _T]) -> _T:
    problems: list[str] = []
    try:
        value = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except (OSError, ValueError) as error:
        raise StrictError([f"{path.name}: {error}"]) from None
    try:
        return read(_Node(value, path.name, problems))
    except _Stop:
        raise StrictError(problems) from None


def read_global(path: Path) -> GlobalFile:
    """Read ``snapshot.json``. Raises StrictError."""
    return _load(path, _global)


def read_component(path: Path, also: Collection[str] = ()) -> ComponentFile:
    """Read ``snapshot_<component>.json``. Raises StrictError, also when the name tells another component.

    ``also``: components beyond the seven of the format, whose files have the same form.
    """
    component = path.name.removeprefix("snapshot_").removesuffix(".json")
    if component not in _COMPONENTS and component not in also:
        raise StrictError([f"{path.name}: {component!r} is no component"])
    return _load(path, lambda node: _component(node, component))


def read_directory(folder: Path, also: Collection[str] = ()) -> Directory:
    """Read every snapshot file of ``folder``. Raises StrictError with the problems of all of them; ``also`` as above."""
    problems: list[str] = []
    overall: GlobalFile | None = None
    try:
        overall = read_global(folder / "snapshot.json")
    except StrictError as error:
        problems += error.problems
    components: dict[str, ComponentFile] = {}
    for path in sorted(folder.glob("snapshot_*.json")):
        try:
            found = read_component(path, also)
            components[found.component] = found
        except StrictError as error:
            problems += error.problems
    if problems or overall is None:
        raise StrictError(problems)
    return Directory(overall, components)
