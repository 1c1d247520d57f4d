"""Hardware errors that the kernel counts: memory controllers (EDAC), PCIe (AER), and what the kernel log tells."""

from typing import NamedTuple

from nodeproof.collectors.services.kernel_log import KernelCounts
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import aer_counters, edac

__all__ = ["Aer", "Edac", "Errors", "machine_checks"]

_EDAC = "/sys/devices/system/edac/mc"
_PCI = "/sys/bus/pci/devices"
_EDAC_REMEDY = "load the EDAC driver of this processor (modprobe amd64_edac, skx_edac, i10nm_edac, ie31200_edac or ghes_edac)"


class Errors(NamedTuple):
    """Errors of one part since its driver was loaded; None = not readable."""

    corrected: int | None
    uncorrected: int | None


class Edac:
    """``ce_count`` and ``ue_count`` of each memory controller."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)

    def read(self) -> dict[str, Errors]:
        """Errors by controller, ``mc0``. Raises NoData when there is none to read."""
        try:
            names = self._files.names(_EDAC)
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            names = []
        found = [name for name in names if name.startswith("mc") and name[2:].isdecimal()]
        if not found:
            raise self._absence()
        return {name: Errors(self._count(name, "ce_count"), self._count(name, "ue_count")) for name in found}

    def _count(self, controller: str, file: str) -> int | None:
        try:
            return edac.parse_count(self._files.read(f"{_EDAC}/{controller}/{file}"))
        except NoData:
            return None

    def _absence(self) -> NoData:
        if self._platform.is_virtual:
            return self._platform.no_hardware("memory controller", f"{_EDAC} is not there", remedy=_EDAC_REMEDY)
        # Real memory may have errors now: that nobody counts them is not the same as that there are none.
        return NoData(Absence.UNKNOWN, f"no EDAC driver shows a memory controller in {_EDAC}", remedy=_EDAC_REMEDY)


class Aer:
    """``aer_dev_*`` of each PCIe device that has them. The kernel keeps the numbers: no device is asked."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._devices: list[str] | None = None

    def read(self) -> dict[str, Errors]:
        """Errors by PCI address. Raises NoData when no device counts any."""
        if self._devices is None:
            self._devices = self._find()
        if not self._devices:
            raise self._platform.no_hardware(
                "PCIe error counter", f"no device below {_PCI} has aer_dev_fatal", remedy="use a kernel built with CONFIG_PCIEAER"
            )
        return {address: self._errors(address) for address in self._devices}

    def _find(self) -> list[str]:
        try:
            addresses = self._files.names(_PCI)
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:
                return []
            raise
        return [address for address in addresses if self._files.exists(f"{_PCI}/{address}/aer_dev_fatal")]

    def _errors(self, address: str) -> Errors:
        fatal, nonfatal = self._total(address, "aer_dev_fatal"), self._total(address, "aer_dev_nonfatal")
        uncorrected = None if fatal is None or nonfatal is None else fatal + nonfatal
        return Errors(self._total(address, "aer_dev_correctable"), uncorrected)

    def _total(self, address: str, file: str) -> int | None:
        try:
            return aer_counters.total(self._files.read(f"{_PCI}/{address}/{file}"))
        except (NoData, ParseError):
            return None


def machine_checks(counts: KernelCounts) -> Errors:
    """Machine checks, firmware reports and failed pages that the kernel log told of."""
    pairs = [*counts.machine_checks.values(), counts.firmware_errors]
    uncorrected = sum(pair.uncorrected for pair in pairs) + counts.memory_failures
    return Errors(sum(pair.corrected for pair in pairs) + counts.machine_check_notices, uncorrected)
