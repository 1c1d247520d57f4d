"""Whether a source of NPU Burn is the one its metadata describe: each file by its digest, no other, no link, LF line ends.

::

    {"schema_version": 1, "name": "AscendNPUBurn", "revision": "381028b6...", "licence": "MulanPSL-2.0",
     "files": {"setup.py": "<64 hex>", ...}}

In place of ``files`` there may be a ``SOURCE_SHA256SUMS`` beside the metadata, as ``sha256sum`` writes it.
"""

import os
import re
import stat

import msgspec

from nodeproof.operate.assets.manifest import sha256_of
from nodeproof.operate.images.problems import ImageError

__all__ = ["SUMS", "BurnSource", "check_source", "read_metadata"]

SUMS = "SOURCE_SHA256SUMS"
_SCHEMA = 1
_MAX_BYTES = 16 * 1024 * 1024
_MOST_FILES = 20_000
_SUM = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?(\S.{0,1000})", re.ASCII)
_NAMED = 3
_TEXT = (".py", ".sh", ".txt", ".md", ".cfg", ".toml", ".in", ".json", ".yaml", ".yml", ".cpp", ".h", ".cc", ".cmake")


class BurnSource(msgspec.Struct, frozen=True, kw_only=True):
    """What the metadata say."""

    schema_version: int
    revision: str
    name: str = "AscendNPUBurn"
    licence: str = msgspec.field(default="", name="license")
    files: dict[str, str] = {}


def read_metadata(path: str) -> BurnSource:
    """Raises ImageError."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        raise ImageError(f"--source-metadata {path}: {os.strerror(error.errno or 0)}") from None
    try:
        found = msgspec.json.decode(data, type=BurnSource)
    except msgspec.DecodeError as error:
        raise ImageError(f"--source-metadata {path}: {error}") from None
    if found.schema_version != _SCHEMA:
        raise ImageError(f"--source-metadata {path}: schema_version {found.schema_version}; {_SCHEMA} is understood")
    if not found.revision or not found.licence:
        raise ImageError(f"--source-metadata {path}: revision and license must be said: it is somebody else's work that is built")
    if not found.files:
        found = msgspec.structs.replace(found, files=_sums(os.path.join(os.path.dirname(path), SUMS)))
    bad = [name for name in found.files if name.startswith(("/", "\\")) or ".." in name.split("/") or not name]
    if bad or len(found.files) > _MOST_FILES:
        raise ImageError(
            f"--source-metadata {path}: {bad[0][:120]!r} leads out of the source" if bad else f"{path}: too many files"
        )
    return found


def check_source(folder: str, source: BurnSource) -> None:
    """Raises ImageError that names what is missing, changed, more than it should be, a link, or has line ends of Windows."""
    if not os.path.isdir(folder):
        raise ImageError(f"--source {folder}: there is no such directory; NPU Burn's source does not come with nodeproof")
    there = _listed(folder)
    missing = sorted(set(source.files) - there)
    extra = sorted(there - set(source.files))
    if missing:
        raise ImageError(f"--source {folder}: {_some(missing)} is missing")
    if extra:
        raise ImageError(f"--source {folder}: {_some(extra)} is not in the metadata; take it out, or renew the metadata")
    for name, digest in source.files.items():
        path = os.path.join(folder, name)
        if name.endswith(_TEXT) and _has_carriage_returns(path):
            raise ImageError(f"--source: {path} has line ends of Windows; check it out with LF")
        if sha256_of(path) != digest.lower():
            raise ImageError(f"--source: {path} is not as the metadata have it")


def _listed(folder: str) -> set[str]:
    """Names of all files. Raises ImageError for links and devices."""
    found = set()
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git" or place != folder]
        for name in (*folders, *files):
            path = os.path.join(place, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                continue
            if not stat.S_ISREG(mode):
                raise ImageError(f"--source: {path} is a link or a device; a source holds neither")
            found.add(os.path.relpath(path, folder))
    return found


def _sums(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            lines = file.read(_MAX_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise ImageError(f"{path}: {os.strerror(error.errno or 0)}; the metadata name no files, so it must be there") from None
    found = {}
    for number, line in enumerate(lines, 1):
        match = _SUM.fullmatch(line)
        if match is None or match[2] in found:
            raise ImageError(f"{path}, line {number}: expected a SHA-256 and a name, each name once")
        found[match[2]] = match[1]
    if not found:
        raise ImageError(f"{path}: it names no file")
    return found


def _has_carriage_returns(path: str) -> bool:
    with open(path, "rb") as file:
        return b"\r\n" in file.read(_MAX_BYTES)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(name[:120] for name in names[:_NAMED]) + more
