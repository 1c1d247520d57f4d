"""KPI files for slow-node detectors (observe.md 7.5): one line a sample, a file a day.

``straggler_kpi_<date>.jsonl`` holds ``{"ts": seconds, "vals": {card: {field: number}}}`` of each NPU batch and
``{"ts": seconds, "cpu_avg": {core: "text"}}`` of each processor batch, as the reference writes them. Counters are raw totals.
What could not be read has no field. Other than there, the tail is written at the end and when its time has come though no sample
does, only files of this name are ever removed, and faults may be served beside it.
"""

import contextlib
import os
import re
import threading
from collections.abc import Mapping

import msgspec

from nodeproof.clock import Clock, Instant
from nodeproof.host.append import AppendFile, file_sizes
from nodeproof.model.metric import Batch, Metric
from nodeproof.sinks.base import Trouble
from nodeproof.sinks.jsonl_files import local_date

__all__ = ["FIELDS", "NEEDED", "KpiFiles", "KpiLine"]

FIELDS: Mapping[str, str] = {
    "temperature": "temp",
    "power_draw": "power",
    "aicore_freq": "aicore_freq",
    "utilization": "aicore_util",
    "memory_usage": "hbm_util",
    "hbm_bandwidth_util": "hbm_bandwidth_util",
    "net_tx_bandwidth": "tx_bandwidth",
    "mac_rx_pfc_pkt_num": "rx_pfc_pkt",
    "roce_tx_err_pkt_num": "roce_tx_err_pkt",
    "roce_out_of_order_num": "roce_out_of_order",
    "roce_new_pkt_rty": "roce_new_pkt_rty",
}
"""Metric of component npu -> field of a card."""
NEEDED = frozenset({("cpu", "usage")} | {("npu", name) for name in FIELDS})
"""What is collected wherever these files are written, whatever else is said."""

_NAME = re.compile(r"straggler_kpi_\d{4}-\d\d-\d\d\.jsonl", re.ASCII)
_PRUNE_EVERY_S = 3600.0
_MOST_WAITING = 4096
"""Samples kept while the disk takes none: more than an hour at 1 s."""


class KpiLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One sample."""

    ts: int
    vals: dict[str, dict[str, float]] = {}
    cpu_avg: dict[str, str] = {}


class KpiFiles:
    """The sink."""

    name = "kpi"

    def __init__(self, directory: str, clock: Clock, *, retention_s: float, flush_interval_s: float) -> None:
        self.trouble = Trouble(f"KPI files in {directory}")
        self._directory = directory
        self._clock = clock
        self._retention_s = retention_s
        self._flush_interval_s = flush_interval_s
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, bytes]] = []
        self._flushed_s: float | None = None
        self._pruned_s: float | None = None

    def write(self, batch: Batch) -> None:
        """Keep a sample of an NPU or processor batch; the first one is written at once."""
        line = _line(batch, int(self._clock.now().wall_s))
        if line is None:
            return
        with self._lock:
            self._waiting.append((local_date(float(line.ts)), msgspec.json.encode(line) + b"\n"))
            del self._waiting[:-_MOST_WAITING]
        self.flush(self._clock.now())

    def flush(self, now: Instant) -> None:
        """Write what waits, when that is due. Raises WriteError, keeping it."""
        with self._lock:
            due = self._flushed_s is None or now.mono_s - self._flushed_s >= self._flush_interval_s
            if self._waiting and due:
                self._write_waiting()
                self._flushed_s = now.mono_s
            if self._pruned_s is None or now.mono_s - self._pruned_s >= _PRUNE_EVERY_S:
                self._pruned_s = now.mono_s
                self._prune(now.wall_s)

    def close(self) -> None:
        """Write the tail. Raises WriteError."""
        with self._lock:
            self._write_waiting()

    def _write_waiting(self) -> None:
        while self._waiting:
            date = self._waiting[0][0]
            day = [line for other, line in self._waiting if other == date]
            file = AppendFile(os.path.join(self._directory, f"straggler_kpi_{date}.jsonl"))
            try:
                file.append(b"".join(day))
            finally:
                file.close()
            self._waiting = [entry for entry in self._waiting if entry[0] != date]

    def _prune(self, wall_s: float) -> None:
        """Remove our own files whose day ended longer ago than they are kept."""
        oldest = local_date(wall_s - self._retention_s)
        for name in file_sizes(self._directory):
            if _NAME.fullmatch(name) and name.removeprefix("straggler_kpi_").removesuffix(".jsonl") < oldest:
                with contextlib.suppress(OSError):  # it is tried again in an hour
                    os.unlink(os.path.join(self._directory, name))


def _line(batch: Batch, wall_s: int) -> KpiLine | None:
    if batch.component == "npu":
        vals = _cards(batch)
        return KpiLine(wall_s, vals=vals) if vals else None
    if batch.component == "cpu":
        cores = {
            core: f"{metric.value:g}"
            for metric in batch.by_name.get("usage", ())
            if (core := (metric.labels or {}).get("core", "total")) != "total"
        }
        return KpiLine(wall_s, cpu_avg=cores) if cores else None
    return None


def _cards(batch: Batch) -> dict[str, dict[str, float]]:
    """Fields by card: cards of several chips count their chips through, as programs do."""
    found = {name: metrics for name in FIELDS if (metrics := batch.by_name.get(name))}
    chips = 1 + max((_number(metric, "chip_id") for metrics in found.values() for metric in metrics), default=0)
    vals: dict[str, dict[str, float]] = {}
    for name, metrics in found.items():
        for metric in metrics:
            card = str(_number(metric, "npu_id") * chips + _number(metric, "chip_id"))
            vals.setdefault(card, {})[FIELDS[name]] = metric.value
    return dict(sorted(vals.items(), key=lambda item: int(item[0])))


def _number(metric: Metric, label: str) -> int:
    text = (metric.labels or {}).get(label, "")
    return int(text) if text.isascii() and text.isdigit() else 0
