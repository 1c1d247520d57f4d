"""The right to load this machine: one job at a time, whichever process started it.

flock(2) on a file that stays. Every copy of its descriptor holds it: the owner gives one to the keeper of its job
(:meth:`nodeproof.host.containment.Containment.start`, ``keep_fds``), so that the lock of an owner that was killed is free when
its tree is gone and not before. While it is held, the file tells of the holder; a holder that let go on purpose has emptied it,
so that a free lock with something in its file tells of a job whose owner died::

    {"pid":812,"start_ticks":40127,"boot_id":"3b6f...","pid_namespace":"pid:[4026531836]","token":"7f3a","record":"/var/.../job.json"}

The file of another program that keeps the same lock, and writes nothing or something else into it, is respected.
"""

import errno
import fcntl
import os
import time
from enum import StrEnum
from typing import NamedTuple

import msgspec

from nodeproof.errors import WriteError
from nodeproof.host.atomic import FILE_MODE, make_directory, write_error
from nodeproof.host.file_mutex import lock_whole_file
from nodeproof.host.locks import boot_id
from nodeproof.host.owner import ProcessOwner, this_process

__all__ = ["HolderState", "JobLock", "LockHolder", "probe_job_lock"]

_MAX_BYTES = 16 * 1024
_TRIES = 10
_TRY_PAUSE_S = 0.01
"""Who looks from outside holds a shared lock for microseconds; that must turn no job away."""


class HolderState(StrEnum):
    """Who has the lock."""

    FREE = "free"
    """Nobody, and the last holder let go on purpose."""
    DEAD = "dead"
    """Nobody, but the last holder died with its job unfinished: :func:`nodeproof.host.job_recovery.recover` its record."""
    LIVE = "live"
    """A process of ours that lives."""
    ENDING = "ending"
    """The owner is dead and its keeper is still ending the tree: soon free. (Or a program that writes no name took it then.)"""
    FOREIGN = "foreign"
    """Somebody who does not say who it is, or counts among processes that cannot be seen from here."""
    UNKNOWN = "unknown"
    """The lock cannot be looked at."""


class LockHolder(NamedTuple):
    """What can be told of the lock."""

    state: HolderState
    detail: str
    owner: ProcessOwner | None = None
    token: str = ""
    """Of the holder's job; empty where none was named."""
    record: str = ""

    @property
    def held(self) -> bool:
        """Whether it is taken, as far as can be told."""
        return self.state not in {HolderState.FREE, HolderState.DEAD}


class _Content(msgspec.Struct):
    pid: int
    start_ticks: int
    boot_id: str
    pid_namespace: str
    token: str
    record: str


class JobLock:
    """The lock in ``path``; its directory is made when it is not there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1

    @property
    def fd(self) -> int:
        """To be kept open by the keeper of the job; -1 while the lock is not held."""
        return self._fd

    def acquire(self, token: str = "", record: str = "") -> LockHolder:
        """Take the lock and say for which job. Raises WriteError when the file cannot be made or written.

        The answer tells of the holder before us: FREE or DEAD when the lock is ours now, anything else when somebody has it.
        """
        if self._fd >= 0:
            raise RuntimeError(f"{self.path} is held by this object already")
        fd = _open(self.path)
        try:
            taken = _take(fd)
            former = _holder(fd, self.path, held=not taken)
            if taken:
                self._write(fd, token, record)
                self._fd, fd = fd, -1
        except OSError as error:
            raise write_error(self.path, error) from None
        finally:
            if fd >= 0:
                os.close(fd)
        return former

    def name(self, token: str, record: str) -> None:
        """Say anew for which job the lock is held. Raises WriteError."""
        try:
            self._write(self._fd, token, record)
        except OSError as error:
            raise write_error(self.path, error) from None

    def release(self) -> None:
        """Let go on purpose. The file stays: removing it would let two owners lock two files of one name."""
        if self._fd >= 0:
            try:
                os.ftruncate(self._fd, 0)
            finally:
                os.close(self._fd)
                self._fd = -1

    def give_back(self, former: LockHolder) -> None:
        """Let go with the file telling of ``former``, the dead holder before us, whose job is still unfinished."""
        owner = former.owner or this_process()
        try:
            self._put(self._fd, _Content(*owner, token=former.token, record=former.record))
        finally:
            os.close(self._fd)
            self._fd = -1

    @classmethod
    def _write(cls, fd: int, token: str, record: str) -> None:
        cls._put(fd, _Content(*this_process(), token=token, record=record))

    @staticmethod
    def _put(fd: int, content: _Content) -> None:
        body = msgspec.json.encode(content) + b"\n"
        os.pwrite(fd, body, 0)
        os.ftruncate(fd, len(body))
        os.fsync(fd)


def probe_job_lock(path: str) -> LockHolder:
    """Who holds the lock in ``path``. Changes nothing; never raises."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return LockHolder(HolderState.FREE, f"{path} does not exist: no job was ever run here")
    except OSError as error:
        return LockHolder(HolderState.UNKNOWN, f"{path}: {os.strerror(error.errno or 0)}")
    try:
        return _holder(fd, path, held=not _take_shared(fd))
    except OSError as error:
        return LockHolder(HolderState.UNKNOWN, f"{path}: {os.strerror(error.errno or 0)}")
    finally:
        os.close(fd)


def _open(path: str) -> int:
    try:
        make_directory(os.path.dirname(path) or ".")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except WriteError:
        raise
    except OSError as error:
        raise write_error(path, error) from None
    return fd


def _take(fd: int) -> bool:
    for _ in range(_TRIES):
        if lock_whole_file(fd):
            return True
        time.sleep(_TRY_PAUSE_S)
    return False


def _take_shared(fd: int) -> bool:
    """A look from outside takes the lock for microseconds, together with all others that look."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def _holder(fd: int, path: str, *, held: bool) -> LockHolder:
    raw = os.pread(fd, _MAX_BYTES, 0)
    try:
        content = msgspec.json.decode(raw, type=_Content)
    except msgspec.DecodeError:
        if held:
            return LockHolder(HolderState.FOREIGN, f"{path} is held by a process that does not say who it is")
        return LockHolder(HolderState.FREE, f"nobody holds {path}")
    owner = ProcessOwner(content.pid, content.start_ticks, content.boot_id, content.pid_namespace)
    state, detail = _judge(owner, path, held=held)
    return LockHolder(state, detail, owner, content.token, content.record)


def _judge(owner: ProcessOwner, path: str, *, held: bool) -> tuple[HolderState, str]:
    if not held:
        return HolderState.DEAD, f"process {owner.pid} held {path} and died with its job unfinished"
    lives = owner.lives() if owner.boot_id == boot_id() else None
    if lives is None:
        return HolderState.FOREIGN, f"{path} is held by a process of another container, machine or program"
    if lives:
        return HolderState.LIVE, f"{path} is held by process {owner.pid}"
    return HolderState.ENDING, f"process {owner.pid}, which held {path}, is dead; what is left of its job is being ended"
