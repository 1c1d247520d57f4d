"""Who holds a port: the kernel's socket tables give an inode, and ``/proc/*/fd`` the process that has it open."""

import contextlib
import os
import socket

from nodeproof.host.users import user_name

__all__ = ["holder_of_port", "peer_of_socket", "pids_of_port", "uid_of_connection", "user_of_connection"]

_Address = tuple[str, int]
_LISTEN = b"0A"
"""State TCP_LISTEN in /proc/net/tcp (Documentation/networking/proc_net_tcp.rst)."""


def holder_of_port(port: int, root: str = "") -> str:
    """The process that listens on TCP ``port``, in words: ``nginx (pid 812)``."""
    inodes = _listening_inodes(port, root)
    if not inodes:
        return "a process that cannot be told (its socket is not in this network namespace's tables)"
    pids = _holders(inodes, root)
    return f"{_program(pids[0], root)} (pid {pids[0]})" if pids else "a process of another user (root may see which one)"


def pids_of_port(port: int, root: str = "") -> list[int]:
    """Processes that have the socket open which listens on TCP ``port``, as far as this user may see them."""
    return [int(pid) for pid in _holders(_listening_inodes(port, root), root)]


def peer_of_socket(path: str) -> str:
    """The process that listens on the Unix socket ``path``, in words; empty when nobody does."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.setblocking(False)
        probe.connect(path)
        # struct ucred: pid, uid, gid (unix(7)).
        credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    except OSError:
        return ""
    finally:
        probe.close()
    pid = int.from_bytes(credentials[:4], "little" if _little_endian() else "big")
    return f"{_program(str(pid), '')} (pid {pid})"


def user_of_connection(host: str, port: int, root: str = "") -> str:
    """The user of this machine whose socket is bound to ``host`` and ``port``: who came over loopback. Empty when nobody is."""
    uid = uid_of_connection((host, port), root=root)
    return "" if uid is None else user_name(uid)


def uid_of_connection(client: _Address, server: _Address | None = None, root: str = "") -> int | None:
    """The user of this machine who has the ``client``'s end of a TCP connection to ``server`` open; None when nobody has.

    A socket that its program has closed belongs to nobody: the table calls its user 0 then, which is not root's doing.
    """
    table = "tcp6" if ":" in client[0] else "tcp"
    try:
        here, there = _kernel_text(client), None if server is None else _kernel_text(server)
        with open(f"{root}/proc/net/{table}", "rb") as lines:
            for line in lines:
                fields = line.split()
                if len(fields) > 9 and fields[1] == here and there in {None, fields[2]} and fields[9] != b"0":
                    return int(fields[7])
    except (OSError, ValueError):
        return None
    return None


def _kernel_text(address: _Address) -> bytes:
    """An address as the tables of the kernel have it: words of four bytes, in the byte order of the machine, and the port."""
    host, port = address
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    return b"%b:%04X" % (b"".join(word[::-1] if _little_endian() else word for word in words).hex().upper().encode(), port)


def _little_endian() -> bool:
    return memoryview(b"\x01\x00").cast("H")[0] == 1


def _holders(inodes: set[str], root: str) -> list[str]:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    found = []
    for pid in _pids(root) if wanted else ():
        folder = f"{root}/proc/{pid}/fd"
        with contextlib.suppress(OSError):
            links = []
            for fd in os.listdir(folder):
                with contextlib.suppress(OSError):
                    links.append(os.readlink(f"{folder}/{fd}"))
            if not wanted.isdisjoint(links):
                found.append(pid)
    return found


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
