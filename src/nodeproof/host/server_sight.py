"""The processes of a server that listens on this machine, as their memory, descriptors and connections grow or do not.

What is looked at is the process that holds the listening socket, and everything below it: engines that fork a worker a device
are one server. A port that a container runtime forwards is held by its proxy, which says nothing of the server behind it.
"""

import os
import time
from typing import NamedTuple

from nodeproof.host.process_tree import Identity, ProcessStat, ProcessTree
from nodeproof.host.socket_holder import pids_of_port

__all__ = ["ServerProcesses", "ServerSight", "half_closed"]

_PROXIES = frozenset({"docker-proxy", "rootlessport", "slirp4netns", "pasta", "pasta.avx2", "conmon"})
_CLOSE_WAIT = b"08"
"""State TCP_CLOSE_WAIT in /proc/net/tcp: the client has closed, the server has not."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ServerProcesses(NamedTuple):
    """One look."""

    at_s: float
    """CLOCK_MONOTONIC."""
    resident_bytes: int
    """Of all processes; pages that several share count in each."""
    open_files: int | None
    """Descriptors of all processes; None where this user may not list those of one."""
    processes: int
    threads: int
    restarts: int
    """Times that the process which listens was another than at the look before."""


class ServerSight:
    """Looks at the server on TCP ``port`` of this machine."""

    def __init__(self, port: int, root: str = "") -> None:
        self.reason = ""
        """Why there is nothing to see; empty when there is."""
        self.name = ""
        """Of the process that listens."""
        self._port, self._root = port, root
        self._tree = ProcessTree(f"{root}/proc")
        self._listeners: frozenset[Identity] = frozenset()
        self._restarts = 0

    def look(self) -> ServerProcesses | None:
        """The server now; None and :attr:`reason` when it cannot be seen."""
        listeners = self._alive() or self._find()
        if not listeners:
            return None
        processes = {stat.pid: stat for listener in listeners for stat in self._family(listener)}
        files = [self._open_files(pid) for pid in processes]
        known = [count for count in files if count is not None]
        return ServerProcesses(
            at_s=time.monotonic(),
            resident_bytes=sum(stat.resident_pages for stat in processes.values()) * _PAGE_BYTES,
            open_files=sum(known) if len(known) == len(files) else None,
            processes=len(processes),
            threads=sum(stat.threads for stat in processes.values()),
            restarts=self._restarts,
        )

    def _alive(self) -> list[ProcessStat]:
        """The processes that listened at the last look, if all are still there."""
        stats = [self._tree.stat(identity.pid) for identity in self._listeners]
        alive = [stat for stat in stats if stat is not None and stat.lives and stat.identity in self._listeners]
        return alive if len(alive) == len(self._listeners) else []

    def _find(self) -> list[ProcessStat]:
        # A table that changes while it is read may lack a line: once more before that is believed.
        pids = pids_of_port(self._port, self._root) or pids_of_port(self._port, self._root)
        stats = [stat for pid in pids if (stat := self._tree.stat(pid)) is not None]
        if not stats:
            self.reason = f"no process that this user may see listens on port {self._port} of this machine"
            return []
        proxy = next((stat.name for stat in stats if stat.name in _PROXIES), "")
        if proxy:
            self.reason = f"port {self._port} is forwarded by {proxy}; the server behind it cannot be seen"
            return []
        found = frozenset(stat.identity for stat in stats)
        if self._listeners and not found & self._listeners:
            self._restarts += 1
        self._listeners, self.reason, self.name = found, "", stats[0].name
        return stats

    def _family(self, listener: ProcessStat) -> list[ProcessStat]:
        """It and what is below it; of ourselves only us, since our children do the asking."""
        if listener.pid == os.getpid():
            return [listener]
        return [listener, *self._tree.descendants(listener.pid)]

    def _open_files(self, pid: int) -> int | None:
        try:
            return len(os.listdir(f"{self._root}/proc/{pid}/fd"))
        except FileNotFoundError:
            return 0
        except OSError:
            return None


def half_closed(port: int, root: str = "") -> int | None:
    """Connections to TCP ``port`` that clients have closed and the server has not (CLOSE_WAIT); None when it cannot be told."""
    found = 0
    tables = 0
    for table in ("tcp", "tcp6"):
        try:
            with open(f"{root}/proc/net/{table}", "rb") as lines:
                tables += 1
                for line in lines:
                    fields = line.split()
                    # Number, local and remote address in hexadecimal, state ... (proc_net_tcp.rst).
                    if len(fields) > 9 and fields[3] == _CLOSE_WAIT and int(fields[1].rpartition(b":")[2], 16) == port:
                        found += 1
        except (OSError, ValueError):
            continue
    return found if tables else None
