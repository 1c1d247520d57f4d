"""What this machine did before, one file an identity: ``<state root>/baselines/<benchmark>-<identity>.json``.

A line of figures nobody can vouch for is worse than none, so each file holds a SHA-256 over its samples; one whose bytes were
changed is named, set aside, and begun anew::

    {"schema":1,"benchmark":"stream","identity":"9f...","metric":"triad_mb_s","samples":[{"value":18423.1,...}],"sha256":"41..."}
"""

import hashlib
import os
import time

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host.atomic import store_file

__all__ = ["BaselineFile", "BaselineStore", "Sample"]

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


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one identity, oldest first."""

    schema: int = 1
    benchmark: str
    identity: str
    metric: str
    samples: list[Sample]
    sha256: str = ""

    def checksum(self) -> str:
        """SHA-256 over everything but itself."""
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(self, sha256=""))).hexdigest()


class BaselineStore:
    """Baselines below ``root``. Writers hold the lock of jobs."""

    def __init__(self, root: str) -> None:
        self._root = root

    def path(self, benchmark: str, identity: str) -> str:
        """Where the file lies."""
        return os.path.join(self._root, f"{benchmark}-{identity[:_IDENTITY_CHARS]}.json")

    def read(self, benchmark: str, identity: str) -> BaselineFile | None:
        """The samples; None when there are none. Raises RecordError naming the file when it is not as it was written."""
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
        told = found.checksum()
        if told != found.sha256:
            raise RecordError(f"{path} was changed: its samples give sha256 {told}, the file says {found.sha256}")
        if found.identity != identity or found.benchmark != benchmark:
            raise RecordError(f"{path} was changed: it is the baseline of {found.benchmark} {found.identity}")
        return found

    def add(self, benchmark: str, identity: str, metric: str, sample: Sample) -> None:
        """Add one. A damaged file is set aside first. Raises WriteError."""
        path = self.path(benchmark, identity)
        try:
            found = self.read(benchmark, identity)
        except RecordError:
            os.rename(path, f"{path}.damaged-{time.time_ns()}")
            found = None
        before = found.samples if found is not None else []
        file = BaselineFile(benchmark=benchmark, identity=identity, metric=metric, samples=[*before, sample][-_MOST_SAMPLES:])
        store_file(path, msgspec.json.encode(msgspec.structs.replace(file, sha256=file.checksum())) + b"\n")
