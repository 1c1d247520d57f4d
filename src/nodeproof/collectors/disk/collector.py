"""Component disk: disks, file systems, software RAID, and what disks say of their own health."""

from nodeproof.clock import rfc3339
from nodeproof.collectors.base import Collector, GroupCollector, Selection
from nodeproof.collectors.disk import errors, io, raid, smart, space
from nodeproof.collectors.services.block_devices import BlockDevices, Disk
from nodeproof.collectors.services.smart import Smart, SmartReading
from nodeproof.errors import NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Metric
from nodeproof.sources.smartctl import SmartReport

__all__ = ["create", "identity"]

_BYTES_PER_GB = 1e9
_SMART_WAIT_S = 30.0


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    parts = (space, io, errors, raid, smart)
    groups = tuple(group for part in parts for group in part.groups(machine))
    return GroupCollector("disk", groups, machine, selection, default_interval_s=5.0)


def identity(machine: Machine) -> list[Metric]:
    """``disk_info`` of every whole disk: its size, and in labels what it is. Raises NoData when there is none to be seen.

    To be called in the background: it waits, at most half a minute, for the answers of ``smartctl``, which alone knows the serial
    number and firmware of most disks; without them the labels that the kernel knows remain.
    """
    disks = machine.shared(BlockDevices).disks()
    reports = _reports(machine)
    timestamp = rfc3339(machine.clock.now().wall_s)
    return [
        Metric("disk", "disk_info", round(disk.size_bytes / _BYTES_PER_GB, 1), "GB", _labels(disk, reports.get(name)), timestamp)
        for name, disk in disks.items()
    ]


def _reports(machine: Machine) -> dict[str, SmartReport]:
    smart = machine.shared(Smart)
    try:
        smart.readings()
        smart.wait(_SMART_WAIT_S)
        readings = smart.readings()
    except NoData:
        return {}
    return {name: reading.report for name, reading in readings.items() if isinstance(reading, SmartReading)}


def _labels(disk: Disk, report: SmartReport | None) -> dict[str, str]:
    known = " ".join(part for part in (disk.vendor if disk.vendor != "ATA" else "", disk.model) if part)
    labels = {
        "device": disk.name,
        "model": report.model if report and report.model else known,
        "serial": report.serial if report and report.serial else disk.serial,
        "interface": report.interface if report and report.interface else disk.transport,
        "firmware": report.firmware if report and report.firmware else disk.firmware,
    }
    return {key: value for key, value in labels.items() if value}
