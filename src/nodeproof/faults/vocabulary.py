"""What the rules of health are called as faults: the wire's type, and one class for every vendor. Pure.

Types of the reference (observe.md 7.4) keep their names. A rule of health that is not named here is no fault: full disks, high
load and the like are findings; faults are things that break. Rules on accelerators are faults by default, so that a rule which
somebody adds is told of.
"""

from typing import NamedTuple

from nodeproof.model.event import Severity
from nodeproof.model.fault import FaultClass as Is
from nodeproof.model.health import Standing

__all__ = ["NAMINGS", "REFERENCE_TYPES", "Naming", "naming_of"]

REFERENCE_TYPES = (
    "card_drop",
    "npu_health",
    "npu_error_code",
    "hbm_uce",
    "ddr_uce",
    "roce_link_down",
    "driver_unhealthy",
    "straggler_detected",
)
"""The types of the reference, in its order."""


class Naming(NamedTuple):
    """A rule of health as a fault."""

    type: str
    fault_class: Is
    severity: Severity | None = None
    """None = the rule's own."""
    tiers: frozenset[str] = frozenset()
    """Of a rule with several thresholds, those that make a fault; empty = all."""
    by_value: tuple[tuple[float, Severity], ...] = ()
    """Severity by the value of the reading; another value makes no fault."""


_CRITICAL, _WARNING = Severity.CRITICAL, Severity.WARNING

NAMINGS: dict[str, Naming] = {
    "npu.card_drop": Naming("card_drop", Is.LOST, _CRITICAL),
    "npu.card_lost": Naming("card_drop", Is.LOST, _CRITICAL),
    "gpu.card_lost": Naming("card_drop", Is.LOST, _CRITICAL),
    "npu.drop_code": Naming("card_drop", Is.LOST, _CRITICAL),
    "npu.health": Naming("npu_health", Is.DEVICE, by_value=((3.0, _WARNING), (4.0, _CRITICAL))),
    "npu.driver_unhealthy": Naming("driver_unhealthy", Is.DRIVER, _WARNING),
    "npu.roce_link_down": Naming("roce_link_down", Is.LINK_DOWN, _WARNING),
    "npu.error_code": Naming("npu_error_code", Is.DEVICE, _WARNING),
    "npu.hbm_ecc": Naming("hbm_uce", Is.ECC_UNCORRECTED, _CRITICAL, frozenset({"hbm_double_ecc"})),
    "npu.ddr_ecc": Naming("ddr_uce", Is.ECC_UNCORRECTED, _CRITICAL, frozenset({"ddr_double_ecc"})),
    "npu.temperature": Naming("thermal", Is.THERMAL, _WARNING, frozenset({"temp>90C"})),
    "gpu.temperature": Naming("thermal", Is.THERMAL, _WARNING, frozenset({"temp>90C"})),
    "gpu.lost": Naming("card_drop", Is.LOST),
    "gpu.reset_required": Naming("reset_required", Is.RESET_REQUIRED),
    "gpu.silent": Naming("driver_hung", Is.DRIVER_HUNG),
    "gpu.driver_down": Naming("driver_unhealthy", Is.DRIVER),
    "gpu.pcie_width": Naming("pcie_degraded", Is.LINK_DEGRADED),
    "gpu.pcie_generation": Naming("pcie_degraded", Is.LINK_DEGRADED),
    "gpu.pcie_replays": Naming("pcie_errors", Is.LINK_DEGRADED),
    "gpu.nvlinks_down": Naming("link_down", Is.LINK_DOWN),
    "gpu.nvlink_missing": Naming("link_down", Is.LINK_DOWN),
    "gpu.nvlink_errors": Naming("link_degraded", Is.LINK_DEGRADED),
    "gpu.fabric_failed": Naming("link_down", Is.LINK_DOWN),
    "gpu.fabric_pending": Naming("link_degraded", Is.LINK_DEGRADED),
    "gpu.thermal_slowdown": Naming("thermal", Is.THERMAL),
    "gpu.power_brake": Naming("power", Is.POWER),
    "gpu.row_remap_failure": Naming("memory_repair", Is.MEMORY_REPAIR),
    "gpu.row_remap_pending": Naming("memory_repair", Is.MEMORY_REPAIR),
    "gpu.retired_pages_pending": Naming("memory_repair", Is.MEMORY_REPAIR),
    "gpu.retired_pages_many": Naming("memory_repair", Is.MEMORY_REPAIR),
    "gpu.sram_threshold": Naming("ecc_uncorrected", Is.ECC_UNCORRECTED),
    "gpu.uncorrected_memory_errors": Naming("ecc_uncorrected", Is.ECC_UNCORRECTED),
    "gpu.ecc": Naming("ecc_uncorrected", Is.ECC_UNCORRECTED, _CRITICAL),
    "cpu.temperature": Naming("thermal", Is.THERMAL, _WARNING, frozenset({"temp>85C"})),
    "cpu.slowed_by_heat": Naming("thermal", Is.THERMAL),
    "cpu.package_slowed_by_heat": Naming("thermal", Is.THERMAL),
    "cpu.corrected_errors": Naming("machine_check_corrected", Is.PROCESSOR, _WARNING, frozenset({"cpu_ce_error>=3"})),
    "cpu.uncorrected_errors": Naming("machine_check", Is.PROCESSOR, _CRITICAL),
    "cpu.uncorrected_machine_check": Naming("machine_check", Is.PROCESSOR),
    "memory.corrected_errors": Naming("ecc_corrected", Is.ECC_CORRECTED, _WARNING, frozenset({"ce_error>=3"})),
    "memory.uncorrected_errors": Naming("ecc_uncorrected", Is.ECC_UNCORRECTED, _CRITICAL),
    "memory.broken_pages": Naming("memory_repair", Is.MEMORY_REPAIR),
    "system.task_stuck": Naming("task_stuck", Is.STUCK),
    "system.tainted_by_machine_check": Naming("machine_check_earlier", Is.PROCESSOR),
    "disk.smart": Naming("disk_failing", Is.DISK, _CRITICAL),
    "disk.failing_attributes": Naming("disk_failing", Is.DISK),
    "disk.nvme_failing": Naming("disk_failing", Is.DISK),
    "disk.nvme_warning": Naming("disk_warning", Is.DISK),
    "disk.worn": Naming("disk_worn", Is.DISK),
    "disk.pending_sectors": Naming("disk_sectors", Is.DISK),
    "disk.unreadable_sectors": Naming("disk_sectors", Is.DISK),
    "disk.new_reallocations": Naming("disk_sectors", Is.DISK),
    "disk.media_errors": Naming("disk_sectors", Is.DISK),
    "disk.crc_errors": Naming("disk_link", Is.LINK_DEGRADED),
    "disk.read_only": Naming("fs_readonly", Is.FILE_SYSTEM),
    "disk.file_system_errors": Naming("fs_error", Is.FILE_SYSTEM),
    "disk.raid_degraded": Naming("raid_degraded", Is.RAID),
    "disk.raid_inactive": Naming("raid_degraded", Is.RAID),
    "disk.raid_failed": Naming("raid_failed", Is.RAID),
    "network.link_lost": Naming("link_down", Is.LINK_DOWN),
    "network.link_flaps": Naming("link_flapping", Is.LINK_FLAPPING),
    "network.half_duplex": Naming("link_degraded", Is.LINK_DEGRADED),
    "network.speed_fell": Naming("link_degraded", Is.LINK_DEGRADED),
    "network.pcie_narrow": Naming("pcie_degraded", Is.LINK_DEGRADED),
    "network.bond_down": Naming("link_down", Is.LINK_DOWN),
    "network.bond_degraded": Naming("link_degraded", Is.LINK_DEGRADED),
    "network.ib_port_down": Naming("link_down", Is.LINK_DOWN),
    "network.ib_link_downed": Naming("link_flapping", Is.LINK_FLAPPING),
    "network.ib_symbol_errors": Naming("link_degraded", Is.LINK_DEGRADED),
    "chassis.psu_failed": Naming("psu_failed", Is.POWER),
    "chassis.psu_warning": Naming("psu_warning", Is.POWER),
    "chassis.psu_redundancy": Naming("psu_redundancy", Is.POWER),
    "chassis.fan_failed": Naming("fan_failed", Is.FAN),
    "chassis.fan_warning": Naming("fan_warning", Is.FAN),
    "chassis.sensor_critical": Naming("sensor_critical", Is.DEVICE),
    "chassis.sensor_warning": Naming("sensor_warning", Is.DEVICE),
    "chassis.fault": Naming("chassis_fault", Is.DEVICE),
    "chassis.bmc_silent": Naming("bmc_silent", Is.DRIVER_HUNG),
    "daemon.component_stale": Naming("blind", Is.MONITOR),
    "daemon.collector_hung": Naming("blind", Is.MONITOR),
}
"""By rule of health."""

_COUNTED = frozenset({"gpu.xid", "gpu.sxid", "gpu.utilization", "gpu.memory", "npu.utilization", "npu.memory"})
"""Rules on accelerators that are no faults: the events behind two of them are told one by one, the rest is load."""
_ACCELERATORS = ("gpu", "npu")


def naming_of(condition: Standing) -> Naming | None:
    """What ``condition`` is called as a fault, with its severity; None when it is none."""
    rule, own = condition.rule, Severity(condition.severity.value)
    found = NAMINGS.get(rule)
    if found is not None:
        if found.tiers and condition.tier not in found.tiers:
            return None
        if found.by_value:
            severity = dict(found.by_value).get(condition.value)
            return None if severity is None else found._replace(severity=severity)
        return found._replace(severity=found.severity or own)
    component, _, name = rule.partition(".")
    if component in _ACCELERATORS and rule not in _COUNTED and own is not Severity.INFO:
        return Naming(name, Is.STRAGGLER if "straggler" in name else Is.DEVICE, own)
    return None
