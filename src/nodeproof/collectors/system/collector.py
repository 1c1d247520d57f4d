"""Component system: the node as a whole; see the modules ``system_*`` beside this one for clock, processes and kernel."""

from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.services.platform import Platform
from nodeproof.collectors.system import clock, kernel, processes
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_uptime

__all__ = ["create"]

_HOUR_S = 3600.0


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    node = _Node(machine)
    groups = (
        Group(("uptime",), node.read_uptime),
        Group(("boot_info",), node.read_boot, every_s=_HOUR_S),
        Group(("platform_info",), node.read_platform, every_s=_HOUR_S),
        Group(("entropy",), node.read_entropy, every_s=60.0),
        *clock.groups(machine),
        *processes.groups(machine),
        *kernel.groups(machine),
    )
    return GroupCollector("system", groups, machine, selection)


class _Node:
    """Boot, uptime and kind of machine."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)

    def read_uptime(self, cycle: Cycle) -> None:
        cycle.add("uptime", proc_uptime.parse(self._files.read_kept("/proc/uptime")).up_s)

    def read_boot(self, cycle: Cycle) -> None:
        boot_id = self._files.read_text("/proc/sys/kernel/random/boot_id")
        cycle.add("boot_info", 1.0, {"boot_id": boot_id[:64]})

    def read_platform(self, cycle: Cycle) -> None:
        virtualization = self._platform.virtualization
        if virtualization == "unknown":
            cycle.miss("platform_info", Absence.UNKNOWN, self._platform.virtualization_finding().evidence)
            return
        labels = {"virtualization": virtualization}
        container = self._platform.container
        if container is not None:
            labels["container"] = container
        cycle.add("platform_info", 1.0, labels)

    def read_entropy(self, cycle: Cycle) -> None:
        cycle.add("entropy", self._files.read_int("/proc/sys/kernel/random/entropy_avail"))
