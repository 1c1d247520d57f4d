"""Errors that memory controllers corrected or could not correct, by controller and by module (EDAC)."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import memory as catalogue
from nodeproof.model.metric import Labels
from nodeproof.sources import edac
from nodeproof.sources.edac import Dimm

__all__ = ["groups"]

_ROOT = "/sys/devices/system/edac/mc"
_CONTROLLER_COUNTS = ("ecc_ce_errors", "ecc_uce_errors")
_MODULE_COUNTS = ("ecc_dimm_ce_errors", "ecc_dimm_uce_errors")
_SLOW = (*_MODULE_COUNTS, "ecc_dimm_size", "ecc_noinfo_errors", "ecc_controller_info")


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of EDAC."""
    ecc = _Edac(machine)
    return (
        Group(_CONTROLLER_COUNTS, ecc.read_controllers, every_s=catalogue.ECC_PERIOD_S),
        Group(_SLOW, ecc.read_modules, every_s=catalogue.ECC_MODULE_PERIOD_S),
    )


class _Edac:
    """``/sys/devices/system/edac/mc``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._labels: dict[tuple[str, ...], Labels] = {}

    def read_controllers(self, cycle: Cycle) -> None:
        """Counters of each controller, since its driver was loaded."""
        for name in self._controllers():
            labels = self._label(mc=name)
            for metric, file in zip(_CONTROLLER_COUNTS, ("ce_count", "ue_count"), strict=True):
                self._count(cycle, metric, f"{_ROOT}/{name}/{file}", labels)

    def read_modules(self, cycle: Cycle) -> None:
        """Each controller, its modules, and the errors it could not place."""
        for name in self._controllers():
            try:
                self._controller(cycle, name)
            except NoData as absence:
                cycle.miss_all(_SLOW, absence, self._label(mc=name))

    def _controllers(self) -> list[str]:
        try:
            names = self._files.names(_ROOT)
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            names = []
        found = [name for name in names if name.startswith("mc") and name[2:].isdecimal()]
        if not found:
            raise self._absence()
        return found

    def _absence(self) -> NoData:
        remedy = (
            "load the EDAC driver of this processor (modprobe amd64_edac, skx_edac, i10nm_edac, ie31200_edac or ghes_edac); "
            "without one nobody sees memory errors"
        )
        if self._platform.is_virtual:
            return self._platform.no_hardware("memory controller", f"{_ROOT} is not there", remedy=remedy)
        # Real memory may have errors now: that nobody counts them is not the same as that there are none.
        return NoData(Absence.UNKNOWN, f"no EDAC driver shows a memory controller in {_ROOT}", remedy=remedy)

    def _count(self, cycle: Cycle, metric: str, path: str, labels: Labels) -> None:
        try:
            raw = self._files.read(path)
        except NoData as absence:
            cycle.miss(metric, absence.state, absence.reason, labels, remedy=absence.remedy)
            return
        count = edac.parse_count(raw)
        if count is None:
            cycle.miss(metric, Absence.READ_ERROR, f"{path}: {raw[:40].decode('utf-8', 'replace')!r} is no count", labels)
        else:
            cycle.add(metric, count, labels)

    def _controller(self, cycle: Cycle, name: str) -> None:
        folder = f"{_ROOT}/{name}"
        controller = edac.parse_controller(self._read(folder, edac.CONTROLLER_FILES))
        modules = self._modules(folder)
        mode = next((module.edac_mode for module in modules if module.edac_mode), "")
        if controller.size_mib is None:
            cycle.miss("ecc_controller_info", Absence.UNSUPPORTED, f"{folder} has no size_mb", self._label(mc=name))
        else:
            cycle.add("ecc_controller_info", controller.size_mib, self._label(mc=name, model=controller.model, mode=mode))
        for kind, count in (("ce", controller.ce_noinfo), ("uce", controller.ue_noinfo)):
            labels = self._label(mc=name, type=kind)
            if count is None:
                cycle.miss("ecc_noinfo_errors", Absence.UNSUPPORTED, f"{folder} does not count errors it cannot place", labels)
            else:
                cycle.add("ecc_noinfo_errors", count, labels)
        self._add_modules(cycle, name, modules)

    def _modules(self, folder: str) -> list[Dimm]:
        names = self._files.names(folder)
        dimms = [name for name in names if edac.is_dimm(name)]
        if dimms:
            return [edac.parse_dimm(name, self._read(f"{folder}/{name}", edac.DIMM_FILES)) for name in dimms]
        rows = [name for name in names if edac.is_csrow(name)]
        return [dimm for name in rows for dimm in edac.parse_csrow(name, self._read(f"{folder}/{name}", edac.CSROW_FILES))]

    def _add_modules(self, cycle: Cycle, controller: str, modules: list[Dimm]) -> None:
        if not modules:
            absence = NoData(Absence.UNSUPPORTED, f"the driver of {controller} shows no modules")
            cycle.miss_all((*_MODULE_COUNTS, "ecc_dimm_size"), absence, self._label(mc=controller))
            return
        uncounted: dict[str, list[str]] = {}
        for module in modules:
            labels = self._label(mc=controller, dimm=module.name, label=module.label, location=module.location)
            for metric, value in (
                ("ecc_dimm_ce_errors", module.corrected),
                ("ecc_dimm_uce_errors", module.uncorrected),
                ("ecc_dimm_size", module.size_mib),
            ):
                if value is None:
                    uncounted.setdefault(metric, []).append(module.name)
                else:
                    cycle.add(metric, value, labels)
        for metric, names in uncounted.items():
            reason = f"the driver of {controller} does not tell this of {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}"
            cycle.miss(metric, Absence.UNSUPPORTED, reason, self._label(mc=controller))

    def _read(self, folder: str, names: tuple[str, ...]) -> dict[str, bytes]:
        """Those of the files that are there and can be read."""
        contents: dict[str, bytes] = {}
        for name in names:
            try:
                contents[name] = self._files.read(f"{folder}/{name}")
            except NoData:
                continue
        return contents

    def _label(self, **labels: str) -> Labels:
        """One shared dictionary for equal labels; empty ones are left out."""
        key = tuple(f"{name}={value}" for name, value in labels.items())
        return self._labels.setdefault(key, {name: value for name, value in labels.items() if value})
