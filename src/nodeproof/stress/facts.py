"""What the checks before a run need to know of this box, within the limits of this process."""

import contextlib
import os

from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_loadavg
from nodeproof.stress.sizing import BoxFacts
from nodeproof.stress.workloads.box import look

__all__ = ["free_bytes", "load_average", "look_at_box"]

_TOPOLOGY = "/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"
_NODES = "/sys/devices/system/node"


def look_at_box(machine: Machine) -> BoxFacts:
    """CPUs, memory, caches, sockets and NUMA nodes that this process may use. Raises NoData where memory cannot be read."""
    box = look(machine)
    return BoxFacts(
        allowed_cpus=len(box.cpus),
        memory_available_bytes=box.memory_bytes,
        llc_bytes=box.llc_bytes if box.llc_known else None,
        sockets=_sockets(machine, box.cpus),
        numa_nodes=_numa_nodes(machine),
    )


def load_average(machine: Machine) -> float | None:
    """Load of the last minute; None where it cannot be read."""
    with contextlib.suppress(NoData, ParseError):
        return proc_loadavg.parse(machine.files.read("/proc/loadavg")).load1
    return None


def free_bytes(path: str) -> int | None:
    """Room in the file system of ``path`` or of the nearest folder above it that exists; None where it cannot be told."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    with contextlib.suppress(OSError):
        facts = os.statvfs(folder)
        return facts.f_bavail * facts.f_frsize
    return None


def _sockets(machine: Machine, cpus: tuple[int, ...]) -> int | None:
    found = set()
    for cpu in cpus:
        with contextlib.suppress(NoData):
            found.add(machine.files.read(_TOPOLOGY.format(cpu=cpu)).strip())
    return len(found) or None


def _numa_nodes(machine: Machine) -> int | None:
    with contextlib.suppress(NoData):
        return sum(name.startswith("node") and name[4:].isdigit() for name in machine.files.names(_NODES)) or None
    return None
