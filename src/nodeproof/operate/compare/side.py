"""One side of a comparison: what is known of a node at one time, from a bundle, a fixture host or a snapshot directory."""

import os
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from nodeproof.errors import RecordError, SnapshotError
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Metric, Missing
from nodeproof.operate.bundle.archive import read_bundle
from nodeproof.operate.bundle.fixture import READINGS, Readings
from nodeproof.sinks import snapshot_reader
from nodeproof.sinks.snapshot_names import GLOBAL_FILE, component_of_file

__all__ = ["Key", "Side", "load_side"]

_T = TypeVar("_T")
_MAX_BYTES = 64 << 20

Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""Component, name and labels of a reading."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    name: str
    """As it was asked for."""
    when: str = ""
    """RFC 3339: when it was seen; empty = unknown."""
    metrics: dict[Key, Metric]
    missing: dict[tuple[str, str], Missing]
    """By component and name; ``*`` = everything of the component."""
    specs: list[Metric] = []
    health: HealthScore | None = None
    caution: str = ""
    """Why it must be taken with care: the daemon of a snapshot directory is dead."""

    @classmethod
    def of(
        cls,
        name: str,
        metrics: Iterable[Metric],
        missing: Iterable[Missing],
        *,
        specs: Iterable[Metric] = (),
        health: HealthScore | None = None,
        caution: str = "",
        when: str = "",
    ) -> "Side":
        """Readings arranged by what they tell of."""
        by_key = {(one.component, one.name, tuple(sorted((one.labels or {}).items()))): one for one in metrics}
        latest = when or max((one.timestamp for one in by_key.values()), default="")
        absences = {(one.component, one.name): one for one in missing}
        return cls(name=name, when=latest, metrics=by_key, missing=absences, specs=list(specs), health=health, caution=caution)


def load_side(path: str) -> Side:
    """What lies at ``path``: the file of a bundle, a folder made of one, or a snapshot directory. Raises RecordError."""
    if os.path.isfile(path):
        _, parts = read_bundle(path)
        return _recorded(path, parts)
    if os.path.isfile(os.path.join(path, READINGS)):
        return _recorded(path, {READINGS: _content(os.path.join(path, READINGS))})
    if os.path.isfile(os.path.join(path, GLOBAL_FILE)):
        return _snapshot(path)
    raise RecordError(
        f"{path}: expected a bundle, a folder made by nodeproof bundle fixture, or a snapshot directory with {GLOBAL_FILE}"
    )


def _recorded(path: str, parts: Mapping[str, bytes]) -> Side:
    raw = parts.get(READINGS) or parts.get("live.json")
    if raw is None:
        raise RecordError(f"{path}: holds no {READINGS}")
    readings = _decoded(path, raw, Readings)
    specs = _decoded(path, parts["specs.json"], list[Metric]) if "specs.json" in parts else []
    health = _decoded(path, parts["health.json"], HealthScore) if "health.json" in parts else None
    return Side.of(
        path,
        (one for metrics in readings.metrics.values() for one in metrics),
        (one for missing in readings.missing.values() for one in missing),
        specs=specs,
        health=health,
    )


def _snapshot(directory: str) -> Side:
    try:
        whole = snapshot_reader.read_global(os.path.join(directory, GLOBAL_FILE))
        names = sorted(name for name in os.listdir(directory) if component_of_file(name) is not None)
        parts = [snapshot_reader.read_comp(os.path.join(directory, name)) for name in names]
    except (SnapshotError, OSError) as error:
        raise RecordError(f"{directory}: {error}") from None
    state = snapshot_reader.read_state(directory)
    return Side.of(
        directory,
        (one for part in parts for one in part.metrics),
        (one for part in parts for one in part.missing),
        specs=[*whole.system_specs, *(one for part in parts for one in part.specs)],
        health=whole.health,
        caution="" if state.fresh else f"daemon {state.verdict}: {state.reason}",
        when=whole.timestamp,
    )


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None


def _decoded(path: str, raw: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"{path}: {error}") from None
