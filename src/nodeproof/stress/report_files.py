"""The report of the newest job and the history beside it, as the reference keeps them (stress.md 4.5).

``stress-latest.json`` holds a job from its first moment on, ``stress-history.json`` the 100 newest that have ended, newest first,
without their outputs. Both are replaced as a whole and are on the disk when a call returns. A file that cannot be understood is
set aside as ``NAME.damaged-TIME`` and hides nothing that comes after it.
"""

import os
import time
from typing import NamedTuple

import msgspec

from nodeproof.errors import RecordError, WriteError
from nodeproof.host.atomic import remove_leftovers, store_file
from nodeproof.model.job import HISTORY_LIMIT, Report

__all__ = ["ReportFiles", "beside", "history_path"]

_MAX_BYTES = 64 * 1024 * 1024
_INDENT = 2


class _Read(NamedTuple):
    reports: list[Report]
    damage: str
    """Why the file, or entries of it, cannot be understood; empty when all can."""


class ReportFiles:
    """Both files of one report path. Writers hold the lock of jobs; readers need none."""

    def __init__(self, report_path: str) -> None:
        self.latest_path = report_path
        self.history_path = history_path(report_path)

    def latest(self) -> Report | None:
        """The newest job; None when there is none. Raises RecordError when the file cannot be read or understood."""
        try:
            raw = _read(self.latest_path)
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(raw, type=Report)
        except msgspec.DecodeError as error:
            raise RecordError(f"{self.latest_path}: {error}") from None

    def history(self, limit: int) -> list[Report]:
        """The newest ended jobs, newest first. Entries that cannot be understood hide none of the others."""
        return self._history().reports[:limit]

    def damage(self) -> str:
        """What is wrong with the history file; empty when nothing is."""
        return self._history().damage

    def store(self, report: Report) -> None:
        """Make ``report`` the newest. Raises WriteError."""
        self._set_aside_damaged_latest()
        store_file(self.latest_path, _pretty(msgspec.structs.replace(report, cancellable=False)))

    def archive(self, report: Report) -> str:
        """Put an ended job in front of the history; the text of what had to be set aside for it. Raises WriteError."""
        read = self._history()
        aside = _set_aside(self.history_path, read.damage) if read.damage else ""
        bare = [msgspec.structs.replace(item, output="") for item in report.benchmarks]
        entry = msgspec.structs.replace(report, benchmarks=bare, cancellable=False)
        kept = [entry, *(old for old in read.reports if old.job_id != report.job_id)][:HISTORY_LIMIT]
        store_file(self.history_path, _pretty(kept))
        return aside

    def mend_history(self) -> str:
        """Set a damaged history aside, keeping the entries that can be understood; in words. Raises WriteError."""
        read = self._history()
        aside = _set_aside(self.history_path, read.damage)
        store_file(self.history_path, _pretty(read.reports))
        return f"{aside}; {len(read.reports)} entries stay"

    def tidy(self) -> None:
        """Remove what a crash left half-written."""
        folder = os.path.dirname(self.latest_path) or "."
        if os.path.isdir(folder):
            remove_leftovers(folder)

    def _history(self) -> _Read:
        try:
            raw = _read(self.history_path)
        except FileNotFoundError:
            return _Read([], "")
        except RecordError as error:
            return _Read([], str(error))
        try:
            entries = msgspec.json.decode(raw, type=list[msgspec.Raw])
        except msgspec.DecodeError as error:
            return _Read([], f"{self.history_path}: {error}")
        reports, damage = [], ""
        for number, entry in enumerate(entries):
            try:
                reports.append(msgspec.json.decode(entry, type=Report))
            except msgspec.DecodeError as error:
                damage = damage or f"{self.history_path}: entry {number}: {error}"
        return _Read(reports, damage)

    def _set_aside_damaged_latest(self) -> None:
        try:
            self.latest()
        except RecordError as error:
            _set_aside(self.latest_path, str(error))


def history_path(report_path: str) -> str:
    """Where the history of ``report_path`` lies: ``stress-latest.json`` gives ``stress-history.json``."""
    return beside(report_path, "history")


def beside(report_path: str, word: str) -> str:
    """Another file of the same jobs: ``stress-WORD.json`` for ``stress-latest.json``."""
    folder, name = os.path.split(report_path)
    stem, extension = os.path.splitext(name)
    if name.startswith(".") and not extension:
        stem, extension = "", name
    return os.path.join(folder, f"{stem.removesuffix('-latest') or 'stress'}-{word}{extension or '.json'}")


def _set_aside(path: str, why: str) -> str:
    """Give a file that cannot be understood another name; in words what was done. Raises WriteError."""
    aside = f"{path}.damaged-{time.time_ns()}"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise WriteError(path, f"it is damaged and cannot be set aside: {os.strerror(error.errno or 0)}") from None
    return f"{why}; it was set aside as {aside}"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
    if len(raw) > _MAX_BYTES:
        raise RecordError(f"{path}: more than {_MAX_BYTES} bytes")
    return raw


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=_INDENT) + b"\n"
