"""Sources as administrators have them: a file, a directory, or an archive; taken over into the build directory without trust.

An archive may name no place outside itself, hold no device and no link that leads out, and unpack to no more than a bound.
"""

import os
import shutil
import stat
import tarfile
import zipfile
from typing import IO

from nodeproof.operate.assets.problems import AssetError

__all__ = ["MARKERS", "take_over"]

MARKERS = {"stream": "stream.c", "hpl": "Make.top", "hpcg": "src/main.cpp"}
"""The file by which the top of each source is found; it must be there once."""
_MAX_BYTES = 1 << 30
_MAX_MEMBERS = 100_000
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")


def take_over(item: str, source: str, folder: str) -> str:
    """Copy or unpack ``source`` into the new directory ``folder``; the top of it. Raises AssetError."""
    if not os.path.exists(source):
        raise AssetError(f"--{item}-src {source}: there is no such file or directory")
    os.makedirs(folder)
    try:
        if os.path.isdir(source):
            _copy_tree(item, source, folder)
        elif item == "stream" and source.endswith(".c"):
            shutil.copyfile(source, os.path.join(folder, MARKERS["stream"]))
        elif source.endswith(".zip"):
            _unzip(source, folder)
        elif source.endswith(_ARCHIVES):
            _untar(source, folder)
        else:
            raise AssetError(f"--{item}-src {source}: expected a directory, or an archive ({', '.join(_ARCHIVES)})")
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise AssetError(f"--{item}-src {source}: {error}") from None
    return _top(item, source, folder)


def _top(item: str, source: str, folder: str) -> str:
    """The one directory that has the marker. Raises AssetError."""
    marker = MARKERS[item]
    found = []
    for place, names, files in os.walk(folder):
        names[:] = [name for name in names if not name.startswith(".git")]
        head, tail = os.path.split(marker)
        if tail in files and (not head or os.path.basename(place) == head):
            found.append(os.path.dirname(place) if head else place)
    if len(found) != 1:
        places = ", ".join(os.path.relpath(place, folder) for place in found[:5])
        raise AssetError(
            f"--{item}-src {source}: {f'{marker} is there {len(found)} times ({places})' if found else f'there is no {marker}'};"
            " name the one source directory"
        )
    return found[0]


def _copy_tree(item: str, source: str, folder: str) -> None:
    """Regular files and directories; a link is refused."""
    copied = 0
    for place, names, files in os.walk(source):
        names[:] = [name for name in names if name != ".git"]
        into = os.path.normpath(os.path.join(folder, os.path.relpath(place, source)))
        os.makedirs(into, exist_ok=True)
        for name in (*names, *files):
            path = os.path.join(place, name)
            facts = os.lstat(path)
            if stat.S_ISDIR(facts.st_mode):
                continue
            if not stat.S_ISREG(facts.st_mode):
                raise AssetError(f"--{item}-src: {path} is no regular file; sources hold no links and no devices")
            copied += facts.st_size
            if copied > _MAX_BYTES:
                raise AssetError(f"--{item}-src {source}: more than {_MAX_BYTES} bytes; name the source directory itself")
            shutil.copyfile(path, os.path.join(into, name))
            shutil.copymode(path, os.path.join(into, name))


def _untar(source: str, folder: str) -> None:
    unpacked = 0
    with tarfile.open(source, "r:*") as archive:
        for number, member in enumerate(archive):
            _check_name(source, member.name)
            if number >= _MAX_MEMBERS:
                raise AssetError(f"{source}: more than {_MAX_MEMBERS} members")
            if not (member.isreg() or member.isdir()):
                raise AssetError(f"{source}: {member.name!r} is a link or a device; sources hold none")
            unpacked += member.size
            if unpacked > _MAX_BYTES:
                raise AssetError(f"{source}: unpacks to more than {_MAX_BYTES} bytes")
            _put(archive.extractfile(member), os.path.join(folder, member.name), member.mode)


def _unzip(source: str, folder: str) -> None:
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
        if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > _MAX_BYTES:
            raise AssetError(f"{source}: unpacks to more than {_MAX_BYTES} bytes, or has more than {_MAX_MEMBERS} members")
        for member in members:
            _check_name(source, member.filename)
            if stat.S_ISLNK(member.external_attr >> 16):
                raise AssetError(f"{source}: {member.filename!r} is a link; sources hold none")
            with archive.open(member) as content:
                _put(None if member.is_dir() else content, os.path.join(folder, member.filename), member.external_attr >> 16)


def _put(content: IO[bytes] | None, path: str, mode: int) -> None:
    """Write one member; None = it is a directory."""
    if content is None:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        shutil.copyfileobj(content, file)
    os.chmod(path, 0o755 if mode & stat.S_IXUSR else 0o644)


def _check_name(source: str, name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise AssetError(f"{source}: {name[:120]!r} leads out of the archive; it is not unpacked")
