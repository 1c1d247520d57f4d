"""Where runs are kept.

::

    <root>/runs/<benchmark>/<run id>/   a run that ended: record.json, log.jsonl, manifest.json, files/, and signature.json
                                        where its store signs; read-only
    <root>/runs/.open/<run id>/         a run that is going on: draft.json, log.jsonl, files/
    <root>/runs/.live/<run id>.json     how such a run gets on, for whoever watches (runs.live)
    <root>/runs/.damaged/<run id>/      what cannot be understood, set aside
    <root>/runs/.index.sqlite3          for lists; made again from the directories when need be
    <root>/runs/.store.lock             held while directories change their place

A run is put together in ``.open``, waits for the disk, and is renamed into its place: a reader sees all of it or nothing. A run
whose owner died is found there by the next who opens the store, and stored as crashed, with all that it had said.
"""

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from nodeproof.errors import NodeproofError, RecordError, WriteError
from nodeproof.host import atomic
from nodeproof.host.file_mutex import file_mutex
from nodeproof.model.run import ExecutorMessage, RunRecord
from nodeproof.runs.artifacts import check_name
from nodeproof.runs.dsse import Signer
from nodeproof.runs.index import Row, RunIndex, RunSummary
from nodeproof.runs.manifest import (
    FILES_DIRECTORY,
    MANIFEST,
    SIGNATURE,
    Manifest,
    Previous,
    read_manifest,
    seal,
    survey,
    verify,
    write_manifest,
)
from nodeproof.runs.open_run import LOG, RECORD, TRANSIENT, OpenRun, encode_record
from nodeproof.runs.recovery import interrupted_record, owner_is_dead, read_draft, read_log
from nodeproof.runs.run_directory import files_manifest, index_row, move, names_in, read_record, unchanged_record
from nodeproof.runs.signature import sign_run

__all__ = ["RunStore", "StoreLimits", "StoredRun"]

_log = logging.getLogger(__name__)
_LOCK_TIMEOUT_S = 30.0
_DAY_S = 86400.0
_REMOVED_AT_ONCE = 32
"""More than one run that is stored makes room for, and few enough to keep nobody waiting who wants the lock."""
_LOOKED_AT = 1000
"""Newest runs of a benchmark among which others of the same instrument are looked for."""


class StoreLimits(NamedTuple):
    """What the store may take; the oldest runs go first."""

    max_runs: int = 2000
    max_age_s: float = 400 * _DAY_S
    max_total_bytes: int = 4 << 30
    keep_runs: int = 20
    """So many of the newest never go for their age: the clock may be wrong. The one stored last never goes at all."""


class StoredRun(NamedTuple):
    """A run as it lies in the store."""

    path: str
    """Empty when it lies with another process, which told of it."""
    record: RunRecord
    problems: tuple[str, ...]
    """Every way in which it is not what was stored, each naming its file; empty when all bytes are as they were."""

    def messages(self) -> list[ExecutorMessage]:
        """Everything it said, in order. Raises RecordError."""
        return read_log(os.path.join(self.path, LOG))

    def files(self) -> list[str]:
        """Paths of the files that it left."""
        folder = os.path.join(self.path, FILES_DIRECTORY)
        return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if self.path and os.path.isdir(folder) else []


class RunStore:
    """The store at ``root``. Any number of processes may use it at once. Making one touches nothing."""

    def __init__(self, root: str, limits: StoreLimits | None = None, signer: Signer | None = None) -> None:
        self.root = root
        self._signer = signer
        self._limits = limits or StoreLimits()
        self._runs = os.path.join(root, "runs")
        self._open = os.path.join(self._runs, ".open")
        self._damaged = os.path.join(self._runs, ".damaged")
        self._index = RunIndex(os.path.join(self._runs, ".index.sqlite3"))

    @property
    def runs_folder(self) -> str:
        """Where the runs are."""
        return self._runs

    def claim(self, draft: RunRecord) -> OpenRun:
        """Begin a run: ``draft`` is what is known of it, its ``run_id`` is given here. Raises WriteError.

        Runs of dead owners are stored first.
        """
        check_name(draft.benchmark_id)
        with self._locked():
            self._recover()
            run = OpenRun(self._claim_directory(), self)
            try:
                run.begin(msgspec.structs.replace(draft, run_id=run.run_id))
            except WriteError:
                run.release()
                shutil.rmtree(run.path, ignore_errors=True)
                raise
        return run

    def publish(self, run: OpenRun, record: RunRecord) -> str:
        """Move an open run whose record is written to its place. For :class:`OpenRun`. Raises RecordError, WriteError."""
        try:
            files = survey(run.path, leave_out=TRANSIENT)
        except OSError as error:
            raise atomic.write_error(run.path, error) from None
        with self._locked():
            path = self._install(run.path, record, files_manifest(record, files))
            self._prune()
        return path

    def recover(self) -> list[str]:
        """Store what dead owners left, and set the index right; ids of the runs found. Raises WriteError."""
        if not os.path.isdir(self._runs):
            return []
        with self._locked():
            found = self._recover()
            self._reconcile()
            self._prune()
        return found

    def prune(self, most: int) -> int:
        """Remove the oldest runs beyond the limits, at most so many; how many that were. Raises WriteError.

        For whoever prunes beside other work: storing a run removes only a few.
        """
        if not os.path.isdir(self._runs):
            return 0
        with self._locked():
            return self._prune(most)

    def set_aside(self, run_id: str, reason: str) -> None:
        """Take a stored run that cannot be believed out of every list; its files stay, below ``.damaged``. Raises WriteError."""
        with self._locked():
            place = self._place_of(check_name(run_id))
            if place is not None:
                self._set_aside(place, reason)
            self._reconcile()

    def going_on(self) -> list[RunRecord]:
        """Drafts of the runs whose owners live."""
        found = []
        for name in names_in(self._open):
            directory = os.path.join(self._open, name)
            with contextlib.suppress(RecordError):
                draft = read_draft(directory)
                if not owner_is_dead(draft, directory):
                    found.append(draft)
        return found

    def history(self, benchmark_id: str = "", limit: int | None = 20) -> list[RunSummary]:
        """Stored runs, newest first; of one benchmark, or of all. A run that cannot be understood hides none of the others."""
        try:
            if os.path.exists(self._index.path) or not os.path.isdir(self._runs):
                return self._index.newest(benchmark_id, limit)
        except RecordError as error:
            _log.warning("%s", error)
        with contextlib.suppress(NodeproofError):
            with self._locked():
                self._reconcile()
            return self._index.newest(benchmark_id, limit)
        # A reader without the right to write the index looks for itself.
        rows = [row for name, place in self._places().items() if (row := self._row(place, name)) is not None]
        wanted = [row.summary for row in rows if benchmark_id in {"", row.summary.benchmark_id}]
        return sorted(wanted, key=lambda run: (run.recorded_at, run.run_id), reverse=True)[:limit]

    def place(self, run_id: str) -> str:
        """Directory of a run, stored or going on. Raises RecordError when there is none."""
        going_on = os.path.join(self._open, check_name(run_id))
        place = self._place_of(run_id) or (going_on if os.path.isdir(going_on) else None)
        if place is None:
            raise RecordError(f"there is no run {run_id} in {self._runs}")
        return place

    def load(self, run_id: str) -> StoredRun:
        """A run all of whose bytes are as they were stored. Raises RecordError naming the file that is not."""
        run = self.inspect(run_id)
        if run.problems:
            raise RecordError("; ".join(run.problems))
        return run

    def inspect(self, run_id: str) -> StoredRun:
        """A run with everything that is wrong with it. Raises RecordError when there is none, or no record can be read of it."""
        place = self._place_of(check_name(run_id))
        if place is None:
            raise RecordError(f"there is no run {run_id} in {self._runs}")
        try:
            record = read_record(place)
        except OSError as error:
            raise RecordError(f"{os.path.join(place, RECORD)} cannot be read: {os.strerror(error.errno or 0)}") from None
        try:
            manifest, sha256 = read_manifest(place)
            problems = verify(place, manifest)
        except (OSError, RecordError) as error:
            return StoredRun(place, record, (f"{os.path.join(place, MANIFEST)}: {error}",))
        with contextlib.suppress(RecordError):
            problems += [
                f"{os.path.join(place, MANIFEST)} was changed: sha256 {sha256}, {who} says {told}"
                for who, told in self._index.guards(run_id)
                if told != sha256
            ]
        return StoredRun(place, record, tuple(problems))

    def records_like(self, record: RunRecord, limit: int) -> list[RunRecord]:
        """Records of the same instrument, newest first, that are as they were stored; their other files are not looked at."""
        found: list[RunRecord] = []
        for summary in self.history(record.benchmark_id, _LOOKED_AT):
            if summary.fingerprint == record.fingerprint and len(found) < limit:
                with contextlib.suppress(RecordError, OSError):
                    found.append(unchanged_record(self.place(summary.run_id)))
        return found

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with file_mutex(os.path.join(self._runs, ".store.lock"), timeout_s=_LOCK_TIMEOUT_S):
            yield

    def _claim_directory(self) -> str:
        atomic.make_directory(self._open)
        nanos = time.time_ns()
        while True:
            name = f"run-{nanos:019d}"
            path = os.path.join(self._open, name)
            try:
                if self._place_of(name) is None:
                    os.mkdir(path, atomic.DIRECTORY_MODE)
                    atomic.sync_directory(self._open)
                    return path
            except FileExistsError:
                pass
            except OSError as error:
                raise atomic.write_error(path, error) from None
            nanos += 1

    def _recover(self) -> list[str]:
        found = []
        for name in names_in(self._open):
            directory = os.path.join(self._open, name)
            try:
                if self._recover_one(directory):
                    found.append(name)
            except RecordError as error:
                self._set_aside(directory, str(error))
            except (WriteError, OSError) as error:
                _log.warning("run %s of a dead process cannot be stored: %s", name, error)
        return found

    def _recover_one(self, directory: str) -> bool:
        """Whether the run in ``directory`` had lost its owner, and was stored."""
        draft = read_draft(directory)
        if not owner_is_dead(draft, directory):
            return False
        try:
            record = read_record(directory)
        except RecordError:
            record = interrupted_record(draft, directory, time.time())
            atomic.store_file(os.path.join(directory, RECORD), encode_record(record))
        _log.warning(
            "run %s of %s was left behind by process %d",
            record.run_id,
            record.benchmark_id,
            draft.owner.pid if draft.owner else 0,
        )
        self._install(directory, record, files_manifest(record, survey(directory, leave_out=TRANSIENT)))
        return True

    def _install(self, directory: str, record: RunRecord, manifest: Manifest) -> str:
        """Seal ``directory`` and rename it into its place; under the lock."""
        head = self._head()
        if head is not None:
            manifest = msgspec.structs.replace(manifest, previous=Previous(*head))
        sha256 = write_manifest(directory, manifest)
        self._sign(directory, record, manifest, sha256)
        folder = os.path.join(self._runs, record.benchmark_id)
        target = os.path.join(folder, record.run_id)
        atomic.make_directory(folder)
        try:
            os.rename(directory, target)
            for name in TRANSIENT:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(target, name))
            for changed in (target, folder, self._runs, self._open):
                atomic.sync_directory(changed)
        except OSError as error:
            raise atomic.write_error(target, error) from None
        seal(target)
        try:
            self._index.add([index_row(record, manifest, sha256)])
        except RecordError as error:
            _log.warning("%s", error)
        return target

    def _sign(self, directory: str, record: RunRecord, manifest: Manifest, sha256: str) -> None:
        """A run that cannot be signed is stored all the same; that it is not signed shows."""
        with contextlib.suppress(OSError):
            # Of an owner that died before it could move the run, whose manifest was another one.
            os.unlink(os.path.join(directory, SIGNATURE))
        if self._signer is not None:
            try:
                sign_run(directory, record, manifest, sha256, self._signer)
            except (RecordError, WriteError) as error:
                _log.warning("run %s is stored without a signature: %s", record.run_id, error)

    def _reconcile(self) -> None:
        """Make the index say what the directories say; under the lock."""
        try:
            known = self._index.places()
        except RecordError as error:
            _log.warning("%s", error)
            known = {}
        places = self._places()
        rows = [row for name in places.keys() - known.keys() if (row := self._row(places[name], name)) is not None]
        gone = known.keys() - places.keys()
        try:
            if rows or not os.path.exists(self._index.path):
                self._index.add(sorted(rows, key=lambda row: (row.summary.recorded_at, row.summary.run_id)))
            if gone:
                self._index.remove(gone)
        except RecordError as error:
            _log.warning("%s", error)

    def _row(self, place: str, name: str) -> Row | None:
        """What the index says of a directory; None, and the directory set aside, when it cannot be understood."""
        try:
            record = read_record(place, name)
            manifest, sha256 = read_manifest(place)
        except (RecordError, FileNotFoundError) as error:
            self._set_aside(place, str(error))
            return None
        except OSError as error:
            _log.warning("%s: %s", place, error)
            return None
        return index_row(record, manifest, sha256)

    def _set_aside(self, directory: str, reason: str) -> None:
        name = os.path.basename(directory)
        target = os.path.join(self._damaged, name)
        try:
            atomic.make_directory(self._damaged)
            while os.path.lexists(target):
                target += "-again"
            move(directory, target)
        except (OSError, WriteError) as error:
            _log.warning("run %s cannot be understood (%s) nor set aside: %s", name, reason, error)
        else:
            _log.warning("run %s was set aside as %s: %s", name, target, reason)

    def _prune(self, at_most: int | None = None) -> int:
        """Remove the oldest runs beyond the limits, at most so many; how many that were. Under the lock."""
        most = _REMOVED_AT_ONCE if at_most is None else at_most
        limits = self._limits
        try:
            count, total = self._index.totals()
            runs = self._index.oldest(most + 1)
        except RecordError as error:
            _log.warning("%s", error)
            return 0
        head = self._head()
        last = head[0] if head is not None else ""
        now_s = time.time()
        removed: list[str] = []
        for run in runs:
            too_old = count > limits.keep_runs and now_s - run.recorded_at > limits.max_age_s
            if not (count > limits.max_runs or total > limits.max_total_bytes or too_old) or len(removed) >= most:
                break
            if run.run_id == last:
                continue
            if self._remove(run):
                removed.append(run.run_id)
            count, total = count - 1, total - run.bytes
        if removed:
            with contextlib.suppress(RecordError):
                self._index.remove(removed)
        return len(removed)

    def _head(self) -> tuple[str, str] | None:
        """The run stored last; of an index that is missing or damaged, after it was made again."""
        for _ in range(2):
            try:
                if os.path.exists(self._index.path):
                    return self._index.head()
            except RecordError as error:
                _log.warning("%s", error)
            self._reconcile()
        return None

    def _remove(self, run: RunSummary) -> bool:
        place = os.path.join(self._runs, run.benchmark_id, run.run_id)
        aside = os.path.join(self._damaged, f".removing-{run.run_id}")
        try:
            atomic.make_directory(self._damaged)
            move(place, aside)
        except FileNotFoundError:
            return True
        except (OSError, WriteError) as error:
            _log.warning("run %s is beyond the limits of the store and cannot be removed: %s", run.run_id, error)
            return False
        for folder, _, _ in os.walk(aside):
            with contextlib.suppress(OSError):
                os.chmod(folder, atomic.DIRECTORY_MODE)
        shutil.rmtree(aside, ignore_errors=True)
        return True

    def _place_of(self, run_id: str) -> str | None:
        """Directory of a stored run; as quick with a hundred thousand of them as with ten."""
        places = (os.path.join(self._runs, benchmark, run_id) for benchmark in names_in(self._runs))
        return next((place for place in places if os.path.isdir(place)), None)

    def _places(self) -> dict[str, str]:
        """Directory of every stored run, by id."""
        found = {}
        for benchmark in names_in(self._runs):
            folder = os.path.join(self._runs, benchmark)
            for name in names_in(folder):
                found[name] = os.path.join(folder, name)
        return found
