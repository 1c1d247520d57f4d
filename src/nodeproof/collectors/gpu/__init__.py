"""Component gpu: NVIDIA and AMD cards, put together in ``collector``, which is loaded where anything hints at one."""

from nodeproof.collectors.base import Collector, Selection
from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.collectors.when_present import Devices, WhenPresent
from nodeproof.host.machine import Machine

__all__ = ["create"]

_DEVICES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd")
_TOOLS = ("nvidia-smi", "amd-smi", "rocm-smi")


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    return WhenPresent(
        Devices("gpu", _hinted, _collector, "there is no NVIDIA or AMD GPU on the PCI bus"),
        machine,
        selection,
    )


def _hinted(machine: Machine) -> bool:
    """A card on the bus, a driver's device, or a driver's tool: a container may have any of them alone. Raises NoData."""
    beside = any(map(machine.files.exists, _DEVICES)) or any(map(machine.commands.find, _TOOLS))
    return beside or bool(machine.shared(PciAccelerators).cards("gpu"))


def _collector(machine: Machine, selection: Selection) -> Collector:
    from nodeproof.collectors.gpu import collector  # noqa: PLC0415 - a megabyte that most nodes have no use for

    return collector.create(machine, selection)
