"""``.index.sqlite3``: one row a run, for lists. Everything in it can be made again from the run directories.

Reading it needs no right to write. A file that SQLite cannot make sense of is set aside under another name, and made anew.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator

import msgspec

from nodeproof.errors import RecordError
from nodeproof.model.run import RunSource, RunStatus, VerdictKind

__all__ = ["Row", "RunIndex", "RunSummary"]

_VERSION = 2
"""1: without an order of the newest. Both have the same rows, so a step up or down loses none."""
_BUSY_S = 5.0
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    benchmark_id TEXT NOT NULL,
    recorded_at REAL NOT NULL,
    status TEXT NOT NULL,
    verdict TEXT NOT NULL,
    exit_code INTEGER NOT NULL,
    source TEXT NOT NULL,
    target_model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    previous_id TEXT NOT NULL,
    previous_sha256 TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_time ON runs (benchmark_id, recorded_at);
"""
_ORDER = "CREATE INDEX IF NOT EXISTS runs_newest ON runs (recorded_at, run_id);"
_NO_ORDER = "DROP INDEX IF EXISTS runs_newest;"
_SUMMARY = "run_id, benchmark_id, recorded_at, status, verdict, exit_code, source, target_model, fingerprint, bytes"


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a list."""

    run_id: str
    benchmark_id: str
    recorded_at: float
    status: RunStatus
    verdict: VerdictKind
    exit_code: int
    source: RunSource
    target_model: str
    fingerprint: str
    bytes: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A summary with what guards its directory."""

    summary: RunSummary
    manifest_sha256: str
    previous_id: str = ""
    previous_sha256: str = ""


class RunIndex:
    """The index at ``path``. The caller holds the store's lock while writing."""

    def __init__(self, path: str) -> None:
        self.path = path

    def add(self, rows: Iterable[Row]) -> None:
        """Insert or replace. Raises RecordError."""
        with self._writing() as connection:
            connection.execute("BEGIN IMMEDIATE")
            for row in rows:
                values = (*msgspec.structs.astuple(row.summary), row.manifest_sha256, row.previous_id, row.previous_sha256)
                connection.execute(
                    f"INSERT OR REPLACE INTO runs ({_SUMMARY}, manifest_sha256, previous_id, previous_sha256)"  # noqa: S608 - constants
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
            connection.execute("COMMIT")

    def remove(self, run_ids: Iterable[str]) -> None:
        """Forget. Raises RecordError."""
        with self._writing() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM runs WHERE run_id = ?", [(run_id,) for run_id in run_ids])
            connection.execute("COMMIT")

    def newest(self, benchmark_id: str = "", limit: int | None = None) -> list[RunSummary]:
        """Newest first. Raises RecordError."""
        wanted, values = ("WHERE benchmark_id = ?", (benchmark_id,)) if benchmark_id else ("", ())
        query = f"SELECT {_SUMMARY} FROM runs {wanted} ORDER BY recorded_at DESC, run_id DESC LIMIT ?"  # noqa: S608 - constants
        return _summaries(self._select(query, (*values, -1 if limit is None else limit)))

    def oldest(self, limit: int) -> list[RunSummary]:
        """Oldest first. Raises RecordError."""
        query = f"SELECT {_SUMMARY} FROM runs ORDER BY recorded_at, run_id LIMIT ?"  # noqa: S608 - constants
        return _summaries(self._select(query, (limit,)))

    def totals(self) -> tuple[int, int]:
        """Number of runs, and bytes of all of them. Raises RecordError."""
        found = self._select("SELECT count(*), coalesce(sum(bytes), 0) FROM runs", ())
        return (int(str(found[0][0])), int(str(found[0][1]))) if found else (0, 0)

    def version(self) -> int | None:
        """Of the file's form; None when there is no file. Raises RecordError."""
        found = self._select("PRAGMA user_version", ())
        return int(str(found[0][0])) if found else None

    def damage(self) -> str:
        """What SQLite finds wrong with the file; empty when nothing is, or it is not there. Raises RecordError."""
        found = self._select("PRAGMA quick_check(5)", ())
        return "; ".join(str(row[0]) for row in found if row[0] != "ok")

    def step_to(self, version: int) -> None:
        """Bring the file into the form of ``version``, 1 or 2; all rows stay. Raises RecordError."""
        if os.path.exists(self.path):
            with self._writing() as connection:
                connection.executescript(f"{_ORDER if version >= _VERSION else _NO_ORDER}PRAGMA user_version = {version};")

    def places(self) -> dict[str, str]:
        """Benchmark of every run. Raises RecordError."""
        return {str(run_id): str(benchmark) for run_id, benchmark in self._select("SELECT run_id, benchmark_id FROM runs", ())}

    def head(self) -> tuple[str, str] | None:
        """Id and manifest hash of the run stored last. Raises RecordError."""
        found = self._select("SELECT run_id, manifest_sha256 FROM runs ORDER BY seq DESC LIMIT 1", ())
        return (str(found[0][0]), str(found[0][1])) if found else None

    def guards(self, run_id: str) -> list[tuple[str, str]]:
        """Who says what the manifest's hash of ``run_id`` is: the index, and the run stored next. Raises RecordError."""
        query = (
            "SELECT 'the index', manifest_sha256 FROM runs WHERE run_id = ?"
            " UNION ALL SELECT 'the manifest of ' || run_id, previous_sha256 FROM runs WHERE previous_id = ?"
        )
        return [(str(who), str(sha256)) for who, sha256 in self._select(query, (run_id, run_id))]

    def _select(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        if not os.path.exists(self.path):
            return []
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=_BUSY_S)) as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)) as connection:
                self._bring_up(connection)
                yield connection
        except sqlite3.Error as error:
            raise self._error(error) from None

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        """Make the tables, or what they lack. Raises RecordError for the file of a newer nodeproof, which is set aside whole."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            aside = f"{self.path}.form-{version}-{time.time_ns():019d}"
            with contextlib.suppress(OSError):
                os.rename(self.path, aside)
            raise RecordError(
                f"{self.path}: form {version}, of a newer nodeproof; it was set aside as {aside}, and is made again"
            )
        if version < _VERSION:
            connection.executescript(f"{_SCHEMA}{_ORDER}PRAGMA user_version = {_VERSION};")

    def _error(self, error: sqlite3.Error) -> RecordError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN:
            aside = f"{self.path}.damaged-{time.time_ns():019d}"
            with contextlib.suppress(OSError):
                os.rename(self.path, aside)
            return RecordError(f"{self.path} is damaged ({error}); it was set aside as {aside}")
        return RecordError(f"{self.path}: {error}")


def _summaries(rows: Iterable[tuple[object, ...]]) -> list[RunSummary]:
    names = RunSummary.__struct_fields__
    return [msgspec.convert(dict(zip(names, row, strict=True)), RunSummary, strict=False) for row in rows]
