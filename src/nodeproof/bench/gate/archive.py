"""Where a gate finds records: a store of runs, or a folder of run directories that were copied from somewhere else."""

import os
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from nodeproof.errors import RecordError
from nodeproof.runs.manifest import MANIFEST, read_manifest, verify
from nodeproof.runs.run_directory import read_record
from nodeproof.runs.store import RunStore, StoredRun

__all__ = ["Archive", "CopiedRuns", "StoredRuns"]

_PAGE = 100
_MAX_COPIES = 10_000
_RUN = "run-"


class Archive(Protocol):
    """Runs that have ended."""

    def newest_first(self, benchmark_id: str) -> Iterator[StoredRun | RecordError]:
        """Runs of a benchmark with everything that is wrong with them, each opened and hashed only when it is asked for.

        One whose record cannot be read is an error in its place: nobody can tell what it would have said.
        """
        ...


class StoredRuns:
    """Those of a store, found by its index."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def newest_first(self, benchmark_id: str) -> Iterator[StoredRun | RecordError]:
        """See :class:`Archive`."""
        seen: set[str] = set()
        limit: int | None = _PAGE
        while True:
            found = self._store.history(benchmark_id, limit)
            for summary in found:
                if summary.run_id not in seen:
                    seen.add(summary.run_id)
                    try:
                        yield self._store.inspect(summary.run_id)
                    except RecordError as error:
                        yield error
            if limit is None or len(found) < limit:
                return
            limit = None


class _Copy(NamedTuple):
    recorded_at: float
    run_id: str
    benchmark_id: str
    place: str


class CopiedRuns:
    """Those below ``folder``: every directory in it that holds a manifest. Raises RecordError when there is no such folder."""

    def __init__(self, folder: str) -> None:
        if not os.path.isdir(folder):
            raise RecordError(f"{folder} is no folder of runs")
        copies = []
        for place, _, names in os.walk(folder):
            if MANIFEST in names:
                copies.append(_copy(place))
            if len(copies) > _MAX_COPIES:
                raise RecordError(f"{folder} holds more than {_MAX_COPIES} runs; name a smaller folder")
        self._copies = sorted(copies, reverse=True)

    def newest_first(self, benchmark_id: str) -> Iterator[StoredRun | RecordError]:
        """See :class:`Archive`."""
        for copy in self._copies:
            if copy.benchmark_id == benchmark_id:
                yield _opened(copy.place)


def _copy(place: str) -> _Copy:
    """What the record says; where it cannot be read, what the path says of it."""
    try:
        record = read_record(place)
    except (RecordError, OSError):
        folder, name = os.path.split(os.path.abspath(place))
        nanos = name.removeprefix(_RUN)
        return _Copy(int(nanos) / 1e9 if nanos.isdecimal() else 0.0, name, os.path.basename(folder), place)
    return _Copy(record.recorded_at, record.run_id, record.benchmark_id, place)


def _opened(place: str) -> StoredRun | RecordError:
    try:
        record = read_record(place)
        manifest, _ = read_manifest(place)
    except (RecordError, OSError) as error:
        return RecordError(str(error))
    return StoredRun(place, record, tuple(verify(place, manifest)))
