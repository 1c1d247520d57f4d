"""Where this process stands in the cgroup tree, as far as it can see: in a container, the container's own limits are there.

With a cgroup namespace a container sees its own cgroup as ``/``. Without one (Docker on v1) ``/proc/self/cgroup`` names the
host's path while only the container's own folder is mounted: then the folders that cannot be seen are passed over, and the
root of the mount is the container.
"""

from typing import NamedTuple

from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_cgroup
from nodeproof.sources.proc_cgroup import CgroupPaths

__all__ = ["Cgroup", "Cgroups"]

_MOUNT = "/sys/fs/cgroup"
_UNIFIED = f"{_MOUNT}/unified"
"""Where systemd puts v2 on a host that keeps its controllers in v1."""


class Cgroup(NamedTuple):
    """One cgroup that holds this process."""

    name: str
    """Path below the root we can see: ``/`` or ``/system.slice/nodeproof.service``."""
    folder: str
    """Folder of its files."""
    version: int
    """1 or 2."""


class Cgroups:
    """The cgroups of this process; get it by ``machine.shared(Cgroups)``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def holding(self, controller: str) -> list[Cgroup]:
        """The cgroups of ``controller`` (``memory``, ``cpu``) that hold this process and can be seen, innermost first.

        Raises NoData when the kernel has no cgroups or none with that controller is mounted.
        """
        paths = proc_cgroup.parse(self._files.read("/proc/self/cgroup"))
        path, base, version = self._hierarchy(paths, controller)
        found = [
            Cgroup(name, base if name == "/" else f"{base}{name}", version)
            for name in _upwards(path)
            if name == "/" or self._files.exists(f"{base}{name}")
        ]
        if not self._files.exists(base):
            raise NoData(Absence.UNSUPPORTED, f"{base} is not mounted", remedy=f"mount the cgroup file system at {_MOUNT}")
        return found

    def _hierarchy(self, paths: CgroupPaths, controller: str) -> tuple[str, str, int]:
        if controller in paths.v1:
            return paths.v1[controller], f"{_MOUNT}/{controller}", 1
        if paths.v2 is None:
            raise NoData(Absence.UNSUPPORTED, f"/proc/self/cgroup names no cgroup of controller {controller}")
        return paths.v2, _UNIFIED if self._files.exists(_UNIFIED) else _MOUNT, 2


def _upwards(path: str) -> list[str]:
    """``/a/b`` as ``/a/b``, ``/a``, ``/``. A path that leaves our view (``/../x``) is only its root."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts:
        return ["/"]
    return ["/" + "/".join(parts[:length]) for length in range(len(parts), -1, -1)]
