"""The energy view: the 25 charts of observe.md 7.3, with their ids and order.

The reference kept the counters of the last request and answered with differences: two viewers halved each other's numbers. Here
shares and rates are those that the daemon measured over its own interval: every viewer gets the same answer, however often.
``network_rx`` and ``network_tx`` are bytes within one interval of the daemon's network collector.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nodeproof.model.metric import Metric
from nodeproof.web.feed import View

__all__ = ["Chart", "Energy", "Series", "energy"]

_TOTAL = {"core": "total"}
_UTILS: Mapping[str, tuple[str, ...]] = {
    "idle_util": ("idle_util",),
    "non_idle_util": ("user_util", "system_util", "iowait_util", "irq_util", "softirq_util", "steal_util"),
    "user_util": ("user_util",),
    "system_util": ("system_util",),
    "iowait_util": ("iowait_util",),
    "irq_util": ("irq_util", "softirq_util"),
    "steal_util": ("steal_util",),
}
"""Shares of CPU time by the readings that make them (observe.md 1.10). ``user_util`` has niced time in it already."""


class Series(msgspec.Struct, frozen=True):
    """One line of a chart, now."""

    id: str
    label: str
    value: float
    unit: str


class Chart(msgspec.Struct, frozen=True):
    """One chart; ``series`` is null where there is nothing to draw."""

    id: str
    title: str
    y_unit: str
    """The unit of all series; empty where they differ."""
    series: list[Series] | None
    title_en: str


class Energy(msgspec.Struct, frozen=True):
    """``/api/dfee``."""

    session_id: str
    timestamp: str
    refresh_interval_ms: int
    charts: list[Chart]


class _Plan(NamedTuple):
    """Which readings make a chart."""

    id: str
    title: str
    title_en: str
    component: str
    names: tuple[str, ...]
    only: tuple[str, tuple[str, ...]] | None = None
    """A label, and the values of it that count."""


_POOL = ("field", ("total", "free", "buffers", "cached", "sreclaimable"))
_PLANS = (
    _Plan("npu_aicore_freq", "AICore频率", "AI core frequency", "npu", ("aicore_freq",)),
    _Plan("npu_hbm_freq", "HBM频率", "HBM frequency", "npu", ("hbm_freq",)),
    _Plan("npu_power_draw", "NPU功耗", "NPU power", "npu", ("power_draw",)),
    _Plan("npu_voltage", "NPU电压", "NPU voltage", "npu", ("voltage",)),
    _Plan("npu_npu_util", "NPU利用率", "NPU utilisation", "npu", ("npu_util",)),
    _Plan("npu_utilization", "AICore利用率", "AI core utilisation", "npu", ("utilization",)),
    _Plan("npu_vector_core_util", "Vector Core利用率", "Vector core utilisation", "npu", ("vector_core_util",)),
    _Plan("npu_hbm_bandwidth_util", "HBM带宽利用率", "HBM bandwidth utilisation", "npu", ("hbm_bandwidth_util",)),
    _Plan("npu_memory_usage", "HBM利用率", "HBM usage", "npu", ("memory_usage",)),
    _Plan("cpu_utilization", "CPU 利用率", "CPU time", "cpu", ()),
    _Plan("cpu_load", "CPU 负载", "CPU load", "cpu", ("load_average",)),
    _Plan("cpu_power", "CPU 功耗", "CPU power", "cpu", ("power",)),
    _Plan("memory_pool", "内存池", "Memory pool", "memory", ("usage_detail",), _POOL),
    _Plan("memory_swap", "Swap", "Swap", "memory", ("swap_detail",), ("field", ("total", "free"))),
    _Plan("disk_throughput_read", "磁盘吞吐量(读)", "Disk throughput, read", "disk", ("throughput",), ("direction", ("read",))),
    _Plan(
        "disk_throughput_write", "磁盘吞吐量(写)", "Disk throughput, write", "disk", ("throughput",), ("direction", ("write",))
    ),
    _Plan("disk_iops_read", "IOPS(读)", "IOPS, read", "disk", ("iops",), ("direction", ("read",))),
    _Plan("disk_iops_write", "IOPS(写)", "IOPS, write", "disk", ("iops",), ("direction", ("write",))),
    _Plan("disk_read_latency", "磁盘读耗时", "Disk read latency", "disk", ("read_latency",)),
    _Plan("disk_write_latency", "磁盘写耗时", "Disk write latency", "disk", ("write_latency",)),
    _Plan("network_rx", "网络接收", "Network received", "network", ("throughput",), ("direction", ("rx",))),
    _Plan("network_tx", "网络发送", "Network sent", "network", ("throughput",), ("direction", ("tx",))),
    _Plan("chassis_power", "整机功耗", "Node power", "chassis", ("power", "fan_power")),
    _Plan("chassis_temp", "机箱温度", "Chassis temperature", "chassis", ("inlet_temp", "outlet_temp")),
    _Plan("chassis_fan", "机箱风扇转速", "Fan speed", "chassis", ("fan_speed",)),
)
_ENTITIES = ("npu_id", "interface", "device", "fan")
_DETAILS = ("field", "interval", "cpu")
_DIGITS = re.compile(r"(\d+)")


def energy(view: View) -> Energy | None:
    """The charts of this moment; None before there is a verdict."""
    whole = view.whole
    if whole is None:
        return None
    charts = []
    for plan in _PLANS:
        part = view.components.get(plan.component)
        series = _series(plan, part.metrics if part is not None else [], whole.intervals_ms)
        units = {one.unit for one in series}
        y_unit = units.pop() if len(units) == 1 else ""
        charts.append(Chart(plan.id, plan.title, y_unit, sorted(series, key=_natural) or None, plan.title_en))
    return Energy(whole.session_id, whole.timestamp, whole.refresh_interval_ms, charts)


def _series(plan: _Plan, metrics: Sequence[Metric], intervals_ms: Mapping[str, int]) -> list[Series]:
    if plan.id == "cpu_utilization":
        return _cpu_time(metrics)
    chosen = [metric for metric in metrics if metric.name in plan.names and _counts(plan, metric)]
    if plan.id == "chassis_fan":
        return _average(chosen)
    if plan.component == "network":
        interval_ms = intervals_ms.get("network")
        return [] if interval_ms is None else [_moved(metric, interval_ms / 1000) for metric in chosen]
    return [Series(_identity(metric), _label(metric), metric.value, metric.unit) for metric in chosen]


def _counts(plan: _Plan, metric: Metric) -> bool:
    return plan.only is None or (metric.labels or {}).get(plan.only[0]) in plan.only[1]


def _cpu_time(metrics: Iterable[Metric]) -> list[Series]:
    """The seven shares; one that lacks any of its readings is left out rather than told too small."""
    shares = {metric.name: metric.value for metric in metrics if metric.labels == _TOTAL and metric.name.endswith("_util")}
    return [
        Series(name, name.removesuffix("_util"), round(sum(shares[one] for one in parts), 2), "%")
        for name, parts in _UTILS.items()
        if all(one in shares for one in parts)
    ]


def _average(fans: Sequence[Metric]) -> list[Series]:
    if not fans:
        return []
    return [Series("chassis_fan_avg", "avg", round(sum(fan.value for fan in fans) / len(fans), 1), fans[0].unit)]


def _moved(metric: Metric, interval_s: float) -> Series:
    labels = metric.labels or {}
    name = f"{labels.get('direction', '')}_bytes_total"
    return Series(
        f"{labels.get('interface', '')}:{name}", labels.get("interface", name), round(metric.value * interval_s), "bytes"
    )


def _identity(metric: Metric) -> str:
    labels = metric.labels or {}
    found = next((f"{labels[key]}:{metric.name}" for key in _ENTITIES if labels.get(key)), "")
    if not found:
        found = next(
            (f"{metric.name}:{'cpu' if key == 'cpu' else ''}{labels[key]}" for key in _DETAILS if labels.get(key)), metric.name
        )
    direction = labels.get("direction")
    return f"{found}:{direction}" if direction in {"read", "write"} else found


def _label(metric: Metric) -> str:
    labels = metric.labels or {}
    return next((labels[key] for key in (*_ENTITIES, *_DETAILS) if labels.get(key)), metric.name)


def _natural(series: Series) -> list[tuple[int, int, str]]:
    """``1m`` before ``5m`` before ``15m``."""
    return [(0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in _DIGITS.split(series.id)]
