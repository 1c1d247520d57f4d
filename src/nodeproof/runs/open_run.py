"""A run that is going on: its directory ``<root>/runs/.open/<run id>/``, and where its files go when nothing is to be kept."""

import contextlib
import os
import shutil
import tempfile
import time
from typing import Protocol

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host import atomic
from nodeproof.host.append import AppendFile
from nodeproof.host.file_mutex import lock_whole_file
from nodeproof.model.run import RunRecord
from nodeproof.runs.artifacts import check_name
from nodeproof.runs.manifest import FILES_DIRECTORY

__all__ = [
    "DRAFT",
    "LOG",
    "OWNER_LOCK",
    "RECORD",
    "TRANSIENT",
    "OpenRun",
    "Publisher",
    "RunKeeper",
    "ScratchRun",
    "encode_record",
    "held",
]

RECORD = "record.json"
LOG = "log.jsonl"
DRAFT = "draft.json"
"""What is known of a run at its start; in the place of a record until there is one."""
OWNER_LOCK = "owner.lock"
TRANSIENT = frozenset({DRAFT, OWNER_LOCK})
"""Not part of the run once it is stored."""


class RunKeeper(Protocol):
    """Where one run puts what is to stay."""

    @property
    def run_id(self) -> str:
        """Its name."""
        ...

    def append(self, line: bytes) -> None:
        """One line of the log. Raises WriteError."""
        ...

    def file_path(self, name: str) -> str:
        """Where file ``name`` belongs; its directory exists. Raises RecordError, WriteError."""
        ...

    def publish(self, record: RunRecord) -> str:
        """Store it for good; the directory, empty when nothing is kept. Raises RecordError, WriteError."""
        ...


class OpenRun:
    """A run on its way into a store. Made by ``RunStore.claim``, which hands in how to publish."""

    def __init__(self, path: str, publish: "Publisher") -> None:
        self.path = path
        self.run_id = os.path.basename(path)
        self._publish = publish
        self._log: AppendFile | None = None
        self._lock_fd = -1

    def begin(self, draft: RunRecord) -> None:
        """Make the directory say whose it is. Raises WriteError."""
        lock = os.path.join(self.path, OWNER_LOCK)
        try:
            self._lock_fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, atomic.FILE_MODE)
            lock_whole_file(self._lock_fd)
        except OSError as error:
            raise atomic.write_error(lock, error) from None
        self._log = AppendFile(os.path.join(self.path, LOG))
        atomic.store_file(os.path.join(self.path, DRAFT), encode_record(draft))

    def append(self, line: bytes) -> None:
        """One line of the log. Raises WriteError."""
        if self._log is not None:
            self._log.append(line)

    def file_path(self, name: str) -> str:
        """Where file ``name`` belongs. After the end there is no such place."""
        if self._lock_fd < 0:
            raise RecordError(f"run {self.run_id} has ended; {name[:80]!r} cannot be added to it")
        folder = os.path.join(self.path, FILES_DIRECTORY)
        path = os.path.join(folder, check_name(name))
        atomic.make_directory(folder)
        return path

    def publish(self, record: RunRecord) -> str:
        """Put the record down and move the directory to its place among the stored ones."""
        if self._log is not None:
            self._log.close()
        try:
            atomic.store_file(os.path.join(self.path, RECORD), encode_record(record))
            return self._publish.publish(self, record)
        finally:
            self.release()

    def release(self) -> None:
        """Give descriptors back; the directory stays as it is."""
        if self._log is not None:
            self._log.close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


class Publisher(Protocol):
    """The store, as an open run knows it."""

    def publish(self, run: OpenRun, record: RunRecord) -> str:
        """Move the directory of ``run`` to its place; the new one."""
        ...


class ScratchRun:
    """A run of which nothing is kept: its files live in a temporary directory until it ends."""

    def __init__(self) -> None:
        self.run_id = f"run-{time.time_ns():019d}"
        self._folder = ""

    def append(self, line: bytes) -> None:
        """Nowhere."""

    def file_path(self, name: str) -> str:
        """In a temporary directory."""
        check_name(name)
        if not self._folder:
            try:
                self._folder = tempfile.mkdtemp(prefix="nodeproof-run-")
            except OSError as error:
                raise atomic.write_error(tempfile.gettempdir(), error) from None
        return os.path.join(self._folder, name)

    def publish(self, record: RunRecord) -> str:
        """Remove the files."""
        del record
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        return ""


def encode_record(record: RunRecord) -> bytes:
    """As it lies on the disk."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def held(directory: str) -> bool:
    """Whether some process holds the owner's lock of an open run."""
    with contextlib.suppress(OSError):
        fd = os.open(os.path.join(directory, OWNER_LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return not lock_whole_file(fd)
        finally:
            os.close(fd)
    return False
