"""The data files by component and day: their names, their end, their compression and their limits.

``cpu_2026-11-30.jsonl`` is written; when it is full, or its day is over, it becomes ``cpu_2026-11-30.1.jsonl`` and soon
``cpu_2026-11-30.1.jsonl.gz``. Only files with exactly such names are ever renamed or removed, and none of the current day.
"""

import datetime as dt
import logging
import os
import re
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.errors import WriteError
from nodeproof.host import append, atomic
from nodeproof.host.append import AppendFile
from nodeproof.sinks.base import Trouble

__all__ = ["DataFiles", "DataName", "Limits", "local_date"]

_log = logging.getLogger(__name__)
_NAME = re.compile(
    r"(?P<stream>[a-z][a-z0-9_]{0,63})_(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:\.(?P<part>[0-9]{1,6}))?\.jsonl(?P<gz>\.gz)?"
)
_STREAM = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CLOCK_STEP_S = 60.0
_STEADY_S = 3600.0
"""Nothing is removed for its age before the wall clock has gone evenly for so long: a clock that jumps must not cost history."""
_CHECK_EVERY_S = 60.0
_DAY_S = 86400.0
_REMOVED_AT_ONCE = 500
"""Removing files waits for the disk; what is left goes a minute later."""
_CLOSE_WAIT_S = 5.0
_HEAD_START = 1 / 12
"""Of the day: so far packed files may be ahead of the time."""


class Limits(NamedTuple):
    """What the data files may take."""

    max_age_s: float = 168 * 3600.0
    max_total_bytes: int = 210_000_000
    day_bytes: int = 30_000_000
    """All files of one day, compressed or not, as they lie on the disk."""
    part_bytes: int = 2_000_000
    """A file that grows beyond this is set aside and compressed."""
    min_free_bytes: int = 128 * 1024 * 1024
    """Nothing is written while the file system has less than this to give."""


class DataName(NamedTuple):
    """A file name taken apart."""

    stream: str
    date: str
    part: int
    """0 = the one that is written."""
    compressed: bool
    name: str

    @classmethod
    def parse(cls, name: str) -> "DataName | None":
        """None for a name that is not exactly one of ours."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        try:
            dt.date.fromisoformat(match["date"])
        except ValueError:
            return None
        return cls(match["stream"], match["date"], int(match["part"] or 0), match["gz"] is not None, name)


def local_date(wall_s: float) -> str:
    """The local day, as the names have it."""
    return time.strftime("%Y-%m-%d", time.localtime(wall_s))


class _Stream(NamedTuple):
    file: AppendFile
    date: str


class DataFiles:
    """Every data file of one directory. The caller sees to it that only one thread is inside at a time."""

    def __init__(self, directory: str, limits: Limits, trouble: Trouble) -> None:
        self._directory = directory
        self._limits = limits
        self._trouble = trouble
        self._streams: dict[str, _Stream] = {}
        self._today = ""
        self._today_bytes = 0
        self._packed_bytes = 0
        """Of today's files, what is compressed already."""
        self._checked_s: float | None = None
        self._offset_s: float | None = None
        self._steady_since_s = 0.0
        self._free_bytes: int | None = None
        self._queue: list[str] = []
        self._queue_lock = threading.Lock()
        self._packer: threading.Thread | None = None
        self._changed = threading.Event()
        """Set when compression has changed what lies on the disk."""
        self._closing = threading.Event()

    def append(self, stream: str, lines: bytes, now: Instant, *, urgent: bool) -> None:
        """Add ``lines`` to the file of ``stream`` and today. Raises WriteError when a limit or the disk forbids it.

        ``urgent`` lines may use the last tenth of the day's limit.
        """
        if _STREAM.fullmatch(stream) is None:
            raise WriteError(self._directory, f"{stream[:80]!r} cannot be part of a file name")
        date = local_date(now.wall_s)
        self.look_after(now)
        self._refuse_beyond_limits(len(lines), urgent=urgent)
        file = self._file(stream, date, len(lines))
        file.append(lines)
        self._today_bytes += len(lines)

    def in_pace(self, now: Instant) -> bool:
        """Whether today's files grow no faster than the day goes by: else its limit would be reached long before its end.

        Only what is packed counts; open files, which are large and shrink when they are done, have their room set aside.
        """
        limits = self._limits
        # A tenth is left to urgent lines, and another to the part that is packed when the pace has just been lost.
        usable = limits.day_bytes * 8 // 10
        share = max(usable - limits.part_bytes * len(self._streams), usable // 2)
        local = time.localtime(now.wall_s)
        passed = (local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec) / _DAY_S
        return self._packed_bytes <= share * min(1.0, passed + _HEAD_START)

    def look_after(self, now: Instant) -> None:
        """Set files of other days aside, compress what lies there, and keep within the limits; seldom dear."""
        date = local_date(now.wall_s)
        for stream, entry in list(self._streams.items()):
            if entry.date != date:
                self._set_aside(stream)
        self._watch_clock(now)
        due = self._checked_s is None or now.mono_s - self._checked_s >= _CHECK_EVERY_S or date != self._today
        if not due and not self._changed.is_set():
            return
        if self._checked_s is None:
            atomic.remove_leftovers(self._directory)
        self._changed.clear()
        self._checked_s = now.mono_s
        self._free_bytes = append.free_bytes(self._directory)
        self._queue_old(date)
        sizes = append.file_sizes(self._directory)
        self._today = date
        todays = [(size, data) for name, size in sizes.items() if (data := DataName.parse(name)) and data.date == date]
        self._today_bytes = sum(size for size, _ in todays)
        self._packed_bytes = sum(size for size, data in todays if data.compressed)
        self._prune(sizes, date, now)

    def close(self) -> None:
        """Close all files and wait a little for the compression in flight; the rest is done at the next start."""
        self._closing.set()
        for entry in self._streams.values():
            entry.file.close()
        self._streams.clear()
        packer = self._packer
        if packer is not None:
            packer.join(_CLOSE_WAIT_S)

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is left to compress; False when time is up before."""
        packer = self._packer
        if packer is not None:
            packer.join(timeout_s)
            return not packer.is_alive()
        return True

    def _refuse_beyond_limits(self, size: int, *, urgent: bool) -> None:
        limits = self._limits
        if self._free_bytes is not None and self._free_bytes < limits.min_free_bytes:
            raise WriteError(
                self._directory,
                f"nothing is kept while the file system has less than {limits.min_free_bytes >> 20} MiB free",
                remedy="free some space there",
            )
        allowed = limits.day_bytes if urgent else limits.day_bytes * 9 // 10
        if self._today_bytes + size > allowed:
            raise WriteError(
                self._directory,
                f"the files of {self._today} have reached their limit of {limits.day_bytes / 1e6:g} MB; no more of it is kept",
                remedy="lengthen storage.interval or raise storage.max_total_size",
            )

    def _file(self, stream: str, date: str, size: int) -> AppendFile:
        entry = self._streams.get(stream)
        if entry is not None and not entry.file.still_there():
            entry.file.close()
            del self._streams[stream]
            entry = None
        if entry is not None and entry.file.size and entry.file.size + size > self._limits.part_bytes:
            self._set_aside(stream)
            entry = None
        if entry is None:
            path = os.path.join(self._directory, f"{stream}_{date}.jsonl")
            entry = self._streams[stream] = _Stream(AppendFile(path), date)
            if entry.file.cut_bytes:
                _log.warning("%s ended in %d bytes of a line that a crash cut off; removed", path, entry.file.cut_bytes)
        return entry.file

    def _set_aside(self, stream: str) -> None:
        """Close the stream's file and queue it."""
        entry = self._streams.pop(stream)
        entry.file.close()
        if entry.file.size:
            self._rename_and_queue(os.path.basename(entry.file.path))

    def _rename_and_queue(self, name: str) -> None:
        data = DataName.parse(name)
        if data is None:
            return
        names = append.file_sizes(self._directory)
        taken = [other.part for other in map(DataName.parse, names) if other and other[:2] == data[:2]]
        target = f"{data.stream}_{data.date}.{max(taken, default=0) + 1}.jsonl"
        try:
            os.rename(os.path.join(self._directory, name), os.path.join(self._directory, target))
        except OSError as error:
            self._trouble.failed(str(atomic.write_error(os.path.join(self._directory, name), error)), "rotation")
            return
        self._enqueue(target)

    def _queue_old(self, date: str) -> None:
        """What an earlier run did not finish, and files of days that nobody writes any more."""
        open_now = {os.path.basename(entry.file.path) for entry in self._streams.values()}
        for data in map(DataName.parse, sorted(append.file_sizes(self._directory))):
            if data is None or data.compressed:
                continue
            if data.part:
                self._enqueue(data.name)
            elif data.date != date and data.name not in open_now:
                self._rename_and_queue(data.name)

    def _enqueue(self, name: str) -> None:
        with self._queue_lock:
            if self._closing.is_set() or name in self._queue:
                return
            self._queue.append(name)
            if self._packer is None or not self._packer.is_alive():
                self._packer = threading.Thread(target=self._pack, name="jsonl-gzip", daemon=True)
                self._packer.start()

    def _pack(self) -> None:
        append.lower_priority()
        while not self._closing.is_set():
            with self._queue_lock:
                if not self._queue:
                    self._packer = None
                    return
                name = self._queue[0]
            try:
                append.compress_file(os.path.join(self._directory, name))
            except WriteError as error:
                self._trouble.failed(str(error), "compression")
            else:
                self._trouble.healed("compression")
            self._changed.set()
            with self._queue_lock:
                self._queue.remove(name)

    def _watch_clock(self, now: Instant) -> None:
        offset_s = now.wall_s - now.mono_s
        if self._offset_s is None or abs(offset_s - self._offset_s) > _CLOCK_STEP_S:
            self._steady_since_s = now.mono_s
        self._offset_s = offset_s

    def _prune(self, sizes: Mapping[str, int], date: str, now: Instant) -> None:
        """Remove the oldest files beyond the limits, so many a check at most; never one of today."""
        removed = 0
        files = sorted((data.date, data.part, data.name) for data in map(DataName.parse, sizes) if data is not None)
        total = sum(sizes[name] for _, _, name in files)
        steady = now.mono_s - self._steady_since_s >= _STEADY_S
        for day, _, name in files:
            if day == date:
                continue
            too_old = steady and _days_between(day, date) > self._limits.max_age_s / _DAY_S
            if (too_old or total > self._limits.max_total_bytes) and self._remove(name):
                total -= sizes[name]
                removed += 1
                if removed == _REMOVED_AT_ONCE:
                    return

    def _remove(self, name: str) -> bool:
        path = os.path.join(self._directory, name)
        try:
            os.unlink(path)
        except OSError as error:
            self._trouble.failed(str(atomic.write_error(path, error)), "pruning")
            return False
        self._trouble.healed("pruning")
        return True


def _days_between(earlier: str, later: str) -> int:
    return (dt.date.fromisoformat(later) - dt.date.fromisoformat(earlier)).days
