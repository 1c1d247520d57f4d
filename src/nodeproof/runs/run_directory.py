"""One directory of a run, stored or open: its record, what the index says of it, and moving it."""

import contextlib
import os

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host import atomic
from nodeproof.model.run import RunRecord
from nodeproof.runs.index import Row, RunSummary
from nodeproof.runs.manifest import FileEntry, Manifest, Previous, hash_file, open_plain, read_manifest
from nodeproof.runs.open_run import RECORD

__all__ = ["files_manifest", "index_row", "move", "names_in", "read_record", "unchanged_record"]

_MAX_RECORD_BYTES = 256 << 20


def files_manifest(record: RunRecord, files: dict[str, FileEntry]) -> Manifest:
    """Manifest of ``files``, before it is known what was stored last."""
    return Manifest(schema=1, run_id=record.run_id, benchmark_id=record.benchmark_id, files=files)


def index_row(record: RunRecord, manifest: Manifest, sha256: str) -> Row:
    """What the index says of a run."""
    summary = RunSummary(
        run_id=record.run_id,
        benchmark_id=record.benchmark_id,
        recorded_at=record.recorded_at,
        status=record.status,
        verdict=record.verdict.kind,
        exit_code=record.exit_code,
        source=record.source,
        target_model=record.target_model,
        fingerprint=record.fingerprint,
        bytes=sum(entry.bytes for entry in manifest.files.values()),
    )
    previous = manifest.previous or Previous("", "")
    return Row(summary=summary, manifest_sha256=sha256, previous_id=previous.run_id, previous_sha256=previous.manifest_sha256)


def read_record(directory: str, run_id: str = "") -> RunRecord:
    """The record in ``directory``. Raises RecordError; with ``run_id``, also when it is that of another run."""
    path = os.path.join(directory, RECORD)
    try:
        with open(open_plain(path), "rb") as file:
            record = msgspec.json.decode(file.read(_MAX_RECORD_BYTES), type=RunRecord)
    except FileNotFoundError:
        raise RecordError(f"{path} is missing") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"{path} cannot be understood: {error}") from None
    if run_id and (record.run_id, record.benchmark_id) != (run_id, os.path.basename(os.path.dirname(directory))):
        raise RecordError(f"{path} is that of run {record.run_id} of {record.benchmark_id}")
    return record


def unchanged_record(directory: str) -> RunRecord:
    """The record in ``directory``, if its bytes are those that the manifest names. Raises RecordError, OSError."""
    manifest, _ = read_manifest(directory)
    path = os.path.join(directory, RECORD)
    entry = manifest.files.get(RECORD)
    if entry is None or hash_file(path) != entry:
        raise RecordError(f"{path} was changed")
    return read_record(directory)


def move(directory: str, target: str) -> None:
    """Rename a directory that may be read-only: a new parent means writing its entry ``..``. Raises OSError."""
    with contextlib.suppress(PermissionError):
        os.chmod(directory, atomic.DIRECTORY_MODE)
    os.rename(directory, target)


def names_in(directory: str) -> list[str]:
    """Names in ``directory`` that do not begin with a dot; none when it is not there."""
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except OSError:
        return []
