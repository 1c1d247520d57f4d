"""Attempts that tell whether something could be done, and leave everything as it was."""

import contextlib
import os

from nodeproof.errors import AddressInUseError, WriteError
from nodeproof.host import atomic
from nodeproof.host.listen import bind, parse_address
from nodeproof.host.socket_holder import peer_of_socket

__all__ = ["try_listening", "try_writing"]

_SAMPLE = bytes(4096)
"""A block: a file system without room takes a file, and nothing into it."""


def try_writing(directory: str) -> None:
    """Write a file in ``directory``, or, where that is not there yet, make a directory in the nearest one that is; remove it.

    Raises WriteError with the remedy.
    """
    folder = os.path.abspath(directory)
    missing = not os.path.isdir(folder)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        if os.path.lexists(folder):
            raise WriteError(folder, "is no directory", remedy="move the file that stands in the way of the directory")
        folder = os.path.dirname(folder)
    sample = atomic.temporary_name(os.path.join(folder, "probe"))
    try:
        if missing:
            os.mkdir(sample, 0o700)
            os.rmdir(sample)
            return
        fd = os.open(sample, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(fd, _SAMPLE)
            if written < len(_SAMPLE):
                os.write(fd, _SAMPLE[written:])
        finally:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(sample)
    except OSError as error:
        raise atomic.write_error(folder, error) from None


def try_listening(address: str, remedy: str) -> None:
    """Bind ``address`` and let go of it. Raises AddressInUseError, naming the holder, or UsageError.

    A Unix socket is only asked for its holder: binding it would take its name from whoever comes next.
    """
    place = parse_address(address)
    if isinstance(place, str):
        holder = peer_of_socket(place)
        if holder:
            raise AddressInUseError(address, holder, remedy)
        return
    bind(place, remedy).close()
