"""``manifest.json``: every file of a run with its size and SHA-256, and the run that was stored before it.

::

    {"schema": 1, "run_id": "run-1764541241123456789", "benchmark_id": "stream",
     "files": {"record.json": {"sha256": "9f86...", "bytes": 2210}, "log.jsonl": {...}, "files/stream.out": {...}},
     "previous": {"run_id": "run-1764541200000000000", "manifest_sha256": "60303..."}}

A changed byte in a file contradicts the manifest; a changed manifest contradicts the index, and the manifest of the run that was
stored next.
"""

import contextlib
import errno
import hashlib
import os
import stat

import msgspec

from nodeproof.errors import RecordError
from nodeproof.host import atomic

__all__ = [
    "FILES_DIRECTORY",
    "MANIFEST",
    "MANIFEST_SCHEMA",
    "SIGNATURE",
    "FileEntry",
    "Manifest",
    "Previous",
    "hash_file",
    "open_plain",
    "read_manifest",
    "seal",
    "survey",
    "verify",
    "write_manifest",
]

MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
"""Made after the manifest, whose hash it signs; so it cannot stand in it."""
FILES_DIRECTORY = "files"
MANIFEST_SCHEMA = 1
_BLOCK_BYTES = 1 << 20
_MAX_MANIFEST_BYTES = 64 << 20
_READ_ONLY_FILE = 0o440
_READ_ONLY_DIRECTORY = 0o550


class FileEntry(msgspec.Struct, frozen=True):
    """One file."""

    sha256: str
    bytes: int


class Previous(msgspec.Struct, frozen=True):
    """The run stored before."""

    run_id: str
    manifest_sha256: str


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What belongs to a run."""

    schema: int = 0
    run_id: str
    benchmark_id: str
    files: dict[str, FileEntry]
    """By path inside the run's directory."""
    previous: Previous | None = None


def survey(directory: str, *, leave_out: frozenset[str] = frozenset()) -> dict[str, FileEntry]:
    """Hash every plain file of ``directory`` and wait until it is on the disk; links and special files are removed.

    Raises OSError.
    """
    entries = {}
    for path in _plain_files(directory, remove_others=True):
        name = os.path.relpath(path, directory)
        if name not in {MANIFEST, SIGNATURE} and name not in leave_out:
            entries[name] = hash_file(path, durable=True)
    for folder, _, _ in os.walk(directory):
        atomic.sync_directory(folder)
    return entries


def write_manifest(directory: str, manifest: Manifest) -> str:
    """Put ``manifest`` down; its own SHA-256. Raises WriteError."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    atomic.store_file(os.path.join(directory, MANIFEST), data)
    return hashlib.sha256(data).hexdigest()


def read_manifest(directory: str) -> tuple[Manifest, str]:
    """The manifest and its own SHA-256. Raises RecordError naming it, OSError when it cannot be read."""
    path = os.path.join(directory, MANIFEST)
    with open(open_plain(path), "rb") as file:
        data = file.read(_MAX_MANIFEST_BYTES)
    try:
        return msgspec.json.decode(data, type=Manifest), hashlib.sha256(data).hexdigest()
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"{path} cannot be understood: {error}") from None


def verify(directory: str, manifest: Manifest) -> list[str]:
    """Every way in which the files differ from ``manifest``, each naming its file; empty when all is as it was written."""
    problems = []
    for name, entry in sorted(manifest.files.items()):
        path = os.path.join(directory, name)
        if not _inside(directory, path):
            problems.append(f"{os.path.join(directory, MANIFEST)} names {name[:80]!r}, which lies elsewhere")
            continue
        try:
            found = hash_file(path)
        except FileNotFoundError:
            problems.append(f"{path} is missing")
        except OSError as error:
            problems.append(f"{path} cannot be read: {os.strerror(error.errno or 0)}")
        else:
            if found != entry:
                problems.append(
                    f"{path} was changed: {found.bytes} bytes, sha256 {found.sha256}, stored as {entry.bytes}, {entry.sha256}"
                )
    known = {*manifest.files, MANIFEST, SIGNATURE}
    strangers = (os.path.relpath(path, directory) for path in _plain_files(directory, remove_others=False))
    problems += [f"{os.path.join(directory, name)} was added" for name in sorted(strangers) if name not in known]
    return problems


def seal(directory: str) -> None:
    """Take away every right to write what lies there. What the file system refuses stays as it is; the hashes guard it."""
    for path in _plain_files(directory, remove_others=False):
        with contextlib.suppress(OSError):
            os.chmod(path, _READ_ONLY_FILE)
    for folder, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            os.chmod(folder, _READ_ONLY_DIRECTORY)


def _plain_files(directory: str, *, remove_others: bool) -> list[str]:
    found = []
    for folder, folders, names in os.walk(directory):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*names, *links]:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                found.append(path)
            elif remove_others:
                os.unlink(path)
    return found


def hash_file(path: str, *, durable: bool = False) -> FileEntry:
    """Hash and size of ``path``; ``durable`` waits until it is on the disk. Raises OSError."""
    digest, size = hashlib.sha256(), 0
    fd = open_plain(path)
    try:
        while block := os.read(fd, _BLOCK_BYTES):
            digest.update(block)
            size += len(block)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    return FileEntry(digest.hexdigest(), size)


def open_plain(path: str) -> int:
    """A descriptor of a plain file, which the caller closes; a pipe or device in its place holds nobody up. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, os.strerror(code), path)
    return fd


def _inside(directory: str, path: str) -> bool:
    """Whether ``path`` lies in ``directory``, whatever links there are on the way."""
    return os.path.realpath(path).startswith(os.path.realpath(directory) + os.sep)
