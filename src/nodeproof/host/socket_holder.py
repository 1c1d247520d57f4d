"""Who holds a port: the kernel's socket tables give an inode, and ``/proc/*/fd`` the process that has it open."""

import contextlib
import os
import socket

__all__ = ["holder_of_port", "peer_of_socket"]

_LISTEN = b"0A"
"""State TCP_LISTEN in /proc/net/tcp (Documentation/networking/proc_net_tcp.rst)."""


def holder_of_port(port: int, root: str = "") -> str:
    """The process that listens on TCP ``port``, in words: ``nginx (pid 812)``."""
    inodes = _listening_inodes(port, root)
    if not inodes:
        return "a process that cannot be told (its socket is not in this network namespace's tables)"
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for pid in _pids(root):
        folder = f"{root}/proc/{pid}/fd"
        with contextlib.suppress(OSError):
            for fd in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{folder}/{fd}") in wanted:
                        return f"{_program(pid, root)} (pid {pid})"
    return "a process of another user (root may see which one)"


def peer_of_socket(path: str) -> str:
    """The process that listens on the Unix socket ``path``, in words; empty when nobody does."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(1.0)
        probe.connect(path)
        # struct ucred: pid, uid, gid (unix(7)).
        credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    except OSError:
        return ""
    finally:
        probe.close()
    pid = int.from_bytes(credentials[:4], "little" if _little_endian() else "big")
    return f"{_program(str(pid), '')} (pid {pid})"


def _little_endian() -> bool:
    return memoryview(b"\x01\x00").cast("H")[0] == 1


def _listening_inodes(port: int, root: str) -> set[str]:
    inodes = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"{root}/proc/net/{table}", "rb") as lines:
            for line in lines:
                fields = line.split()
                # Number, local and remote address in hexadecimal, state, queues, timers, user, time-out, inode.
                if len(fields) > 9 and fields[3] == _LISTEN and int(fields[1].rpartition(b":")[2], 16) == port:
                    inodes.add(fields[9].decode("ascii", "replace"))
    return inodes


def _pids(root: str) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted((name for name in os.listdir(f"{root}/proc") if name.isdigit()), key=int)
    return []


def _program(pid: str, root: str) -> str:
    with contextlib.suppress(OSError), open(f"{root}/proc/{pid}/comm", "rb") as file:
        return file.read(64).decode("utf-8", "replace").strip()
    return "a process"
