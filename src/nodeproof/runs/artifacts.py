"""What a benchmark keeps from run to run: environments, data sets, scripts (bench.md 1.8).

``<root>/artifacts/<benchmark id>/`` is made when somebody asks for it. An asset is written only when its bytes differ, so its
time of change says since when it is what it is. A :class:`Stamp` is put down last, so that half-made things are made again.
"""

import contextlib
import errno
import os
import re
from typing import NamedTuple

from nodeproof.errors import RecordError, WriteError
from nodeproof.host import atomic

__all__ = ["ArtifactStore", "Fault", "Stamp", "check_name"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}")
_MAX_STAMP_BYTES = 65536


class Fault(NamedTuple):
    """Why a directory cannot be used."""

    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; {self.remedy}"


def check_name(name: str) -> str:
    """``name``, when it is a plain file name. Raises RecordError."""
    if _NAME.fullmatch(name) is None:
        raise RecordError(
            f"{name[:80]!r} is no plain file name: expected up to 128 of letters, digits and . _ + -, no dot in front"
        )
    return name


class ArtifactStore:
    """The artifacts of one benchmark. Making one touches nothing."""

    def __init__(self, root: str, benchmark_id: str) -> None:
        self._root = root
        self.path = os.path.join(root, "artifacts", check_name(benchmark_id))

    def sibling(self, name: str) -> "ArtifactStore":
        """The artifacts that several benchmarks share under ``name``. Raises RecordError."""
        return ArtifactStore(self._root, name)

    def directory(self, name: str = "") -> str:
        """The directory, or one inside it, made when it is not there. Raises WriteError."""
        path = os.path.join(self.path, check_name(name)) if name else self.path
        atomic.make_directory(path)
        return path

    def fault(self) -> Fault | None:
        """Why nothing can be kept here; None when a file could be made and removed just now."""
        try:
            atomic.make_directory(self.path)
        except WriteError as error:
            if error.code in {errno.ENOTDIR, errno.EEXIST}:
                return Fault(error.path, "is no directory", "move what stands there")
            return self._fault_of(error)
        probe = atomic.temporary_name(os.path.join(self.path, "write-probe"))
        try:
            atomic.store_file(probe, b"probe\n")
        except WriteError as error:
            return self._fault_of(error)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(probe)
        return None

    def write_asset(self, name: str, data: bytes) -> bool:
        """Make ``data`` the content of ``name``; whether it had to be written. Raises WriteError, RecordError."""
        path = os.path.join(self.path, check_name(name))
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == len(data) and file.read() == data:
                return False
        atomic.store_file(path, data)
        return True

    def stamp(self, name: str, expected: str) -> "Stamp":
        """The stamp ``name``, current when it says ``expected``."""
        return Stamp(os.path.join(self.path, check_name(name)), expected)

    def _fault_of(self, error: WriteError) -> Fault:
        owner = _owner(self.path)
        if error.code in {errno.EACCES, errno.EPERM} and owner is not None and owner != os.geteuid():
            return Fault(self.path, f"belongs to user {owner}, this is user {os.geteuid()}", f"chown it to {os.geteuid()}")
        return Fault(error.path, error.reason, error.remedy or "name another directory")


class Stamp:
    """A small file that says which version of something was made, put down after everything else."""

    def __init__(self, path: str, expected: str) -> None:
        self._path = path
        self._expected = expected.strip()

    def is_current(self) -> bool:
        """Whether the file says what is expected, blanks around it aside."""
        try:
            with open(self._path, "rb") as file:
                return file.read(_MAX_STAMP_BYTES).decode("utf-8", "replace").strip() == self._expected
        except OSError:
            return False

    def commit(self) -> None:
        """Say it from now on: to be called last. Raises WriteError."""
        atomic.store_file(self._path, self._expected.encode() + b"\n")


def _owner(path: str) -> int | None:
    folder = path
    while folder != os.path.dirname(folder):
        with contextlib.suppress(OSError):
            return os.stat(folder).st_uid
        folder = os.path.dirname(folder)
    return None
