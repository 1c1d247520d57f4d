"""One run as it is exported: its record, whether it is to be believed, and what its plots are made of."""

import datetime as dt
import os
from typing import NamedTuple

import msgspec

from nodeproof.errors import RecordError
from nodeproof.model.hardware import Validity
from nodeproof.model.run import RunRecord, RunStatus, VerdictKind
from nodeproof.runs.manifest import FILES_DIRECTORY
from nodeproof.runs.reading import files_of
from nodeproof.runs.store import StoredRun

__all__ = ["DISTRIBUTION", "Distribution", "FileLine", "Sheet", "sheet_of", "validity_of", "when"]

DISTRIBUTION = "-distribution.json"
"""Files of a run that end so hold the distributions of one cell."""
_MAX_BYTES = 1 << 20


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of one cell: the quantiles from 0 to 100 %, evenly spaced, of as many answers as :attr:`samples` says."""

    cell: str
    samples: dict[str, int]
    quantiles_ms: dict[str, list[float]]


class FileLine(NamedTuple):
    """A file that the run left."""

    name: str
    bytes: int
    sha256: str


class Sheet(NamedTuple):
    """What is exported of one run."""

    record: RunRecord
    problems: tuple[str, ...]
    """Why its bytes are not to be believed; empty = they are as they were stored."""
    signed_by: str
    """Id of the key; empty = not signed, or not to be believed."""
    files: tuple[FileLine, ...]
    distributions: tuple[Distribution, ...]

    @property
    def proven(self) -> bool:
        """Whether a good verdict may be shown as one."""
        fit = validity_of(self.record) in {Validity.VALID, Validity.NOT_APPLICABLE}
        good = self.record.status is RunStatus.COMPLETED and self.record.verdict.kind is VerdictKind.PASS
        return good and fit and not self.problems


def sheet_of(run: StoredRun, problems: list[str], signed_by: str) -> Sheet:
    """With what lies beside the record."""
    try:
        files = tuple(FileLine(name, entry.bytes, entry.sha256) for name, entry in files_of(run.path).items())
    except RecordError:
        files = ()
    found = (
        _distribution(os.path.join(run.path, FILES_DIRECTORY, file.name)) for file in files if file.name.endswith(DISTRIBUTION)
    )
    return Sheet(run.record, tuple(problems), signed_by, files, tuple(one for one in found if one is not None))


def _distribution(path: str) -> Distribution | None:
    """None where it cannot be understood: a plot less, and nothing else."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MAX_BYTES), type=Distribution)
    except (OSError, msgspec.MsgspecError):
        return None


def validity_of(record: RunRecord) -> str:
    """What is known of the box, in the word of the report; ``unknown`` where nobody looked."""
    state = record.frame.hardware_state or {}
    after = state.get("postcheck")
    return str(after.get("validity", Validity.UNKNOWN)) if isinstance(after, dict) else str(Validity.UNKNOWN)


def when(record: RunRecord) -> str:
    """When it ended, in UTC."""
    try:
        return f"{dt.datetime.fromtimestamp(record.recorded_at, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return "at no time of this world"
