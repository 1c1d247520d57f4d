"""What this machine did before, one file an identity: ``<state root>/baselines/<benchmark>-<identity>.json``.

A line of figures nobody can vouch for is worse than none, so each file is signed with the key of this node; one whose bytes were
changed, or that comes from another node, is named, set aside, and begun anew::

    {"schema":2,"benchmark":"stream","identity":"9f...","metric":"triad_mb_s","samples":[{"value":18423.1,...}],
     "key_id":"7c...","signature":"41..."}
"""

import os
import time

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host.atomic import store_file
from nodeproof.host.node_key import NodeKey

__all__ = ["BaselineFile", "BaselineStore", "Sample"]

_SCHEMA = 2
_DOMAIN = "baseline"
_MOST_SAMPLES = 200
_IDENTITY_CHARS = 16


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One validated number of one run on a fit box."""

    value: float
    at: float
    """Seconds since the epoch."""
    run_id: str
    environment: str
    """Fingerprint of the box and its software."""


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All samples of one identity, oldest first."""

    schema: int = _SCHEMA
    benchmark: str
    identity: str
    metric: str
    samples: list[Sample]
    key_id: str = ""
    """Which key it was signed with."""
    signature: str = ""

    def signed_part(self) -> bytes:
        """Everything but the signature."""
        return msgspec.json.encode(msgspec.structs.replace(self, signature=""))


class BaselineStore:
    """Baselines below ``root``, signed with ``key``. Writers hold the lock of jobs."""

    def __init__(self, root: str, key: NodeKey) -> None:
        self._root = root
        self._key = key

    def path(self, benchmark: str, identity: str) -> str:
        """Where the file lies."""
        return os.path.join(self._root, f"{benchmark}-{identity[:_IDENTITY_CHARS]}.json")

    def read(self, benchmark: str, identity: str) -> BaselineFile | None:
        """The samples; None when there are none. Raises RecordError naming the file when it is not as this node wrote it."""
        path = self.path(benchmark, identity)
        try:
            with open(path, "rb") as file:
                found = msgspec.json.decode(file.read(), type=BaselineFile)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
        except msgspec.DecodeError as error:
            raise RecordError(f"{path} was changed or damaged: {error}") from None
        if not self._key.vouches(_DOMAIN, found.signed_part(), found.signature):
            own = self._key.key_id
            if found.key_id == own:
                raise RecordError(f"{path} was changed: its content is not what was signed")
            raise RecordError(
                f"{path} was signed with key {found.key_id or '(none)'}, that of this node is {own} ({self._key.path})"
            )
        if found.identity != identity or found.benchmark != benchmark:
            raise RecordError(f"{path} was changed: it is the baseline of {found.benchmark} {found.identity}")
        return found

    def add(self, benchmark: str, identity: str, metric: str, sample: Sample) -> None:
        """Add one. A file that cannot be believed is set aside first. Raises WriteError, and RecordError for a key of no use."""
        self._key.sign(_DOMAIN, b"")  # with a key of no use the file is not to blame
        path = self.path(benchmark, identity)
        try:
            found = self.read(benchmark, identity)
        except RecordError:
            os.rename(path, f"{path}.damaged-{time.time_ns()}")
            found = None
        before = found.samples if found is not None else []
        samples = [*before, sample][-_MOST_SAMPLES:]
        file = BaselineFile(benchmark=benchmark, identity=identity, metric=metric, samples=samples, key_id=self._key.key_id)
        signature = self._key.sign(_DOMAIN, file.signed_part())
        store_file(path, msgspec.json.encode(msgspec.structs.replace(file, signature=signature)) + b"\n")
