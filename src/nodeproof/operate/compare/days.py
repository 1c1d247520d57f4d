"""The last green day of this node, out of its own data files: judged anew, by the rules of today, several times a day."""

import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from nodeproof.clock import Instant, rfc3339_parse
from nodeproof.errors import Absence, RecordError
from nodeproof.faults.journal import read_journal
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.grades import verdict
from nodeproof.health.readings import Readings
from nodeproof.model.event import Severity
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.operate.compare.side import Key, Side
from nodeproof.sinks.jsonl import MISSING_STREAM
from nodeproof.sinks.jsonl import Absence as AbsenceLine
from nodeproof.sinks.jsonl_files import DataName

__all__ = ["Day", "days_of", "last_green_day", "look_at_day"]

_GZIP = 31
_BLOCK_BYTES = 1 << 20
_MAX_DAY_BYTES = 512 << 20


class Day(NamedTuple):
    """One day, as its files tell it."""

    date: str
    green: bool
    why: str
    """What kept it from being green; empty when it was."""
    side: Side


def days_of(directory: str) -> list[str]:
    """Days that there are data files of, newest first."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return sorted({data.date for data in map(DataName.parse, names) if data is not None}, reverse=True)


def last_green_day(directory: str, faults: str, *, before: str, ruleset: str, scheme: str, most: int = 30) -> Day:
    """The newest green day before ``before`` (``2026-11-30``). Raises RecordError that says why none of the others was."""
    told = []
    for date in [one for one in days_of(directory) if one < before][:most]:
        day = look_at_day(directory, faults, date, ruleset=ruleset, scheme=scheme)
        if day.green:
            return day
        told.append(f"{date}: {day.why}")
    reasons = "; ".join(told) or "there are no data files of earlier days"
    raise RecordError(f"{directory}: no green day to compare with ({reasons})")


def look_at_day(directory: str, faults: str, date: str, *, ruleset: str, scheme: str) -> Day:
    """One day. It was green when each look found the node sound and no fault was set."""
    evaluator = Evaluator(ruleset, scheme, confirm=False)
    metrics: dict[Key, Metric] = {}
    missing = _absences(directory, date)
    health: HealthScore | None = None
    why = ""
    for hour in _hours(_samples(directory, date)):
        metrics.update(hour)
        health = _judged(evaluator, metrics, missing)
        word = verdict(health)
        if word.exit_code and not why:
            why = word.line
    if health is None:
        why = "no readings were kept"
    why = why or _fault_of(faults, date)
    side = Side.of(f"{directory}, {date}", metrics.values(), missing.values(), health=health)
    return Day(date, not why, why, side)


def _judged(evaluator: Evaluator, metrics: dict[Key, Metric], missing: dict[Key, Missing]) -> HealthScore:
    batches: dict[str, Batch] = {}
    latest = max(one.timestamp for one in metrics.values())
    at = Instant(rfc3339_parse(latest), rfc3339_parse(latest))
    for component in sorted({key[0] for key in (*metrics, *missing)}):
        read = [one for key, one in metrics.items() if key[0] == component]
        absent = [one for key, one in missing.items() if key[0] == component and key not in metrics]
        batches[component] = Batch(component, latest, at.mono_s, read, absent)
    return evaluator.evaluate(Readings(batches), at)


def _hours(samples: list[tuple[Key, Metric]]) -> Iterator[dict[Key, Metric]]:
    """The readings of each hour, the last of each."""
    hour: dict[Key, Metric] = {}
    now = ""
    for key, metric in sorted(samples, key=lambda one: one[1].timestamp):
        if metric.timestamp[:13] != now and hour:
            yield hour
            hour = {}
        now = metric.timestamp[:13]
        hour[key] = metric
    if hour:
        yield hour


def _samples(directory: str, date: str) -> list[tuple[Key, Metric]]:
    decoder = msgspec.json.Decoder(Metric)
    found = []
    for line in _lines(directory, date, missing=False):
        try:
            one = decoder.decode(line)
        except msgspec.MsgspecError:
            continue
        found.append(((one.component, one.name, tuple(sorted((one.labels or {}).items()))), one))
    return found


def _absences(directory: str, date: str) -> dict[Key, Missing]:
    """What was missing at the end of the day."""
    decoder = msgspec.json.Decoder(AbsenceLine)
    found: dict[Key, Missing] = {}
    for line in _lines(directory, date, missing=True):
        try:
            one = decoder.decode(line)
            state = Absence(one.state)
        except (msgspec.MsgspecError, ValueError):
            continue
        key = (one.component, one.name, tuple(sorted((one.labels or {}).items())))
        found.pop(key, None)
        if one.event != "cleared":
            found[key] = Missing(one.component, one.name, state, one.reason, one.labels, one.source, one.remedy, one.timestamp)
    return found


def _lines(directory: str, date: str, *, missing: bool) -> Iterator[bytes]:
    """Every line of the files of a day, in order; a damaged file gives what can be read of it. Raises RecordError."""
    datas = [data for data in map(DataName.parse, os.listdir(directory)) if data is not None and data.date == date]
    left = _MAX_DAY_BYTES
    for data in sorted(datas, key=lambda one: (one.stream, one.part == 0, one.part)):
        if (data.stream == MISSING_STREAM) != missing:
            continue
        rest = b""
        for block in _blocks(os.path.join(directory, data.name), packed=data.compressed):
            left -= len(block)
            if left < 0:
                raise RecordError(f"{directory}: the files of {date} hold more than {_MAX_DAY_BYTES} bytes")
            *whole, rest = (rest + block).split(b"\n")
            yield from whole


def _blocks(path: str, *, packed: bool) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                while packed and block:
                    yield unpacker.decompress(block, _BLOCK_BYTES)
                    block = unpacker.unconsumed_tail
                if not packed:
                    yield block
    except (OSError, zlib.error):
        return


def _fault_of(directory: str, date: str) -> str:
    """A fault that was set on that day; empty when none was."""
    for event in read_journal(directory):
        real = event.verified and not event.drill and not event.recovered and event.severity is not Severity.INFO
        if real and event.timestamp.startswith(date):
            return f"fault {event.type} at {event.timestamp}"
    return ""
