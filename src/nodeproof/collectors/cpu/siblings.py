"""Which logical processors belong together, from the lists in ``/sys/devices/system/cpu/cpu*/topology``."""

from collections.abc import Iterator
from contextlib import contextmanager

from nodeproof.collectors.base import Cycle
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.files import FileTree
from nodeproof.model.metric import Labels
from nodeproof.sources import cpu_list

__all__ = ["listed", "packages", "parts", "told"]

_CPU = "/sys/devices/system/cpu"
_SIBLINGS = {
    "package": ("package_cpus_list", "core_siblings_list"),
    "die": ("die_cpus_list", "core_siblings_list"),
    "core": ("core_cpus_list", "thread_siblings_list"),
}
"""Files that list the processors of the same package, die or core: the name of today, and the one before Linux 5.3."""


def listed(files: FileTree, path: str) -> list[int]:
    """A list that cannot be empty. Raises NoData and ParseError."""
    numbers = cpu_list.parse(files.read(path), path)
    if not numbers:
        raise NoData(Absence.READ_ERROR, f"{path} is empty")
    return numbers


def packages(files: FileTree) -> list[list[int]]:
    """Online processors by socket. Raises NoData where the firmware does not tell sockets apart (the kernel then says -1)."""
    online = listed(files, f"{_CPU}/online")
    path = f"{_CPU}/cpu{online[0]}/topology/physical_package_id"
    if files.read_int(path) < 0:
        raise NoData(Absence.UNSUPPORTED, f"{path} holds -1: the firmware does not tell sockets apart")
    return parts(files, online, "package")


def parts(files: FileTree, cpus: list[int], kind: str) -> list[list[int]]:
    """``cpus`` divided into packages, dies or cores (``kind``): one file a part is read, not one a processor. Raises NoData."""
    divided: list[list[int]] = []
    left = set(cpus)
    for cpu in cpus:
        if cpu in left:
            siblings = left.intersection(_siblings(files, cpu, kind)) | {cpu}
            left -= siblings
            divided.append(sorted(siblings))
    return divided


def _siblings(files: FileTree, cpu: int, kind: str) -> list[int]:
    today, before = (f"{_CPU}/cpu{cpu}/topology/{item}" for item in _SIBLINGS[kind])
    path = today if files.exists(today) else before
    return cpu_list.parse(files.read(path), path)


@contextmanager
def told(cycle: Cycle, name: str, labels: Labels | None = None) -> Iterator[None]:
    """Whatever keeps one reading away is told as its absence, and its neighbours are read on."""
    try:
        yield
    except NoData as absence:
        cycle.miss_all((name,), absence, labels)
    except ParseError as error:
        cycle.miss(name, Absence.READ_ERROR, str(error), labels)
