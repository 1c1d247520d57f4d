"""Pinned references: what an instrument measured on a box when somebody said, on purpose, that this is how it should be.

``<state root>/references/<benchmark>-<identity>.json`` is a DSSE envelope signed with the key of this node; its payload::

    {"schema": 1, "benchmark_id": "load", "fingerprint": "5f...", "model": "m", "box": "h200", "run_id": "run-1764...",
     "manifest_sha256": "60303...", "pinned_at": 1764541270.5, "note": "new driver", "metrics": {"output_tok_s": 25.9},
     "before": [{"run_id": "run-1763...", "pinned_at": 1763000000.0, "note": ""}]}

Nothing moves it but a new pin. A reference that moved by itself would follow a slow decay and never see it.
"""

import hashlib
import os

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host import atomic
from nodeproof.host.signing_key import SigningKey
from nodeproof.model.run import RunRecord
from nodeproof.runs.dsse import MAX_BYTES, open_envelope, seal_envelope

__all__ = ["PAYLOAD_TYPE", "Reference", "ReferenceStore", "Replaced", "box_class_of"]

PAYLOAD_TYPE = "application/vnd.nodeproof.reference+json"
_FOLDER = "references"
_MOST_BEFORE = 100
_IDENTITY_CHARS = 16


class Replaced(msgspec.Struct, frozen=True):
    """A reference that was one before."""

    run_id: str
    pinned_at: float
    note: str = ""


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is pinned."""

    schema: int = 1
    benchmark_id: str
    fingerprint: str
    model: str
    box: str
    run_id: str
    manifest_sha256: str
    pinned_at: float
    """Seconds since the epoch."""
    note: str = ""
    metrics: dict[str, float]
    """Kept here, so that the reference outlives its run."""
    before: tuple[Replaced, ...] = ()
    """Newest first."""


class ReferenceStore:
    """The references of the node whose state directory is ``home``."""

    def __init__(self, home: str, key: SigningKey) -> None:
        self._folder = os.path.join(home, _FOLDER)
        self._key = key

    def path(self, record: RunRecord) -> str:
        """Where the reference for runs like ``record`` lies."""
        identity = msgspec.json.encode([record.fingerprint, record.target_model, box_class_of(record)])
        name = f"{record.benchmark_id}-{hashlib.sha256(identity).hexdigest()[:_IDENTITY_CHARS]}.json"
        return os.path.join(self._folder, name)

    def read(self, record: RunRecord) -> Reference | None:
        """The reference for runs like ``record``; None when none is pinned. Raises RecordError when it is not to be believed."""
        found = self._open(self.path(record))
        if found is not None and (found.fingerprint, found.model, found.box) != _identity(record):
            raise RecordError(f"{self.path(record)} was changed: it is the reference of another instrument")
        return found

    def all(self) -> tuple[list[Reference], list[str]]:
        """Every reference that is to be believed, and what is wrong with the others."""
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".json") and not name.startswith("."))
        except FileNotFoundError:
            return [], []
        found, problems = [], []
        for name in names:
            try:
                one = self._open(os.path.join(self._folder, name))
            except RecordError as error:
                problems.append(str(error))
            else:
                found += [] if one is None else [one]
        return found, problems

    def pin(self, record: RunRecord, manifest_sha256: str, note: str, now_s: float) -> Reference:
        """Make ``record`` the reference for runs like it. Raises RecordError, WriteError."""
        old = self.read(record)
        before = () if old is None else (Replaced(old.run_id, old.pinned_at, old.note), *old.before)
        fingerprint, model, box = _identity(record)
        made = Reference(
            benchmark_id=record.benchmark_id,
            fingerprint=fingerprint,
            model=model,
            box=box,
            run_id=record.run_id,
            manifest_sha256=manifest_sha256,
            pinned_at=now_s,
            note=note,
            metrics=record.frame.metrics,
            before=before[:_MOST_BEFORE],
        )
        atomic.make_directory(self._folder)
        atomic.store_file(self.path(record), seal_envelope(PAYLOAD_TYPE, msgspec.json.encode(made), self._key))
        return made

    def _open(self, path: str) -> Reference | None:
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
        opened = open_envelope(data, PAYLOAD_TYPE, path, {self._key.public.key_id: self._key.public})
        if opened.problem:
            raise RecordError(f"the reference {path} is not to be believed: {opened.problem}; pin one anew after removing it")
        try:
            return msgspec.json.decode(opened.payload, type=Reference)
        except msgspec.MsgspecError as error:
            raise RecordError(f"{path} cannot be understood: {error}") from None


def box_class_of(record: RunRecord) -> str:
    """Class of the box; ``unknown`` where nobody looked."""
    state = record.frame.hardware_state or {}
    return str(state.get("perf_class", "") or "unknown").partition("@")[0]


def _identity(record: RunRecord) -> tuple[str, str, str]:
    return record.fingerprint, record.target_model, box_class_of(record)
