"""KPI files read back, ours or the reference's: each line becomes the NPU batch that it was made of."""

import os
from collections.abc import Iterator

import msgspec

from nodeproof.clock import rfc3339
from nodeproof.errors import UsageError
from nodeproof.host.append import file_sizes
from nodeproof.model.metric import Batch, Metric
from nodeproof.sinks.kpi import FIELDS

__all__ = ["kpi_batches"]

_MOST_BYTES = 256 * 1024 * 1024
_PREFIX, _SUFFIX = "straggler_kpi_", ".jsonl"
_METRICS = {field: name for name, field in FIELDS.items()}


class _Line(msgspec.Struct):
    """One line; what else it holds is passed over."""

    ts: float = 0.0
    vals: dict[str, dict[str, float]] = {}


def kpi_batches(directory: str, days: int = 1) -> Iterator[Batch]:
    """NPU batches of the newest ``days`` files, oldest first; torn lines are passed over. Raises UsageError, WriteError."""
    names = sorted(name for name in file_sizes(directory) if name.startswith(_PREFIX) and name.endswith(_SUFFIX))
    if not names:
        raise UsageError(
            f"{directory} holds no {_PREFIX}<date>{_SUFFIX}; switch straggler_output.enabled on, or name the directory with --dir"
        )
    decode = msgspec.json.Decoder(_Line).decode
    for name in names[-days:]:
        with open(os.path.join(directory, name), "rb") as file:
            for raw in file.read(_MOST_BYTES).split(b"\n"):
                try:
                    line = decode(raw) if raw else _Line()
                except msgspec.MsgspecError:
                    continue
                if line.vals:
                    yield _batch(line)


def _batch(line: _Line) -> Batch:
    stamp = rfc3339(line.ts)
    metrics = [
        Metric("npu", _METRICS[field], value, "", {"npu_id": card}, stamp)
        for card, fields in line.vals.items()
        for field, value in fields.items()
        if field in _METRICS
    ]
    return Batch("npu", stamp, line.ts, metrics, [])
