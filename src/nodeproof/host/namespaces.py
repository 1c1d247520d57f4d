"""A view of the machine with nothing in it but what is needed to work: no network, no other processes, files to read only.

Namespaces of the kernel (namespaces(7)), entered by this process for itself and its children. A user without rights gets them by
a user namespace of its own, where the kernel allows one.

No measurement of coverage can be written from inside: ``tests/process/test_sandbox.py`` sees the effects.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import socket
import struct
from collections.abc import Iterable, Sequence

__all__ = ["confine_rights", "enter", "isolate_files", "limit", "loopback_up"]

_NEW_MOUNTS, _NEW_NAMES, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NETWORK = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
"""include/uapi/linux/sched.h."""
_ALL = _NEW_MOUNTS | _NEW_NAMES | _NEW_IPC | _NEW_PIDS | _NEW_NETWORK
_PRIVATE = 1 << 18 | 1 << 14
_NO_SUID, _NO_DEVICES = 2, 4
"""Flags of mount(2)."""
_MOUNT_SETATTR = 442
"""The same number everywhere; Linux 5.12."""
_AT_FDCWD, _RECURSIVE = -100, 0x8000
_READ_ONLY = 1
_SET_DUMPABLE, _DROP_BOUND, _NO_NEW_RIGHTS = 4, 24, 38
_LAST_CAPABILITY = 63
_NOBODY = 65534
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


def enter() -> str:  # pragma: no cover - see above
    """Leave the namespaces of the machine: mounts, names, IPC, processes (children alone) and network. Raises OSError.

    Returns how: ``root`` where we had the right, ``user`` where it took a user namespace.
    """
    libc = _libc()
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_ALL) == 0:
        return "root"
    if libc.unshare(_ALL | _NEW_USER) != 0:
        raise _error("unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")
    return "user"


def isolate_files(scratch_bytes: int, hidden: Sequence[str]) -> list[str]:  # pragma: no cover - see above
    """Make every file read-only, but for an empty ``/tmp`` of so many bytes that ends with us; hide the directories ``hidden``.

    For the first process of a new process namespace. What could not be done is returned, what must be raises OSError.
    """
    libc = _libc()
    notes = []
    _mount(libc, "none", "/", "", _PRIVATE, "")
    attributes = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    if libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _RECURSIVE, attributes, len(attributes)) != 0:
        raise _error("making files read-only")
    _mount(libc, "proc", "/proc", "proc", _NO_SUID | _NO_DEVICES, "")
    for path in _outermost(hidden):
        try:
            _mount(libc, "none", path, "tmpfs", _NO_SUID | _NO_DEVICES | _READ_ONLY, "size=4k,mode=755")
        except OSError as error:
            notes.append(f"{path} can be read: {error.strerror}")
    _mount(libc, "scratch", "/tmp", "tmpfs", _NO_SUID | _NO_DEVICES, f"size={scratch_bytes},mode=1777")  # noqa: S108 - our own
    for path in ("/dev/shm", "/var/tmp"):  # noqa: S108 - as above
        with contextlib.suppress(OSError):
            _mount(libc, "none", path, "tmpfs", _NO_SUID | _NO_DEVICES, f"size={scratch_bytes // 4},mode=1777")
    return notes


def loopback_up() -> None:  # pragma: no cover - see above
    """Switch the loopback of a new network namespace on; it has nothing else. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack("16sH22x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(asked, _GET_FLAGS, request), 16)
        fcntl.ioctl(asked, _SET_FLAGS, struct.pack("16sH22x", b"lo", flags | _UP))


def confine_rights(owned: Iterable[str]) -> None:  # pragma: no cover - see above
    """Have no rights but those of an ordinary user, and let no program get any back. Raises OSError.

    As root: become ``nobody``, who is given the paths ``owned``. In a user namespace of our own, where there is no ``nobody``:
    drop what root's programs would be born with.
    """
    libc = _libc()
    if os.geteuid() == 0:
        try:
            for path in owned:
                os.chown(path, _NOBODY, _NOBODY)
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.EPERM}:
                raise
            for capability in range(_LAST_CAPABILITY):
                libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    if libc.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0) != 0:
        raise _error("giving up new rights")
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def limit(memory_bytes: int, file_bytes: int) -> None:  # pragma: no cover - see above
    """Limits of each process from now on: memory, size of a file, descriptors, no core dumps."""
    for kind, value in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def _outermost(paths: Sequence[str]) -> list[str]:  # pragma: no cover - see above
    """Directories that are there, without those inside others."""
    real = sorted({os.path.realpath(path) for path in paths if os.path.isdir(path)} - {"/"})
    return [path for path in real if not any(path.startswith(f"{other}/") for other in real)]


def _mount(libc: ctypes.CDLL, source: str, target: str, kind: str, flags: int, data: str) -> None:  # pragma: no cover - see above
    if libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()) != 0:
        raise _error(f"mounting {target}")


def _libc() -> ctypes.CDLL:  # pragma: no cover - see above
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
    libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    libc.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t)
    return libc


def _error(what: str) -> OSError:  # pragma: no cover - see above
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:  # pragma: no cover - see above
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
