"""Memory: how much there is, what came back from swap, who was killed for want of it, and time lost waiting (PSI)."""

from typing import NamedTuple

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.sources import pressure, proc_meminfo, proc_vmstat
from nodeproof.units import BYTES_PER_KIB

__all__ = ["MemoryNow", "Stalls", "meminfo", "stalls", "vmstat"]


class MemoryNow(NamedTuple):
    """KiB; None = the file does not tell."""

    total_kb: int | None
    available_kb: int | None
    cached_kb: int | None


class Stalls(NamedTuple):
    """Seconds since boot that tasks stood still for want of a resource; None = the kernel does not tell."""

    cpu_some_s: float | None
    memory_full_s: float | None
    io_full_s: float | None


def meminfo(files: FileTree) -> MemoryNow:
    """``/proc/meminfo``. Raises NoData and ParseError."""
    sizes = proc_meminfo.parse(files.read_kept("/proc/meminfo")).sizes_bytes

    def kib(name: str) -> int | None:
        size = sizes.get(name)
        return None if size is None else size // BYTES_PER_KIB

    return MemoryNow(kib("MemTotal"), kib("MemAvailable"), kib("Cached"))


def vmstat(files: FileTree) -> dict[str, int]:
    """``pswpin`` and ``oom_kill`` as far as the kernel counts them. Raises NoData and ParseError."""
    counters = proc_vmstat.parse(files.read_kept("/proc/vmstat"))
    return {name: counters[name] for name in ("pswpin", "oom_kill") if name in counters}


def stalls(files: FileTree) -> Stalls:
    """Totals of ``/proc/pressure``. Raises NoData when none of the three can be read."""
    cpu, memory, io = (_pressure(files, name) for name in ("cpu", "memory", "io"))
    if isinstance(cpu, NoData) and isinstance(memory, NoData) and isinstance(io, NoData):
        raise cpu
    return Stalls(
        None if isinstance(cpu, NoData) or cpu.some is None else cpu.some.total_s,
        None if isinstance(memory, NoData) or memory.full is None else memory.full.total_s,
        None if isinstance(io, NoData) or io.full is None else io.full.total_s,
    )


def _pressure(files: FileTree, name: str) -> pressure.Pressure | NoData:
    try:
        return pressure.parse(files.read_kept(f"/proc/pressure/{name}"))
    except NoData as absence:
        if absence.state is Absence.UNSUPPORTED:
            return NoData(
                absence.state, absence.reason, remedy="boot with psi=1 on a kernel of 4.20 or newer built with CONFIG_PSI"
            )
        return absence
