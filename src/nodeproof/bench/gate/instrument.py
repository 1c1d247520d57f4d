"""Whether a record was made by the instrument that an entry asks for: model, box, parameters, server settings, fingerprint."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping

import msgspec

from nodeproof.bench.gate.schema import Entry
from nodeproof.model.run import RunRecord
from nodeproof.runs.records import fingerprint

__all__ = ["SHARD", "box_class", "canonical", "day", "differences", "identity_of", "of_target", "pins", "shard_of"]

SHARD = "shard"
"""Parameter that says which part of the work a run does: ``0/4``."""
_SHARD = re.compile(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*")
_DRAW = "draw-"
"""Part of a data set's fingerprint that names the samples a run drew, which differ from shard to shard."""


def box_class(record: RunRecord) -> str:
    """Class of the box that the record was made on; ``unknown`` where nobody looked."""
    state = record.frame.hardware_state or {}
    return str(state.get("perf_class", "") or "unknown").partition("@")[0]


def of_target(entry: Entry, record: RunRecord) -> str:
    """Why a record is about something else than ``entry``; empty when it is about it."""
    if entry.model and record.target_model != entry.model:
        return f"it is of model {record.target_model or '(none)'}, not {entry.model}"
    if entry.box and box_class(record) != entry.box:
        return f"it was made on a box of class {box_class(record)}, not {entry.box}"
    return ""


def differences(entry: Entry, record: RunRecord, wanted: Mapping[str, str]) -> list[str]:
    """How the instrument differs from the one that ``entry`` demands, with ``wanted`` as its parameters."""
    return [*_parameters(record, wanted), *_settings(entry, record), *_fingerprint(entry, record)]


def pins(entry: Entry) -> dict[str, str]:
    """The parameters that an entry demands, in one spelling."""
    return {key: canonical(text) for key, text in entry.param_overrides.items()}


def canonical(text: str) -> str:
    """A parameter's text with one spelling for lists and numbers."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return ",".join(_number(part) for part in parts)


def _number(text: str) -> str:
    try:
        return f"{float(text):.17g}"
    except ValueError:
        return text


def _parameters(record: RunRecord, wanted: Mapping[str, str]) -> Iterator[str]:
    for key, value in sorted(wanted.items()):
        found = record.params.get(key)
        if found is None:
            yield f"parameter {key} is not on the record, demanded is {value}"
        elif canonical(found) != value:
            yield f"parameter {key} is {found}, demanded is {value}"


def _settings(entry: Entry, record: RunRecord) -> Iterator[str]:
    """Both ways: a server that was started with something that nobody asked for is another server."""
    if entry.any_settings:
        return
    for key in sorted({*entry.serve_overrides, *record.serve_overrides}):
        ours, theirs = record.serve_overrides.get(key, "(not stated)"), entry.serve_overrides.get(key, "(not stated)")
        if ours != theirs:
            yield f"server setting {key} is {ours}, demanded is {theirs}"


def _fingerprint(entry: Entry, record: RunRecord) -> Iterator[str]:
    found = identity_of(record) if entry.shards else record.fingerprint
    if entry.fingerprint and found != entry.fingerprint:
        yield f"the fingerprint of the instrument is {found[:12] or '(none)'}, demanded is {entry.fingerprint[:12]}"


def shard_of(record: RunRecord) -> tuple[int, int] | None:
    """Index and count; None for a record of the whole work."""
    text = record.params.get(SHARD, "")
    found = _SHARD.fullmatch(text)
    if found is not None:
        index, count = int(found[1]), int(found[2])
    else:
        metrics = record.frame.metrics
        index, count = int(metrics.get("shard.index", 0)), int(metrics.get("shard.count", 1))
    return (index, count) if count > 1 and 0 <= index < count else None


def identity_of(record: RunRecord) -> str:
    """Fingerprint of the instrument without what tells one shard from another."""
    params = {key: text for key, text in record.params.items() if key != SHARD}
    data = ";".join(part for part in (record.frame.dataset_fingerprint or "").split(";") if not part.startswith(_DRAW))
    frame = msgspec.structs.replace(record.frame, dataset_fingerprint=data)
    return fingerprint(msgspec.structs.replace(record, params=params, frame=frame))


def day(at_s: float) -> str:
    """A moment, in UTC, as people write it."""
    return f"{dt.datetime.fromtimestamp(at_s, dt.UTC):%Y-%m-%d %H:%M} UTC"
