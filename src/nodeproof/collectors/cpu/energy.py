"""Energy counters of the processor itself (RAPL, through powercap), and the power that follows from them."""

from typing import NamedTuple

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import rapl

__all__ = ["Energy", "PackagePower"]

_POWERCAP = "/sys/class/powercap"
_PREFIX = "intel-rapl:"
"""AMD processors come under this name too. ``intel-rapl-mmio:`` shows the same packages a second time."""


class PackagePower(NamedTuple):
    """Mean power of one package since the last reading."""

    package: str
    sensor: str
    watts: float


class _Zone:
    """One energy counter."""

    def __init__(self, folder: str, package: str, domain: str, range_uj: int) -> None:
        self.folder = folder
        self.package = package
        self.domain = domain
        self.labels = {"package": package, "domain": domain} if package else {"domain": domain}
        self.range_uj = range_uj
        self.before: tuple[int, float] | None = None
        self.used_j = 0.0

    def power_w(self, now_uj: int, mono_s: float) -> float | None:
        """Mean power since the last reading, whose energy is added up; None when that cannot be told."""
        before, self.before = self.before, (now_uj, mono_s)
        if before is None:
            return None
        used_j = rapl.energy_used_j(before[0], now_uj, self.range_uj, mono_s - before[1])
        if used_j is None:
            return None
        self.used_j += used_j
        return used_j / (mono_s - before[1])


class Energy:
    """All zones of ``/sys/class/powercap``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._zones: dict[str, _Zone] = {}

    def read(self, cycle: Cycle) -> list[PackagePower]:
        """Add energy and domain power to ``cycle`` and give the power of the packages. Raises NoData when there is none."""
        folders = self._folders()
        self._zones = {folder: self._zones.get(folder) or self._zone(folder) for folder in folders}
        powers: list[PackagePower] = []
        failed: dict[str, NoData] = {}
        waiting = 0
        for zone in self._zones.values():
            path = f"{_POWERCAP}/{zone.folder}/energy_uj"
            try:
                now_uj = rapl.parse_energy_uj(self._files.read(path), path)
            except NoData as absence:
                failed[zone.folder] = absence.again()
                continue
            except ParseError as error:
                failed[zone.folder] = NoData(Absence.READ_ERROR, str(error))
                continue
            watts = zone.power_w(now_uj, cycle.at.mono_s)
            cycle.add("energy", round(zone.used_j, 3), zone.labels)
            if watts is None:
                waiting += 1
            elif zone.domain.startswith("package"):
                powers.append(PackagePower(zone.package, f"RAPL {zone.domain}", round(watts, 2)))
            else:
                cycle.add("domain_power", round(watts, 2), zone.labels)
        self._tell_failures(cycle, failed)
        if not powers:
            raise self._why_no_power(failed, waiting)
        return powers

    def _tell_failures(self, cycle: Cycle, failed: dict[str, NoData]) -> None:
        if not failed:
            return
        first = self._explain(next(iter(failed.values())))
        names = ("energy",) if len(failed) < len(self._zones) else ("energy", "domain_power")
        cycle.miss_all(
            names, NoData(first.state, f"{len(failed)} of {len(self._zones)} counters: {first.reason}", remedy=first.remedy)
        )

    def _why_no_power(self, failed: dict[str, NoData], waiting: int) -> NoData:
        if waiting:
            return NoData(Absence.UNKNOWN, "needs two readings of the energy counters, not far apart")
        if failed:
            return self._explain(next(iter(failed.values())))
        return NoData(Absence.UNSUPPORTED, f"{_POWERCAP} has no counter of a whole package")

    @staticmethod
    def _explain(absence: NoData) -> NoData:
        if absence.state is not Absence.NO_PERMISSION:
            return absence
        return NoData(
            absence.state,
            absence.reason,
            remedy="run as root: the kernel gives energy counters to root only, as they can reveal secrets (CVE-2020-8694)",
        )

    def _folders(self) -> list[str]:
        remedy = "load the driver: modprobe intel_rapl_msr (also for AMD)"
        try:
            names = self._files.names(_POWERCAP)
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            raise self._platform.no_hardware("energy counter (RAPL)", absence.reason, remedy=remedy) from None
        folders = [name for name in names if name.startswith(_PREFIX)]
        if not folders:
            raise self._platform.no_hardware("energy counter (RAPL)", f"{_POWERCAP} has no {_PREFIX}*", remedy=remedy)
        return folders

    def _zone(self, folder: str) -> _Zone:
        parent = folder.rpartition(":")[0]
        package, domain = rapl.zone_name(self._name(folder), self._name(parent) if parent.startswith(_PREFIX) else "")
        path = f"{_POWERCAP}/{folder}/max_energy_range_uj"
        try:
            range_uj = rapl.parse_energy_uj(self._files.read(path), path)
        except (NoData, ParseError):
            range_uj = 0
        return _Zone(folder, package, domain, range_uj)

    def _name(self, folder: str) -> str:
        try:
            return self._files.read_text(f"{_POWERCAP}/{folder}/name") or folder
        except NoData:
            return folder
