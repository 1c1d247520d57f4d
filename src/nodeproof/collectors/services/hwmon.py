"""Sensors of the kernel's hwmon class: temperatures, fans, voltages, currents, power. Shared by cpu, disk and chassis.

Each chip is a slow source of its own: a sensor behind a wedged bus or drive blocks its reader in the kernel, and then only that
chip goes stale. Which sensors a chip has, their labels and limits are read when it first appears.
"""

from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.sources import hwmon

__all__ = ["Chip", "Hwmon", "Sensor"]

_ROOT = "/sys/class/hwmon"
_INTERVAL_S = 5.0
_DEADLINE_S = 10.0
_INPUTS = ("input", "average")
"""Files that hold a reading, best first: power meters that average by themselves have no ``input``."""
_LIMITS = ("min", "max", "crit", "cap")


class Sensor(NamedTuple):
    """One sensor of a chip, now."""

    kind: str
    """``temp``, ``fan``, ``in``, ``curr``, ``power`` or ``energy``."""
    key: str
    """Name in the kernel: ``temp1``."""
    label: str
    """What the driver or the board calls it (``Package id 0``, ``Tctl``); the key where nobody does."""
    value: float | None
    """In the unit of ``nodeproof.sources.hwmon.UNITS``; None = see ``absence``."""
    limits: dict[str, float]
    """``min``, ``max``, ``crit``, ``cap`` as far as the driver states them, in the same unit."""
    alarm: bool | None
    """The chip's own judgement; None when it has none."""
    absence: NoData | None


class Chip(NamedTuple):
    """One chip."""

    folder: str
    """``hwmon3``; may change from boot to boot."""
    name: str
    """Driver's name for the kind of chip: ``coretemp``, ``k10temp``, ``nvme``."""
    device: str
    """Name of the device it belongs to (``coretemp.0``, ``nvme0``, ``0000:00:18.3``); empty for one without."""
    sensors: tuple[Sensor, ...]
    absence: NoData | None
    """Why there are no sensors: not read yet, or the chip does not answer."""
    at: Instant | None
    """When the sensors were read."""


class _Layout(NamedTuple):
    """Files of one sensor."""

    kind: str
    key: str
    label: str
    input_path: str
    fault_path: str
    alarm_path: str
    limits: dict[str, float]


class _Chip:
    """One chip and its slow source."""

    def __init__(self, machine: Machine, folder: str, name: str, device: str) -> None:
        self.folder = folder
        self.name = name
        self.device = device
        self._files = machine.files
        self._layout: list[_Layout] | None = None
        self.source = machine.background(f"{_ROOT}/{folder} ({name})", self._read, interval_s=_INTERVAL_S, deadline_s=_DEADLINE_S)

    def now(self) -> Chip:
        """What is known now."""
        try:
            answer = self.source.latest()
        except NoData as absence:
            return Chip(self.folder, self.name, self.device, (), absence, None)
        return Chip(self.folder, self.name, self.device, answer.value, None, answer.at)

    def _read(self) -> tuple[Sensor, ...]:
        if self._layout is None:
            self._layout = _layout(self._files, f"{_ROOT}/{self.folder}")
        return tuple(self._sensor(entry) for entry in self._layout)

    def _sensor(self, entry: _Layout) -> Sensor:
        value: float | None = None
        absence: NoData | None = None
        try:
            value = hwmon.parse_value(self._files.read(entry.input_path), entry.kind, entry.input_path)
            if self._flag(entry.fault_path):
                value, absence = None, NoData(Absence.READ_ERROR, f"{entry.fault_path}: the chip says this sensor is broken")
        except NoData as error:
            # A sensor that exists and does not answer (ENXIO, ENODATA: nothing connected) is no missing driver.
            state = Absence.UNKNOWN if error.state is Absence.UNSUPPORTED else error.state
            absence = NoData(state, error.reason, remedy=error.remedy)
        except ParseError as error:
            absence = NoData(Absence.READ_ERROR, str(error))
        return Sensor(entry.kind, entry.key, entry.label, value, entry.limits, self._flag(entry.alarm_path), absence)

    def _flag(self, path: str) -> bool | None:
        if not path:
            return None
        try:
            return hwmon.parse_flag(self._files.read(path))
        except NoData:
            return None


def _layout(files: FileTree, folder: str) -> list[_Layout]:
    items: dict[tuple[str, int], set[str]] = {}
    for name in files.names(folder):
        attribute = hwmon.attribute(name)
        if attribute is not None:
            items.setdefault((attribute.kind, attribute.number), set()).add(attribute.item)
    layout: list[_Layout] = []
    for (kind, number), present in sorted(items.items()):
        base = f"{folder}/{kind}{number}"
        reading = next((item for item in _INPUTS if item in present), None)
        if reading is None:
            continue
        alarm = next((item for item in ("crit_alarm", "alarm") if item in present), "")
        layout.append(
            _Layout(
                kind,
                f"{kind}{number}",
                _label(files, base, present) or f"{kind}{number}",
                f"{base}_{reading}",
                f"{base}_fault" if "fault" in present else "",
                f"{base}_{alarm}" if alarm else "",
                _limits(files, base, kind, present),
            )
        )
    return layout


def _label(files: FileTree, base: str, present: set[str]) -> str:
    try:
        return files.read_text(f"{base}_label") if "label" in present else ""
    except NoData:
        return ""


def _limits(files: FileTree, base: str, kind: str, present: set[str]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for item in _LIMITS:
        if item not in present:
            continue
        try:
            limits[item] = hwmon.parse_value(files.read(f"{base}_{item}"), kind, f"{base}_{item}")
        except (NoData, ParseError):
            continue
    return limits


class Hwmon:
    """All chips of this machine; get it by ``machine.shared(Hwmon)``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._files = machine.files
        self._chips: dict[tuple[str, str, str], _Chip] = {}

    def chips(self) -> list[Chip]:
        """Every chip with its newest readings (at most a few seconds old); starts new readings when due, never blocks.

        Raises NoData when the kernel shows no chip at all.
        """
        found: dict[tuple[str, str, str], _Chip] = {}
        for folder in self._files.names(_ROOT):
            identity = (folder, *self._identity(folder))
            found[identity] = self._chips.get(identity) or _Chip(self._machine, *identity)
        for identity, chip in self._chips.items():
            if identity not in found:
                self._machine.retire(chip.source)
        self._chips = found
        if not found:
            raise NoData(Absence.UNSUPPORTED, f"{_ROOT} is empty: no sensor driver is loaded")
        return [chip.now() for chip in found.values()]

    def _identity(self, folder: str) -> tuple[str, str]:
        try:
            name = self._files.read_text(f"{_ROOT}/{folder}/name")
        except NoData:
            name = folder
        try:
            device = self._files.link_target(f"{_ROOT}/{folder}/device").rstrip("/").rpartition("/")[2]
        except NoData:
            device = ""
        return name, device
