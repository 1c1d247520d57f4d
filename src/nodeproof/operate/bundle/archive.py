"""The file of a bundle: a gzipped tar of plain files, ``bundle.json`` first, which lists the others with size and SHA-256.

Whoever reads one trusts nothing of it: it may come from anybody. Sizes are limited before anything is unpacked, only plain files
with harmless names are taken, and each must be what the manifest says.
"""

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from typing import IO

import msgspec

from nodeproof.errors import RecordError, UsageError
from nodeproof.host.atomic import temporary_beside, write_error

__all__ = ["MANIFEST", "Manifest", "Part", "read_bundle", "write_bundle"]

MANIFEST = "bundle.json"
_SCHEMA = 1
_MODE = 0o600
_MAX_FILE_BYTES = 64 << 20
_MAX_UNPACKED_BYTES = 256 << 20
_MAX_MEMBERS = 100_000
_MAX_NAME_CHARS = 1024
_MAX_NAME_PART_BYTES = 255
_BLOCK_BYTES = 1 << 20


class Part(msgspec.Struct, frozen=True):
    """One file of a bundle."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``bundle.json``."""

    schema: int = _SCHEMA
    nodeproof: str
    made_at: str
    """UTC, RFC 3339."""
    redacted: dict[str, int]
    """Different values that were replaced, by kind."""
    left_out: dict[str, str]
    """What is not in it, and why."""
    parts: dict[str, Part] = {}


def write_bundle(path: str, manifest: Manifest, parts: Mapping[str, bytes]) -> Manifest:
    """Write ``parts`` as a new file, readable by its owner alone; the manifest with them. Raises UsageError, WriteError."""
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already; name another file with --output-file")
    whole = msgspec.structs.replace(
        manifest, parts={name: Part(len(data), hashlib.sha256(data).hexdigest()) for name, data in sorted(parts.items())}
    )
    try:
        with temporary_beside(path) as temporary:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
            with open(fd, "wb") as file:
                _pack(file, {MANIFEST: msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n", **parts})
                file.flush()
                os.fsync(fd)
            os.link(temporary, path)
            os.unlink(temporary)
    except FileExistsError:
        raise UsageError(f"{path} is there already; name another file with --output-file") from None
    except OSError as error:
        raise write_error(path, error) from None
    return whole


def _pack(file: IO[bytes], parts: Mapping[str, bytes]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(parts, key=lambda name: (name != MANIFEST, name)):
            member = tarfile.TarInfo(name)
            member.size = len(parts[name])
            member.mode = 0o600
            tar.addfile(member, io.BytesIO(parts[name]))


def read_bundle(path: str) -> tuple[Manifest, dict[str, bytes]]:
    """A bundle and its parts by name. Raises RecordError naming what is wrong with it, having unpacked nothing anywhere."""
    try:
        size = os.stat(path).st_size
        if not os.path.isfile(path) or size > _MAX_FILE_BYTES:
            raise RecordError(f"{path}: expected a plain file of at most {_MAX_FILE_BYTES} bytes")
        with open(path, "rb") as file:
            members = _unpack(path, file)
    except (gzip.BadGzipFile, tarfile.TarError, zlib.error, EOFError, ValueError, UnicodeError) as error:
        raise RecordError(f"{path}: no bundle of nodeproof, or not all of one: {type(error).__name__}: {error}") from None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}") from None
    raw = members.pop(MANIFEST, None)
    if raw is None:
        raise RecordError(f"{path}: holds no {MANIFEST}; expected a file made by nodeproof bundle")
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"{path}, {MANIFEST}: {error}") from None
    if manifest.schema != _SCHEMA:
        maker = manifest.nodeproof[:40]
        raise RecordError(f"{path}: schema {manifest.schema}, made by nodeproof {maker}; this one reads {_SCHEMA}")
    _compare(path, manifest, members)
    return manifest, members


class _Limited(io.RawIOBase):
    """What was packed, until there is too much of it."""

    def __init__(self, path: str, packed: gzip.GzipFile) -> None:
        self._path = path
        self._packed = packed
        self._left = _MAX_UNPACKED_BYTES

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes. Raises RecordError when there were too many in all."""
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        data = self._packed.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise RecordError(f"{self._path}: unpacks to more than {_MAX_UNPACKED_BYTES} bytes; nothing was unpacked")
        return data


def _unpack(path: str, file: IO[bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with (
        contextlib.closing(gzip.GzipFile(fileobj=file, mode="rb")) as packed,
        tarfile.open(fileobj=_Limited(path, packed), mode="r|", bufsize=_BLOCK_BYTES) as tar,
    ):
        for member in tar:
            _check_member(path, member, found)
            content = tar.extractfile(member)
            found[member.name] = b"" if content is None else content.read()
            tar.members.clear()  # type: ignore[attr-defined]  # else it keeps them all
    return found


def _check_member(path: str, member: tarfile.TarInfo, found: Mapping[str, bytes]) -> None:
    """Raises RecordError for anything that is not a plain file with a harmless name, or is one too many."""
    name = member.name
    shown = ascii(name[:100])
    if not member.isreg() or member.issparse():
        raise RecordError(f"{path}: {shown} is no plain file; a bundle holds nothing else")
    parts = name.split("/")
    odd = any(part in {"", ".", ".."} or len(part.encode("utf-8", "surrogateescape")) > _MAX_NAME_PART_BYTES for part in parts)
    if odd or len(name) > _MAX_NAME_CHARS or "\0" in name:
        raise RecordError(f"{path}: {shown} is a name that leads out of the bundle, or that no bundle has")
    if name in found:
        raise RecordError(f"{path}: {shown} is in it twice")
    if len(found) >= _MAX_MEMBERS:
        raise RecordError(f"{path}: more than {_MAX_MEMBERS} files")


def _compare(path: str, manifest: Manifest, members: Mapping[str, bytes]) -> None:
    for name in sorted(manifest.parts.keys() ^ members.keys()):
        where = "is not in the archive" if name in manifest.parts else f"is not in {MANIFEST}"
        raise RecordError(f"{path}: {name[:100]!a} {where}: it was changed after it was made")
    for name, data in members.items():
        part = manifest.parts[name]
        if (part.bytes, part.sha256) != (len(data), hashlib.sha256(data).hexdigest()):
            raise RecordError(f"{path}: {name[:100]!a} is not what {MANIFEST} says: it was changed after it was made")
