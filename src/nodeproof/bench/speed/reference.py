"""The pinned reference of a benchmark: a state of an endpoint that later runs are held against. It moves when somebody says so.

One file for each endpoint and model, ``reference-<16 digits>.json`` among the artifacts of the benchmark, signed with the key of
this node: one that was changed by hand is named and not believed.
"""

import hashlib
import os
from typing import NamedTuple

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host.atomic import store_file
from nodeproof.host.node_key import NodeKey
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.endpoint import TargetEndpoint

__all__ = ["Earlier", "Found", "Reference", "ReferenceStore"]

_DOMAIN = "bench reference"
_MAX_BYTES = 1 << 20
_KEPT = 50


class Earlier(msgspec.Struct, frozen=True):
    """A reference that was pinned before."""

    recorded_at: float
    metrics: dict[str, float]


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is held against."""

    benchmark_id: str
    instrument: str
    """Date of the benchmark with which it was taken."""
    recorded_at: float
    """Seconds since the epoch."""
    target: str
    model: str
    metrics: dict[str, float]
    earlier: tuple[Earlier, ...] = ()
    """What was pinned before it, oldest first: small steps add up to a long way."""


class _File(msgspec.Struct):
    reference: msgspec.Raw
    signature: str


class Found(NamedTuple):
    """What there is."""

    reference: Reference | None
    problem: str = ""
    """Why a file that is there is not believed."""


class ReferenceStore:
    """References of one benchmark."""

    def __init__(self, artifacts: ArtifactStore, target: TargetEndpoint) -> None:
        name = hashlib.sha256(f"{target.base_url}\0{target.model}".encode()).hexdigest()[:16]
        self.path = os.path.join(artifacts.path, f"reference-{name}.json")
        self._artifacts, self._target = artifacts, target
        self._key = NodeKey(os.path.dirname(os.path.dirname(artifacts.path)))

    def read(self) -> Found:
        """The reference of this endpoint; none, and perhaps the reason. Never raises for what stands in the file."""
        try:
            with open(self.path, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return Found(None)
        except OSError as error:
            return Found(None, f"{self.path}: {error.strerror}")
        try:
            return self._believed(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            return Found(None, f"{self.path} is damaged ({error}); remove it and pin a reference anew")
        except RecordError as error:
            return Found(None, str(error))

    def _believed(self, data: bytes) -> Found:
        document = msgspec.json.decode(data, type=_File)
        reference = msgspec.json.decode(document.reference, type=Reference)
        if not self._key.vouches(_DOMAIN, bytes(document.reference), document.signature):
            return Found(None, f"{self.path} is not what this node wrote; remove it and pin a reference anew")
        if (reference.target, reference.model) != (self._target.base_url, self._target.model):
            return Found(None, f"{self.path} is of {reference.model} at {reference.target}; remove it")
        return Found(reference)

    def pin(self, reference: Reference, before: Reference | None) -> None:
        """Make ``reference`` the one that counts. Raises WriteError, RecordError."""
        if before is not None:
            earlier = (*before.earlier, Earlier(before.recorded_at, before.metrics))
            kept = earlier if len(earlier) <= _KEPT else (earlier[0], *earlier[-_KEPT + 1 :])
            reference = msgspec.structs.replace(reference, earlier=kept)
        body = msgspec.json.encode(reference)
        document = {"reference": msgspec.Raw(body), "signature": self._key.sign(_DOMAIN, body)}
        self._artifacts.directory()
        store_file(self.path, msgspec.json.encode(document) + b"\n")
