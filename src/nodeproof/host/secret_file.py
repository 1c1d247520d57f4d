"""A small file of which only its owner may know: read with its rights checked, and made once, whoever needs it first."""

import os
import secrets
import stat
from collections.abc import Callable

from nodeproof.errors import RecordError
from nodeproof.host.atomic import make_directory, write_error

__all__ = ["read_or_make"]

_SECRET_MODE = 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_or_make(path: str, make: Callable[[], bytes], limit_bytes: int) -> bytes:
    """What ``path`` holds, up to one byte more than ``limit_bytes``; where it is not there, it is made of ``make()``.

    Raises RecordError when it cannot be read or others may, WriteError when it cannot be made.
    """
    try:
        return _read(path, limit_bytes)
    except FileNotFoundError:
        return _create(path, make(), limit_bytes)
    except OSError as error:
        raise RecordError(f"{path}: {os.strerror(error.errno or 0)}") from None


def _read(path: str, limit_bytes: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(fd, "rb") as file:
        mode = os.fstat(fd).st_mode
        content = file.read(limit_bytes + 1)
    if mode & _OTHERS:
        raise RecordError(f"{path} may be read or changed by others: chmod 600 it, or remove it and begin anew")
    return content


def _create(path: str, content: bytes, limit_bytes: int) -> bytes:
    """A new one; of two processes that make one at the same time both get the first one's."""
    folder, name = os.path.split(path)
    make_directory(folder)
    draft = os.path.join(folder, f".{name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _SECRET_MODE)
        try:
            os.write(fd, content)
            os.fsync(fd)
        finally:
            os.close(fd)
        try:
            os.link(draft, path)
        except FileExistsError:
            return _read(path, limit_bytes)
        finally:
            os.unlink(draft)
    except OSError as error:
        raise write_error(path, error) from None
    return content
