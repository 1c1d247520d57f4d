"""AMD cards: from files of the amdgpu driver in every cycle, and every two minutes from amd-smi or rocm-smi what those lack.

The tools are Python programs that take about a second of processor time: they are asked seldom, and nobody waits for them.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.background import Answer
from nodeproof.host.commands import absence_of_command
from nodeproof.host.machine import Machine
from nodeproof.model.gpu import CardReading, GpuProcess, Key, Untold
from nodeproof.sources.amdgpu_sysfs import highest_clock_mhz, parse_ras_counts
from nodeproof.sources.gpu_reasons import with_usage

if TYPE_CHECKING:
    from nodeproof.sources import amd_smi

__all__ = ["ROCM_LINE", "AmdFiles", "AmdTools"]

_ROOT = "/sys/bus/pci/devices"
_TOOL_INTERVAL_S = 120.0
_TOOL_DEADLINE_S = 30.0
_PACKAGE = "amd-smi-lib (ROCm)"
ROCM_LINE = (
    "rocm-smi",
    "--showproductname",
    "--showuniqueid",
    "--showvbios",
    "--showdriverversion",
    "--showbus",
    "--showtemp",
    "--showuse",
    "--showmemuse",
    "--showmeminfo",
    "vram",
    "gtt",
    "--showpower",
    "--showmaxpower",
    "--showclocks",
    "--showfan",
    "--showreplaycount",
    "--json",
)
"""How rocm-smi is asked."""
_MIB = 1048576
_PLAIN: tuple[tuple[Key, str, float], ...] = (
    (("utilization",), "gpu_busy_percent", 1.0),
    (("memory_utilization",), "mem_busy_percent", 1.0),
    (("memory_detail", "total"), "mem_info_vram_total", 1 / _MIB),
    (("memory_detail", "used"), "mem_info_vram_used", 1 / _MIB),
    (("memory_detail", "shared_total"), "mem_info_gtt_total", 1 / _MIB),
    (("memory_detail", "shared_used"), "mem_info_gtt_used", 1 / _MIB),
    (("pcie_replays",), "pcie_replay_count", 1.0),
)
"""One number a file."""
_SENSORS: tuple[tuple[Key, str, float], ...] = (
    (("power_limit",), "power1_cap", 1e-6),
    (("power_limit_default",), "power1_cap_default", 1e-6),
    (("clock_frequency",), "freq1_input", 1e-6),
    (("clock_domain_frequency", "memory"), "freq2_input", 1e-6),
)
_LIMITS = (("crit", "slowdown"), ("emergency", "shutdown"))
_WHOLE = Untold(Absence.NOT_APPLICABLE, "this card cannot be divided")
_RAS_BLOCK = re.compile(r"([a-z0-9_]+)_err_count")


class AmdFiles:
    """The cards as their driver's files show them; get it by ``machine.shared(AmdFiles)``."""

    name = "amdgpu"

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._clock = machine.clock

    def cards(self, addresses: Sequence[str], *, deep: bool) -> Answer[list[CardReading]]:  # noqa: ARG002 - files cost next to nothing
        """These cards now. Raises NoData when none of them has files of the driver."""
        at = self._clock.now()
        found = [card for number, address in enumerate(addresses) if (card := self._card(address, number)) is not None]
        if not found:
            raise NoData(
                Absence.READ_ERROR, "no card has files of the amdgpu driver", remedy="modprobe amdgpu; journalctl -k -g amdgpu"
            )
        return Answer(found, at)

    def _card(self, address: str, number: int) -> CardReading | None:
        folder = f"{_ROOT}/{address}"
        if not self._files.exists(f"{folder}/mem_info_vram_total"):
            return None
        values: dict[Key, float] = {}
        untold: dict[Key, Untold] = {}
        for key, name, scale in _PLAIN:
            self._number(f"{folder}/{name}", key, scale, values, untold)
        self._sensors(folder, values, untold)
        self._ras(folder, values, untold)
        self._clocks(folder, values)
        compute, memory = (self._text(folder, f"current_{what}_partition") for what in ("compute", "memory"))
        if compute or memory:
            values["partition_info", compute, memory] = 1.0
        else:
            untold["partition_info",] = _WHOLE
        identity = {
            key: text for key, name in (("vbios", "vbios_version"), ("uuid", "unique_id")) if (text := self._text(folder, name))
        }
        identity["name"] = self._text(folder, "product_name") or "AMD GPU"
        with_usage(values, untold)
        return CardReading(address=address, vendor="amd", index=number, identity=identity, values=values, untold=untold)

    def _sensors(self, folder: str, values: dict[Key, float], untold: dict[Key, Untold]) -> None:
        try:
            chip = f"{folder}/hwmon/{self._files.names(f'{folder}/hwmon')[0]}"
            names = self._files.names(chip)
        except (NoData, IndexError):
            return
        for key, name, scale in _SENSORS:
            if name in names:
                self._number(f"{chip}/{name}", key, scale, values, untold)
        power = next((name for name in ("power1_input", "power1_average") if name in names), None)
        if power is not None:
            self._number(f"{chip}/{power}", ("power_draw",), 1e-6, values, untold)
        self._temperatures(chip, names, values, untold)
        if "pwm1" in names:
            self._number(f"{chip}/pwm1", ("fan_speed",), 100 / 255, values, untold)
        else:
            untold["fan_speed",] = Untold(Absence.NOT_APPLICABLE, "this card has no fan of its own")

    def _temperatures(self, chip: str, names: list[str], values: dict[Key, float], untold: dict[Key, Untold]) -> None:
        """The hottest spot where the card tells it, else its edge; the memory; the limits of whichever it is."""
        labels = {name[:-6]: self._text(chip, name) for name in names if name.startswith("temp") and name.endswith("_label")}
        by_label = {label: sensor for sensor, label in labels.items()}
        main = by_label.get("junction") or by_label.get("edge")
        for sensor, key in ((main, ("temperature",)), (by_label.get("mem"), ("memory_temperature",))):
            if sensor is not None:
                self._number(f"{chip}/{sensor}_input", key, 1e-3, values, untold)
        for suffix, limit in _LIMITS:
            if main is not None and f"{main}_{suffix}" in names:
                self._number(f"{chip}/{main}_{suffix}", ("temperature_limit", limit), 1e-3, values, untold)

    def _ras(self, folder: str, values: dict[Key, float], untold: dict[Key, Untold]) -> None:
        """Errors of each block, and their sums; a card without the folder has no error correction, or shows it to root only."""
        try:
            names = self._files.names(f"{folder}/ras")
        except NoData:
            return
        sums: dict[str, int] = {}
        for name in names:
            block = _RAS_BLOCK.fullmatch(name)
            if block is None:
                continue
            try:
                counts = parse_ras_counts(self._files.read(f"{folder}/ras/{name}"))
            except NoData as absence:
                # A sum without the block that cannot be read would say that it is sound.
                untold["ecc_errors",] = untold["ecc_volatile_errors", "uncorrected", block[1]] = Untold(
                    absence.state, absence.reason
                )
                continue
            for kind, count in counts.items():
                values["ecc_volatile_errors", kind, block[1]] = float(count)
                sums[kind] = sums.get(kind, 0) + count
        if "uncorrected" in sums:
            values["ecc_mode",] = 1.0
        if ("ecc_errors",) in untold:
            return
        for kind, count in sums.items():
            values["ecc_volatile_errors", kind, "total"] = float(count)
        if "uncorrected" in sums:
            values["ecc_errors",] = float(sums["uncorrected"])

    def _clocks(self, folder: str, values: dict[Key, float]) -> None:
        for name, domain in (("pp_dpm_sclk", "graphics"), ("pp_dpm_mclk", "memory")):
            try:
                clock = highest_clock_mhz(self._files.read(f"{folder}/{name}"))
            except NoData:
                continue
            if clock is not None:
                values["clock_max_frequency", domain] = clock

    def _number(self, path: str, key: Key, scale: float, values: dict[Key, float], untold: dict[Key, Untold]) -> None:
        from nodeproof.sources import amd_smi  # noqa: PLC0415 - the same

        try:
            value = amd_smi.plausible(key, self._files.read_int(path) * scale)
        except NoData as absence:
            untold[key] = Untold(absence.state, absence.reason)
            return
        if isinstance(value, Untold):
            untold[key] = value
        else:
            values[key] = round(value, 3)

    def _text(self, folder: str, name: str) -> str:
        try:
            return self._files.read_text(f"{folder}/{name}")[:200]
        except NoData:
            return ""


class AmdTools:
    """The cards as amd-smi shows them, or rocm-smi where there is none; get it by ``machine.shared(AmdTools)``."""

    name = "amd-smi"

    def __init__(self, machine: Machine) -> None:
        self._commands = machine.commands
        self._buses: dict[int, tuple[str, dict[str, str]]] = {}
        self._source = machine.background("amd-smi", self._read, interval_s=_TOOL_INTERVAL_S, deadline_s=4 * _TOOL_DEADLINE_S)

    def cards(self, addresses: Sequence[str], *, deep: bool) -> Answer[list[CardReading]]:  # noqa: ARG002 - it tells all of all
        """All cards as last read. Raises NoData."""
        return self._source.latest()

    def _read(self) -> list[CardReading]:
        from nodeproof.sources import amd_smi  # noqa: PLC0415 - half a megabyte that only nodes with such cards need

        try:
            return self._amd_smi()
        except CommandError as error:
            if error.failure is not CommandFailure.NOT_FOUND:
                raise absence_of_command(error, package=_PACKAGE) from None
        try:
            found, note = amd_smi.documents(self._commands.run(ROCM_LINE, deadline_s=_TOOL_DEADLINE_S).stdout)
        except CommandError as error:
            raise absence_of_command(error, package=_PACKAGE) from None
        return _some(amd_smi.rocm_cards(found), "rocm-smi", note)

    def _amd_smi(self) -> list[CardReading]:
        from nodeproof.sources import amd_smi  # noqa: PLC0415 - the same

        if not self._buses:
            found, note = self._documents("static")
            self._buses = amd_smi.static_buses(found)
            if not self._buses:
                raise NoData(Absence.READ_ERROR, f"amd-smi static: {note or 'no card in its answer'}")
        found, note = self._documents("metric")
        cards = _some(amd_smi.metric_cards(found, self._buses), "amd-smi metric", note)
        processes = self._processes()
        if processes is None:
            return cards
        return [structs.replace(card, processes=processes.get(card.index or 0, ())) for card in cards]

    def _processes(self) -> dict[int, tuple[GpuProcess, ...]] | None:
        from nodeproof.sources import amd_smi  # noqa: PLC0415 - the same

        try:
            found, _ = self._documents("process")
        except CommandError:
            return None
        return amd_smi.process_lists(found) if found else None

    def _documents(self, command: str) -> "tuple[list[amd_smi.Json], str]":
        from nodeproof.sources import amd_smi  # noqa: PLC0415 - the same

        return amd_smi.documents(self._commands.run(("amd-smi", command, "--json"), deadline_s=_TOOL_DEADLINE_S).stdout)


def _some(cards: list[CardReading], tool: str, note: str) -> list[CardReading]:
    if not cards:
        raise NoData(Absence.READ_ERROR, f"{tool}: {note or 'no card in its answer'}")
    return cards
