"""Trends: the last sixty points of the series that viewers draw.

Two views of one ring: ``history`` as the reference writes it (numbers, nothing else), and ``history_series`` with the time of
each point, with gaps where nothing could be read, and with the entity that the newest value belongs to. Each point is encoded
once, when it is made; writing a snapshot only joins what is there.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from nodeproof.clock import rfc3339_parse
from nodeproof.model.metric import Batch, Labels, Metric
from nodeproof.model.snapshot import SeriesHistory

__all__ = ["DEFAULT_POINTS", "TRACKED_SERIES", "ComponentHistory", "TrackedSeries", "pick"]

DEFAULT_POINTS = 60


class TrackedSeries(NamedTuple):
    """Which reading makes the points of one series."""

    key: str
    """``<component>_<suffix>``: viewers group by that prefix."""
    component: str
    metric: str
    label: tuple[str, str] | None = None
    """Only readings with this label."""
    largest: bool = False
    """The largest of all matching readings; else the first one of the batch."""


TRACKED_SERIES: tuple[TrackedSeries, ...] = (
    TrackedSeries("cpu_usage", "cpu", "usage", ("core", "total")),
    TrackedSeries("cpu_load_average", "cpu", "load_average", ("interval", "1m")),
    TrackedSeries("memory_usage", "memory", "usage"),
    TrackedSeries("memory_swap_usage", "memory", "swap_usage"),
    TrackedSeries("disk_space_usage", "disk", "space_usage", largest=True),
    TrackedSeries("gpu_utilization", "gpu", "utilization"),
    TrackedSeries("gpu_memory_usage", "gpu", "memory_usage"),
    TrackedSeries("gpu_temperature", "gpu", "temperature"),
    TrackedSeries("npu_utilization", "npu", "utilization"),
    TrackedSeries("npu_memory_usage", "npu", "memory_usage"),
    TrackedSeries("npu_temperature", "npu", "temperature"),
    TrackedSeries("cpu_temperature", "cpu", "temperature", largest=True),
    TrackedSeries("cpu_power", "cpu", "power", largest=True),
    TrackedSeries("cpu_avg_freq", "cpu", "avg_freq"),
    TrackedSeries("cpu_context_switches", "cpu", "context_switches"),
    TrackedSeries("cpu_ce_errors", "cpu", "cpu_ce_errors", largest=True),
    TrackedSeries("memory_saturation", "memory", "saturation", ("interval", "avg10")),
    TrackedSeries("memory_fragmentation", "memory", "fragmentation", largest=True),
    TrackedSeries("memory_swap_in", "memory", "swap_in"),
    TrackedSeries("memory_power", "memory", "power", largest=True),
    TrackedSeries("disk_io_wait", "disk", "io_wait"),
    TrackedSeries("disk_iops", "disk", "iops", largest=True),
    TrackedSeries("disk_throughput", "disk", "throughput", largest=True),
    TrackedSeries("network_throughput", "network", "throughput", largest=True),
    TrackedSeries("network_packet_count", "network", "packet_count", largest=True),
    TrackedSeries("network_error_count", "network", "error_count", largest=True),
)
"""The one place to extend which readings get a trend. A component has at most one series of a metric."""

_component_of = attrgetter("component")
_RULES: Mapping[str, Mapping[str, TrackedSeries]] = {
    component: {series.metric: series for series in group}
    for component, group in groupby(sorted(TRACKED_SERIES, key=_component_of), key=_component_of)
}
_encode = msgspec.json.Encoder().encode


def pick(component: str, readings: Mapping[str, Sequence[Metric]]) -> dict[str, Metric]:
    """Of ``readings`` by name, the one that makes the next point of each series of ``component``, by series key."""
    rules = _RULES.get(component)
    if rules is None:
        return {}
    picked: dict[str, Metric] = {}
    for name, rule in rules.items():
        for metric in readings.get(name, ()):
            if rule.label is not None and (metric.labels is None or metric.labels.get(rule.label[0]) != rule.label[1]):
                continue
            best = picked.get(rule.key)
            if best is None or (rule.largest and metric.value > best.value):
                picked[rule.key] = metric
            if not rule.largest:
                break
    return picked


class _Ring:
    """Points of one series, and each of them as JSON."""

    __slots__ = ("entity", "numbers", "numbers_json", "points", "points_json")

    def __init__(self, size: int) -> None:
        self.numbers: deque[float] = deque(maxlen=size)
        self.numbers_json: deque[bytes] = deque(maxlen=size)
        self.points: deque[tuple[float, float | None]] = deque(maxlen=size)
        self.points_json: deque[bytes] = deque(maxlen=size)
        self.entity: Labels = {}

    def add(self, wall_s: float, metric: Metric) -> None:
        number = _encode(metric.value)
        self.numbers.append(metric.value)
        self.numbers_json.append(number)
        self.points.append((wall_s, metric.value))
        self.points_json.append(b"[%b,%b]" % (_encode(wall_s), number))
        self.entity = metric.labels or {}

    def gap(self, wall_s: float) -> None:
        self.points.append((wall_s, None))
        self.points_json.append(b"[%b,null]" % _encode(wall_s))


class ComponentHistory:
    """Trends of one component. A series begins with its first value; from then on every batch makes a point, or a gap."""

    def __init__(self, component: str, size: int = DEFAULT_POINTS) -> None:
        self._component = component
        self._size = size if size > 0 else DEFAULT_POINTS
        self._rings: dict[str, _Ring] = {}
        self._last: tuple[float, float] | None = None
        """Wall and monotonic time of the last batch."""

    def update(self, batch: Batch, stale_after_s: float) -> None:
        """A point of each series. A pause longer than ``stale_after_s`` leaves a gap, so that no line is drawn across it."""
        wall_s = round(rfc3339_parse(batch.timestamp), 3)
        picked = pick(self._component, batch.by_name)
        if self._last is not None and batch.mono_s - self._last[1] > stale_after_s:
            for ring in self._rings.values():
                ring.gap(round(self._last[0] + stale_after_s, 3))
        self._last = (wall_s, batch.mono_s)
        for key, metric in picked.items():
            if key not in self._rings:
                self._rings[key] = _Ring(self._size)
            self._rings[key].add(wall_s, metric)
        for key, ring in self._rings.items():
            if key not in picked:
                ring.gap(wall_s)

    def numbers(self) -> dict[str, list[float]]:
        """A copy of the numbers, as the reference keeps them."""
        return {key: list(ring.numbers) for key, ring in self._rings.items()}

    def series(self) -> dict[str, SeriesHistory]:
        """A copy of the points with times, gaps and entities."""
        return {key: SeriesHistory(list(ring.points), ring.entity) for key, ring in self._rings.items()}

    def numbers_json(self) -> msgspec.Raw:
        """JSON of :meth:`numbers`."""
        return _object(b'"%b":[%b]' % (key.encode(), b",".join(ring.numbers_json)) for key, ring in self._rings.items())

    def series_json(self) -> msgspec.Raw:
        """JSON of :meth:`series`."""
        return _object(
            b'"%b":{"points":[%b]%b}'
            % (
                key.encode(),
                b",".join(ring.points_json),
                b',"entity":%b' % _encode(ring.entity) if ring.entity else b"",
            )
            for key, ring in self._rings.items()
        )


def _object(members: Iterable[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"{%b}" % b",".join(members))
