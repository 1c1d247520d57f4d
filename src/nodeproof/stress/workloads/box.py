"""What this process may use of the machine: CPUs, memory and the size of its caches."""

import math
import os
from typing import NamedTuple

from nodeproof.collectors.services.cgroup import Cgroups
from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import cgroup_cpu, proc_meminfo, sys_cpu_cache
from nodeproof.units import BYTES_PER_KIB, BYTES_PER_MIB

__all__ = ["Box", "look"]

_RESERVE_BYTES = 256 * BYTES_PER_MIB
_RESERVE_SHARE = 0.02
"""Left to the rest of the machine, whichever is more."""
_LLC_ASSUMED_BYTES = 32 * BYTES_PER_MIB
"""Where the machine does not tell its caches."""
_CACHE = "/sys/devices/system/cpu/cpu{cpu}/cache"


class Box(NamedTuple):
    """Limits of this process."""

    cpus: tuple[int, ...]
    """CPUs to use, one thread each: those of the affinity mask, no more of them than the CPU quota feeds."""
    memory_bytes: int
    """Memory that may be taken without swapping or being killed, after a reserve for the rest of the machine."""
    llc_bytes: int
    """Sum of the last-level caches of these CPUs."""
    llc_known: bool
    """Whether the machine told; else a size is assumed."""


def look(machine: Machine, threads: int | None = None) -> Box:
    """Read the limits as they are now; ``threads`` asks for fewer CPUs than allowed, never for more.

    Raises ValueError when more threads are asked for than CPUs are allowed.
    """
    allowed = sorted(os.sched_getaffinity(0))
    quota = _quota(machine)
    usable = len(allowed) if quota is None else max(1, min(len(allowed), math.floor(quota + 0.05)))
    if threads is not None and not 1 <= threads <= usable:
        raise ValueError(f"{threads} threads asked for, {usable} CPUs may be used (affinity and CPU quota)")
    cpus = tuple(_spread(allowed, threads or usable))
    llc = _last_level_bytes(machine, cpus)
    return Box(cpus, _memory(machine), llc or _LLC_ASSUMED_BYTES, llc_known=llc > 0)


def _spread(allowed: list[int], count: int) -> list[int]:
    """``count`` CPUs evenly over the list, so that few threads still reach every memory controller."""
    return [allowed[index * len(allowed) // count] for index in range(count)]


def _quota(machine: Machine) -> float | None:
    """CPUs that the tightest cgroup feeds; None without a limit or where it cannot be read."""
    limits = []
    try:
        cgroups = machine.shared(Cgroups).holding("cpu")
    except (NoData, ParseError):
        return None
    for cgroup in cgroups:
        try:
            if cgroup.version == 2:
                limit = cgroup_cpu.parse_max(machine.files.read(f"{cgroup.folder}/cpu.max"), f"{cgroup.folder}/cpu.max")
            else:
                quota = machine.files.read(f"{cgroup.folder}/cpu.cfs_quota_us")
                period = machine.files.read(f"{cgroup.folder}/cpu.cfs_period_us")
                limit = cgroup_cpu.parse_quota(quota, period, f"{cgroup.folder}/cpu.cfs_quota_us")
        except (NoData, ParseError):
            continue
        if limit is not None:
            limits.append(limit)
    return min(limits, default=None)


def _memory(machine: Machine) -> int:
    """MemAvailable or what the tightest cgroup leaves, whichever is less, without the reserve."""
    available = proc_meminfo.parse(machine.files.read("/proc/meminfo")).sizes_bytes["MemAvailable"]
    room = min([available, *_cgroup_rooms(machine)])
    return max(0, room - max(_RESERVE_BYTES, int(room * _RESERVE_SHARE)))


def _cgroup_rooms(machine: Machine) -> list[int]:
    """What each cgroup above us leaves of its memory limit, its page cache counted as free."""
    rooms = []
    try:
        cgroups = machine.shared(Cgroups).holding("memory")
    except (NoData, ParseError):
        return []
    for cgroup in cgroups:
        names = ("memory.max", "memory.current") if cgroup.version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        try:
            limit, current = (machine.files.read(f"{cgroup.folder}/{name}").strip() for name in names)
            statistics = machine.files.read(f"{cgroup.folder}/memory.stat")
        except NoData:
            continue  # the root has no limit, and neither has a cgroup without this controller
        if limit.isdigit() and current.isdigit():
            rooms.append(int(limit) - int(current) + _inactive_file(statistics))
    return rooms


def _inactive_file(statistics: bytes) -> int:
    """Page cache that goes first when memory is short."""
    for line in statistics.splitlines():
        name, _, value = line.partition(b" ")
        if name in (b"inactive_file", b"total_inactive_file") and value.isdigit():
            return int(value)
    return 0


def _last_level_bytes(machine: Machine, cpus: tuple[int, ...]) -> int:
    """Sum over the distinct last-level caches; 0 when the machine tells none."""
    caches: dict[tuple[bytes, bytes], int] = {}
    for cpu in cpus:
        best: tuple[int, tuple[bytes, bytes], int] | None = None
        for index in range(8):
            folder = f"{_CACHE.format(cpu=cpu)}/index{index}"
            try:
                level = machine.files.read(f"{folder}/level").strip()
                kind = machine.files.read(f"{folder}/type").strip()
                shared = machine.files.read(f"{folder}/shared_cpu_list").strip()
                size = sys_cpu_cache.parse_size_kib(machine.files.read(f"{folder}/size"), folder) * BYTES_PER_KIB
            except (NoData, ParseError):
                break
            if kind != b"Instruction" and level.isdigit() and (best is None or int(level) > best[0]):
                best = (int(level), (level, shared), size)
        if best is not None:
            caches[best[1]] = best[2]
    return sum(caches.values())
