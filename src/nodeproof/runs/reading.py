"""Parts of one run, for readers that do not want all of it: its files, and what it said since they last looked."""

import itertools
import os

import msgspec

from nodeproof.errors import RecordError
from nodeproof.model.run import ExecutorMessage
from nodeproof.runs.artifacts import check_name
from nodeproof.runs.manifest import FILES_DIRECTORY, FileEntry, read_manifest
from nodeproof.runs.open_run import LOG

__all__ = ["files_of", "messages_of", "open_file"]


def files_of(place: str) -> dict[str, FileEntry]:
    """What a stored run left, by name. Raises RecordError."""
    try:
        manifest, _ = read_manifest(place)
    except OSError as error:
        raise RecordError(f"{place}: {os.strerror(error.errno or 0)}") from None
    folder = f"{FILES_DIRECTORY}/"
    return {
        name.removeprefix(folder): entry
        for name, entry in sorted(manifest.files.items())
        if name.startswith(folder) and "/" not in name.removeprefix(folder)
    }


def open_file(place: str, name: str) -> tuple[int, FileEntry]:
    """A descriptor of a file of a stored run, which the caller closes, and what the manifest says of it. Raises RecordError."""
    entry = files_of(place).get(check_name(name))
    if entry is None:
        raise RecordError(f"{place} has no file {name}")
    path = os.path.join(place, FILES_DIRECTORY, name)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
    if os.fstat(fd).st_size != entry.bytes:
        os.close(fd)
        raise RecordError(f"{path} was changed: it does not have the {entry.bytes} bytes that were stored")
    return fd, entry


def messages_of(place: str, after: int, limit: int) -> list[ExecutorMessage]:
    """At most ``limit`` messages with a sequence number over ``after``; of a stored run or an open one. Raises RecordError.

    The numbers count up by one from 1, a line each, so lines that were read before are not decoded again.
    """
    path = os.path.join(place, LOG)
    decoder = msgspec.json.Decoder(ExecutorMessage)
    found: list[ExecutorMessage] = []
    try:
        with open(path, "rb") as file:
            for line in itertools.islice(file, after, None):
                try:
                    message = decoder.decode(line)
                except msgspec.MsgspecError:
                    continue  # the end of a line that is being written, or that a crash cut
                if message.sequence > after:
                    found.append(message)
                if len(found) >= limit:
                    break
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None
    return found
