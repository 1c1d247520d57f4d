"""Data files: what is kept of a node for days.

Each component has a file a day with one Metric object a line, as the reference writes them. A full set is kept every
``storage.interval``; in between, a state, an identity or a constant is kept the moment it changes. Absences stand in files of
their own (``missing_<date>.jsonl``), one line when they appear and one when they are over: a reader of the reference would take a
line without a value for 0.
"""

import logging
import operator
import threading
from collections.abc import Iterable, Sequence

import msgspec

from nodeproof.clock import Clock, Instant
from nodeproof.errors import WriteError
from nodeproof.model.catalogue import CATALOGUE, Kind
from nodeproof.model.metric import Batch, Labels, Metric, Missing, same_absences
from nodeproof.sinks.base import Trouble
from nodeproof.sinks.jsonl_files import DataFiles, Limits, local_date

__all__ = ["MISSING_STREAM", "Absence", "JsonLines"]

_log = logging.getLogger(__name__)
MISSING_STREAM = "missing"
_EARLY_S = 0.5
"""A full set may come this much early, so that 60 s on a cycle of 1 s does not become 61 s."""
_LONGEST_GAP_S = 3600.0 - _EARLY_S
"""Between two full sets of a host that is too large for one each interval."""
_RETRY_S = 10.0
"""A full set that could not be written is tried again so soon: each try costs the encoding of all of it."""
_WATCHED = {Kind.STATE, Kind.INFO, Kind.STATIC}
_CONSTANT = {Kind.INFO, Kind.STATIC}

_Key = tuple[str, tuple[tuple[str, str], ...]]


class Absence(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line of the files of absences."""

    event: str
    """``appeared``, ``cleared``, or ``continues`` in the first lines of a day."""
    component: str
    name: str
    state: str
    reason: str
    labels: Labels | None = None
    source: str = ""
    remedy: str = ""
    timestamp: str


def _key(name: str, labels: Labels | None) -> _Key:
    return (name, tuple(labels.items()) if labels else ())


class _Kept:
    """What has been written of one component, so that changes are seen."""

    def __init__(self, component: str) -> None:
        specs = [spec for spec in CATALOGUE.values() if spec.component == component]
        self.watched = frozenset(spec.name for spec in specs if spec.kind in _WATCHED)
        self.constant = frozenset(spec.name for spec in specs if spec.kind in _CONSTANT)
        self.date = ""
        self.full_set_s: float | None = None
        """When a full set was last due, written or left out."""
        self.written_set_s: float | None = None
        self.values: dict[_Key, float] = {}
        self.missing: dict[tuple[_Key, str], Missing] = {}
        self.absences: Sequence[Missing] = ()
        """What a batch listed when :attr:`missing` was last compared with it."""
        self._seen: list[Metric] = []
        self._seen_ids: set[int] = set()

    def begin_day(self, date: str) -> None:
        """A new file is to be whole by itself: everything counts as not yet written."""
        self.date = date
        self.full_set_s = self.written_set_s = None
        self.values.clear()
        self.forget_seen()

    def forget_seen(self) -> None:
        self._seen, self._seen_ids = [], set()

    def may_wait(self, batch: Batch) -> bool:
        """Whether a full set may be left out: not the first of a day, and none for longer than an hour."""
        return self.written_set_s is not None and 0 <= batch.mono_s - self.written_set_s < _LONGEST_GAP_S

    def due(self, batch: Batch, interval_s: float) -> tuple[bool, list[Metric]]:
        """Whether a full set is due, and the readings to write."""
        full = self.full_set_s is None or not 0 <= batch.mono_s - self.full_set_s < interval_s - _EARLY_S
        if full:
            constant, values = self.constant, self.values
            return True, [
                metric
                for metric in batch.metrics
                if metric.name not in constant or values.get(_key(metric.name, metric.labels)) != metric.value
            ]
        return False, self._changed(batch)

    def _changed(self, batch: Batch) -> list[Metric]:
        watched = self.watched
        found = [metric for name, metrics in batch.by_name.items() if name in watched for metric in metrics]
        if len(found) == len(self._seen) and all(map(operator.is_, found, self._seen)):
            return []
        # Groups that run seldom hand out the same objects; only what was made anew can have changed.
        fresh = [metric for metric in found if id(metric) not in self._seen_ids]
        self._seen, self._seen_ids = found, set(map(id, found))
        return [metric for metric in fresh if self.values.get(_key(metric.name, metric.labels)) != metric.value]

    def wrote(self, metrics: Iterable[Metric]) -> None:
        """These lines are in the file."""
        watched = self.watched
        for metric in metrics:
            if metric.name in watched:
                self.values[_key(metric.name, metric.labels)] = metric.value

    def forget_gone(self, batch: Batch) -> None:
        """Drop what ``batch`` no longer tells: names of tasks and devices come and go, and a day is long."""
        watched = self.watched
        present = {_key(metric.name, metric.labels) for metric in batch.metrics if metric.name in watched}
        self.values = {key: value for key, value in self.values.items() if key in present}


class JsonLines:
    """The sink that keeps data files in ``directory``."""

    name = "jsonl"

    def __init__(self, directory: str, clock: Clock, *, interval_s: float = 60.0, limits: Limits | None = None) -> None:
        self.trouble = Trouble("data files")
        self._clock = clock
        self._interval_s = interval_s
        self._files = DataFiles(directory, limits or Limits(), self.trouble)
        self._kept: dict[str, _Kept] = {}
        self._hasty_on = ""
        """The day of which it was told that not every full set is kept."""
        self._lock = threading.Lock()
        self._encoder = msgspec.json.Encoder()

    def go_on_from(self, other: "JsonLines | None") -> None:
        """Remember what a sink of the same directory, closed by now, has written: only what changes is written again."""
        if other is not None:
            self._kept = other._kept  # noqa: SLF001 - another of this class

    def write(self, batch: Batch) -> None:
        """Write what is due of ``batch``. What cannot be written is counted, told of once, and tried again with the next one."""
        with self._lock:
            now = self._clock.now()
            kept = self._kept.get(batch.component)
            if kept is None:
                kept = self._kept[batch.component] = _Kept(batch.component)
            date = local_date(now.wall_s)
            new_day = kept.date != date
            if new_day:
                kept.begin_day(date)
            self._write_metrics(batch, kept, now)
            self._write_missing(batch, kept, now, new_day=new_day)

    def flush(self, now: Instant) -> None:
        """Close files of days that are over, compress, keep within the limits."""
        with self._lock:
            try:
                self._files.look_after(now)
            except WriteError as error:
                self.trouble.failed(str(error), "directory")
            else:
                self.trouble.healed("directory")

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._files.close()

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is left to compress; False when time is up before."""
        return self._files.settle(timeout_s)

    def _write_metrics(self, batch: Batch, kept: _Kept, now: Instant) -> None:
        full, metrics = kept.due(batch, self._interval_s)
        if full and kept.may_wait(batch) and not self._files.in_pace(now):
            self._tell_of_haste(kept.date)
            kept.full_set_s = batch.mono_s
            full, metrics = kept.due(batch, self._interval_s)
        if not metrics:
            if full:
                kept.full_set_s = batch.mono_s
            return
        if self._append(batch.component, self._encoder.encode_lines(metrics), now, urgent=not full):
            kept.wrote(metrics)
            if full:
                kept.full_set_s = kept.written_set_s = batch.mono_s
                kept.forget_gone(batch)
        else:
            kept.forget_seen()
            if full:
                kept.full_set_s = batch.mono_s - max(0.0, self._interval_s - _RETRY_S)

    def _tell_of_haste(self, date: str) -> None:
        if date != self._hasty_on:
            self._hasty_on = date
            seconds = round(self._interval_s)
            _log.warning(
                "data files: a full set every %d s is more than a day may take; some are left out, all day long", seconds
            )

    def _write_missing(self, batch: Batch, kept: _Kept, now: Instant, *, new_day: bool) -> None:
        if not new_day and same_absences(batch.missing, kept.absences):
            return
        before = kept.missing
        present = {(_key(entry.name, entry.labels), str(entry.state)): entry for entry in batch.missing}
        if not new_day and present.keys() == before.keys():
            kept.absences = batch.missing
            return
        lines = [_absence("cleared", entry, batch.timestamp) for key, entry in before.items() if key not in present]
        for key, entry in present.items():
            if key not in before:
                lines.append(_absence("appeared", entry, batch.timestamp))
            elif new_day:
                lines.append(_absence("continues", entry, batch.timestamp))
        if not lines or self._append(MISSING_STREAM, self._encoder.encode_lines(lines), now, urgent=True):
            kept.missing = present
            kept.absences = batch.missing

    def _append(self, stream: str, lines: bytes, now: Instant, *, urgent: bool) -> bool:
        try:
            self._files.append(stream, lines, now, urgent=urgent)
        except WriteError as error:
            self.trouble.failed(str(error), stream)
            return False
        self.trouble.healed(stream)
        return True


def _absence(event: str, entry: Missing, timestamp: str) -> Absence:
    return Absence(
        event=event,
        component=entry.component,
        name=entry.name,
        state=str(entry.state),
        reason=entry.reason,
        labels=entry.labels,
        source=entry.source,
        remedy=entry.remedy,
        timestamp=timestamp,
    )
