"""Component npu: Huawei Ascend chips, put together in ``collector``, which is loaded where anything hints at one."""

import re

from nodeproof.collectors.base import Collector, Selection
from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.collectors.when_present import Devices, WhenPresent
from nodeproof.errors import NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Metric

__all__ = ["create", "identity"]

_NODE = re.compile(r"davinci[0-9]+|davinci_manager")


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    return WhenPresent(Devices("npu", _hinted, _collector, "there is no Huawei NPU on the PCI bus"), machine, selection)


def identity(machine: Machine) -> list[Metric]:
    """``npu_info`` of every chip; to be called in the background, see ``collector``."""
    try:
        if not _hinted(machine):
            return []
    except NoData:
        return []
    from nodeproof.collectors.npu import collector  # noqa: PLC0415 - as below

    return collector.identity(machine)


def _hinted(machine: Machine) -> bool:
    """A card on the bus, a device node, or the driver's tool: a container may have any of them alone. Raises NoData."""
    if machine.commands.find("npu-smi") is not None or any(map(_NODE.fullmatch, _devices(machine))):
        return True
    return bool(machine.shared(PciAccelerators).cards("npu"))


def _devices(machine: Machine) -> list[str]:
    try:
        return machine.files.names("/dev")
    except NoData:
        return []


def _collector(machine: Machine, selection: Selection) -> Collector:
    from nodeproof.collectors.npu import collector  # noqa: PLC0415 - most nodes have no use for what it loads

    return collector.create(machine, selection)
