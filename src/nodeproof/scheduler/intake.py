"""What is taken from a collector: anybody's code may be behind it, and may return anything.

Collectors made of our own frame keep its promises by construction. From all others a checked copy is taken: right types all the
way down, a bounded size, our own time and number on the envelope; what they do to their lists afterwards is their own affair.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from nodeproof.clock import Instant, rfc3339, rfc3339_parse
from nodeproof.collectors.base import Collector, GroupCollector
from nodeproof.errors import Absence
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.sinks.base import finite

__all__ = ["MOST_READINGS", "accepted", "failed_batch", "words"]

MOST_READINGS = 20_000
"""Of one batch. The richest of ours, processors of a host with 512 of them, has 7,000."""
_MOST_BYTES = 16 * 1024 * 1024
"""Of one batch as JSON: it is written anew each cycle."""
_LONGEST_ERROR = 500

_Entry = TypeVar("_Entry", Metric, Missing)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Batch).decode


def accepted(found: object, collector: Collector, at: Instant, sequence: int) -> Batch:
    """The batch that the cycle begun ``at`` returned. Raises TypeError or ValueError when it is none of this collector."""
    if not isinstance(found, Batch):
        raise TypeError(f"returned {type(found).__name__}, not a Batch")
    if found.component != collector.component:
        raise ValueError(f"returned a batch of component {found.component!r:.80}")
    return found if isinstance(collector, GroupCollector) else _copy(found, at, sequence)


def failed_batch(collector: Collector, error: str, at: Instant) -> Batch:
    """What is known of a component whose cycle failed: nothing, and why."""
    timestamp = rfc3339(at.wall_s)
    reason = f"collector {collector.name} failed: {error[:_LONGEST_ERROR]}"
    absence = Missing(
        collector.component, "*", Absence.READ_ERROR, reason, source=f"collector {collector.name}", timestamp=timestamp
    )
    return Batch(collector.component, timestamp, at.mono_s, [], [absence])


def _copy(found: Batch, at: Instant, sequence: int) -> Batch:
    _refuse_foreign(found.metrics, Metric, found.component)
    _refuse_foreign(found.missing, Missing, found.component)
    count = len(found.metrics) + len(found.missing)
    if count > MOST_READINGS:
        raise ValueError(f"returned {count} readings; more than {MOST_READINGS} are refused")
    timestamp = rfc3339(at.wall_s)
    # Our own time: an age must not rest on a stranger's clock.
    plain = finite(Batch(found.component, timestamp, at.mono_s, found.metrics, found.missing, sequence))
    data = _encode(plain)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"returned {len(data)} bytes of readings; more than {_MOST_BYTES} are refused")
    copy = _decode(data)
    metrics = [_completed(one, timestamp) for one in copy.metrics]
    return msgspec.structs.replace(copy, metrics=metrics, missing=[_completed(one, timestamp) for one in copy.missing])


def _completed(entry: _Entry, timestamp: str) -> _Entry:
    """``entry`` with a time, and without labels rather than with none."""
    if _is_time(entry.timestamp) and entry.labels != {}:
        return entry
    when = entry.timestamp if _is_time(entry.timestamp) else timestamp
    return msgspec.structs.replace(entry, timestamp=when, labels=entry.labels or None)


def _refuse_foreign(entries: Sequence[Metric] | Sequence[Missing], kind: type, component: str) -> None:
    """Raises unless every entry is a ``kind`` of ``component``."""
    if type(entries) is not list:
        raise TypeError(f"returned {type(entries).__name__} where a list of {kind.__name__} belongs")
    stranger = next((type(one).__name__ for one in entries if type(one) is not kind), "")
    if stranger:
        raise TypeError(f"returned {stranger} where a {kind.__name__} belongs")
    for entry in entries:
        if entry.component != component:
            raise ValueError(f"returned a {kind.__name__} of component {entry.component!r:.80}")
        if not entry.name:
            raise ValueError(f"returned a {kind.__name__} without a name")


def _is_time(text: str) -> bool:
    try:
        rfc3339_parse(text)
    except ValueError:
        return False
    return True


def words(problem: BaseException) -> str:
    """Kind and text of an error of anybody's code."""
    try:
        return f"{type(problem).__name__}: {problem}"
    except Exception:  # noqa: BLE001 - even its text may raise
        return type(problem).__name__
