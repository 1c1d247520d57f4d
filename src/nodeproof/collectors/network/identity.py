"""Who the interfaces are: for the snapshot's ``specs`` alone, because hardware addresses belong nowhere else."""

from collections.abc import Mapping

from nodeproof.clock import rfc3339
from nodeproof.collectors.network.links import interface_names, optional
from nodeproof.errors import CommandError, NoData, ParseError
from nodeproof.host.files import FileTree, legible
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels, Metric
from nodeproof.sources import lspci, sys_class_net, sys_pci

__all__ = ["identity"]

_DEADLINE_S = 5.0
_UNKNOWN_SPEED = "-1"
"""The reference's word for a speed that cannot be read."""


def identity(machine: Machine) -> list[Metric]:
    """One ``net_info`` an interface; the value is its running number. Asks drivers and ``lspci``: it may block, and runs once."""
    try:
        names = interface_names(machine.files)
    except NoData:
        return []
    timestamp = rfc3339(machine.clock.now().wall_s)
    described = _descriptions(machine)
    return [
        Metric("network", "net_info", float(number), "", _labels(machine.files, name, described), timestamp)
        for number, name in enumerate(names)
    ]


def _labels(files: FileTree, name: str, described: Mapping[str, str]) -> Labels:
    folder = f"/sys/class/net/{name}"
    speed = optional(files, f"{folder}/speed", sys_class_net.parse_speed)
    address = _pci_address(files, folder)
    labels = {
        "interface": legible(name),
        "mac": optional(files, f"{folder}/address", sys_class_net.parse_word) or "",
        "mtu": optional(files, f"{folder}/mtu", sys_class_net.parse_word) or "",
        "speed": _UNKNOWN_SPEED if speed is None else str(speed),
        "driver": _base_name(files, f"{folder}/device/driver"),
        "pci_addr": address,
        "pci_device": described.get(address) or _ids(files, address),
    }
    return {key: value for key, value in labels.items() if value}


def _base_name(files: FileTree, link: str) -> str:
    try:
        return files.link_target(link).rpartition("/")[2]
    except NoData:
        return ""


def _pci_address(files: FileTree, folder: str) -> str:
    """Address of the PCI device that an interface is, from where it hangs in the tree of devices; empty for any other.

    ``../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0``: a USB adapter has a PCI device above it too, its controller, which
    is not meant.
    """
    try:
        above, net, _ = files.link_target(folder).rsplit("/", 2)
    except (NoData, ValueError):
        return ""
    *rest, device = [part for part in above.split("/") if not part.startswith("virtio")] or [""]
    return device if rest and net == "net" and device.count(":") == 2 else ""


def _ids(files: FileTree, address: str) -> str:
    """``15b3:101b`` where nothing describes the device in words."""
    if not address:
        return ""
    folder = f"/sys/bus/pci/devices/{address}"
    vendor, device = (optional(files, f"{folder}/{name}", sys_pci.parse_id) for name in ("vendor", "device"))
    return "" if vendor is None or device is None else f"{vendor:04x}:{device:04x}"


def _descriptions(machine: Machine) -> dict[str, str]:
    try:
        return lspci.parse(machine.commands.run(["lspci", "-D"], deadline_s=_DEADLINE_S).stdout)
    except (CommandError, ParseError):
        return {}
