"""Memory modules as the firmware lists them (SMBIOS): statics, tried again until they could be read."""

from collections import Counter
from collections.abc import Sequence

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.platform import Platform
from nodeproof.collectors.services.smbios import Smbios
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import memory as catalogue
from nodeproof.model.metric import Labels
from nodeproof.sources.smbios import MemoryArray, MemoryModule
from nodeproof.units import BYTES_PER_MIB

__all__ = ["groups"]

_MODULES = ("module_num", "module_slots", "module_size", "module_info", "module_speed_downclocked", "installed_size")
_NOT_MAIN_MEMORY = {"EEPROM", "EPROM", "FEPROM", "Flash", "ROM", "VRAM"}
_CORRECTING = {"Single-bit ECC", "Multi-bit ECC"}
_SAME_SPEED = 0.99
"""Firmware rounds: a module rated 2933 MT/s may be set to 2934 or 2932."""


def groups(machine: Machine) -> tuple[Group, ...]:
    """The one group of SMBIOS."""
    return (Group((*_MODULES, "ecc_capability"), _Modules(machine).read, every_s=catalogue.SMBIOS_PERIOD_S),)


class _Modules:
    """Types 16 and 17 of SMBIOS."""

    def __init__(self, machine: Machine) -> None:
        self._smbios = machine.shared(Smbios)
        self._platform = machine.shared(Platform)
        self._labels: dict[tuple[str, str], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        tables = self._smbios.tables()
        self._correction(cycle, tables.memory_arrays)
        slots = [module for module in tables.memory_modules if module.memory_type not in _NOT_MAIN_MEMORY]
        if not slots:
            cycle.miss_all(_MODULES, self._unlisted())
            return
        cycle.add("module_slots", len(slots))
        named = list(zip(_locators(slots), slots, strict=True))
        populated = [(locator, module) for locator, module in named if module.size_bytes]
        unknown = [locator for locator, module in named if module.size_bytes is None]
        if unknown:
            absence = NoData(Absence.UNKNOWN, f"the firmware does not know the size of {', '.join(unknown[:8])}")
            cycle.miss_all(("module_num", "installed_size", "module_size", "module_info"), absence)
        else:
            cycle.add("module_num", len(populated))
            cycle.add("installed_size", sum(module.size_bytes or 0 for _, module in populated) / BYTES_PER_MIB)
        for locator, module in populated:
            self._module(cycle, locator, module)
        self._speeds(cycle, populated)

    def _unlisted(self) -> NoData:
        if self._platform.is_virtual:
            return NoData(Absence.NOT_APPLICABLE, "the firmware of this virtual machine lists no memory modules")
        return NoData(Absence.UNKNOWN, "the firmware's tables list no memory modules")

    def _correction(self, cycle: Cycle, arrays: Sequence[MemoryArray]) -> None:
        kinds = [array.error_correction for array in arrays if array.use == "System Memory" and array.error_correction]
        if not kinds:
            cycle.miss("ecc_capability", Absence.UNKNOWN, "the firmware does not say whether memory errors are corrected")
            return
        if self._platform.is_virtual:
            reason = "the hypervisor's firmware claims it, and cannot know it of the real memory"
            cycle.miss("ecc_capability", Absence.NOT_APPLICABLE, reason)
            return
        # Several arrays: the weakest counts.
        kind = next((kind for kind in kinds if kind not in _CORRECTING), kinds[0])
        cycle.add("ecc_capability", float(kind in _CORRECTING), self._label("ecc", kind, {"type": kind}))

    def _module(self, cycle: Cycle, locator: str, module: MemoryModule) -> None:
        size_mib = (module.size_bytes or 0) / BYTES_PER_MIB
        cycle.add("module_size", size_mib, self._label("size", locator, {"locator": locator}))
        speed = module.configured_speed_mts or module.rated_speed_mts
        info = {
            "locator": locator,
            "type": module.memory_type,
            "speed": f"{speed} MT/s" if speed else "",
            "manufacturer": module.manufacturer,
            "part_number": module.part_number,
        }
        cycle.add("module_info", size_mib, self._label("info", locator, info))

    def _speeds(self, cycle: Cycle, populated: Sequence[tuple[str, MemoryModule]]) -> None:
        if not populated:
            cycle.miss("module_speed_downclocked", Absence.NOT_APPLICABLE, "no slot holds a module")
        untold: list[str] = []
        for locator, module in populated:
            rated, configured = module.rated_speed_mts, module.configured_speed_mts
            if not rated or not configured:
                untold.append(locator)
                continue
            labels = {"locator": locator, "rated": f"{rated} MT/s", "configured": f"{configured} MT/s"}
            slow = configured < rated * _SAME_SPEED
            cycle.add("module_speed_downclocked", float(slow), self._label("speed", locator, labels))
        if untold:
            reason = f"the firmware does not tell rated and configured speed of {', '.join(untold[:8])}"
            state = Absence.NOT_APPLICABLE if self._platform.is_virtual else Absence.UNKNOWN
            cycle.miss("module_speed_downclocked", state, reason)

    def _label(self, use: str, name: str, labels: Labels) -> Labels:
        return self._labels.setdefault((use, name), {key: text for key, text in labels.items() if text})


def _locators(slots: Sequence[MemoryModule]) -> list[str]:
    """A name for each slot, all different: some boards call the first slot of every bank ``DIMM 0``."""
    plain = Counter(slot.locator for slot in slots)
    names = [
        slot.locator if slot.locator and plain[slot.locator] == 1 else f"{slot.bank} {slot.locator}".strip() or "slot"
        for slot in slots
    ]
    total, seen = Counter(names), Counter[str]()
    for number, name in enumerate(names):
        if total[name] > 1:
            seen[name] += 1
            names[number] = f"{name} #{seen[name]}"
    return names
