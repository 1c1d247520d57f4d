"""What a source says of one Ascend chip: readings by the names of the catalogue, whichever source they come from."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.errors import Absence, NoData
from nodeproof.sources.npu_cells import Reading
from nodeproof.sources.npu_smi import NpuChip, NpuProcess

__all__ = [
    "HEALTH_WORDS",
    "ChipAnswer",
    "ChipIdentity",
    "ChipKey",
    "Told",
    "error_codes",
    "health",
    "of_details",
    "of_processes",
    "of_table",
    "process_counts",
]

HEALTH_WORDS: Mapping[str, float] = {"ok": 1.0, "warning": 2.0, "alarm": 3.0, "critical": 4.0}
"""The state that a chip gives itself, as the reference numbers it (observe.md 1.6, 5.5)."""


class ChipKey(NamedTuple):
    """One chip: the card's number and the chip's number on the card. Neither is an id that programs or ``hccn_tool`` use."""

    npu_id: int
    chip_id: int


class ChipIdentity(NamedTuple):
    """Under which ids a chip is known elsewhere; empty or None where nobody tells."""

    name: str = ""
    bus_id: str = ""
    logic_id: int | None = None
    """What programs count by (``ASCEND_RT_VISIBLE_DEVICES``)."""
    phy_id: int | None = None
    """What ``hccn_tool -i`` takes."""


class Told(NamedTuple):
    """One reading of one chip."""

    name: str
    """Of the catalogue."""
    value: Reading
    labels: tuple[tuple[str, str], ...] = ()
    """Beside those that every reading of the metric has."""


class ChipAnswer(NamedTuple):
    """Everything that one source said of one chip."""

    at: Instant
    told: tuple[Told, ...]


_TABLE_NAMES = {"temperature": "temperature", "aicore": "utilization", "npu": "npu_util", "power": "power_draw"}
_DETAIL_NAMES = {
    "aicore": "utilization",
    "npu": "npu_util",
    "vector_core": "vector_core_util",
    "aicpu": "aicpu_util",
    "ctrlcpu": "ctrlcpu_util",
    "hbm_percent": "memory_usage",
    "hbm_total": "hbm_total_memory",
    "ddr_percent": "ddr_util",
    "hbm_bandwidth": "hbm_bandwidth_util",
    "ddr_bandwidth": "ddr_bandwidth_util",
    "aicore_rated_mhz": "aicore_rated_freq",
    "aicore_mhz": "aicore_freq",
    "hbm_mhz": "hbm_freq",
    "ddr_mhz": "ddr_freq",
    "hbm_temperature": "hbm_temp",
    "temperature": "temperature",
    "power": "power_draw",
} | {
    f"{memory}_{kind}{suffix}": f"{memory}_{kind}_ecc{told}"
    for memory in ("hbm", "ddr")
    for kind in ("single", "double")
    for suffix, told in (("", "_errors_total"), ("_isolated", "_isolated"))
}


def health(word: str) -> Told:
    """The chip's own verdict; a word that is not known is no verdict."""
    value = HEALTH_WORDS.get(word.lower())
    if value is None:
        reason = f"the chip gives its health as {word[:40]!r}" if word else "the chip gives no health of itself"
        return Told("health_status", NoData(Absence.UNKNOWN, reason))
    return Told("health_status", value, (("status", word.capitalize() if word.lower() != "ok" else "OK"),))


def of_table(chip: NpuChip) -> Iterator[Told]:
    """What the table of ``npu-smi info`` says of a chip."""
    readings = chip.readings
    yield health(chip.health)
    yield Told("card_drop", 0.0)
    for name, metric in _TABLE_NAMES.items():
        if name in readings:
            yield Told(metric, readings[name])
    used, total = readings.get("hbm_used"), readings.get("hbm_total")
    if used is not None and total is not None:
        yield Told("hbm_used_memory", used)
        yield Told("hbm_total_memory", total)
    if not isinstance(total, float):
        used, total = readings.get("memory_used", used), readings.get("memory_total", total)
    if isinstance(used, float) and isinstance(total, float):
        yield Told("memory_usage", round(100.0 * used / total, 2))
    elif used is not None:
        yield Told("memory_usage", used)


def of_processes(chip: NpuChip, processes: Sequence[NpuProcess] | None) -> Iterator[Told]:
    """The processes on a chip; nothing where the answer lists none of any chip."""
    if processes is None:
        return
    pids = sorted({one.pid for one in processes if (one.npu_id, one.chip_id) == (chip.npu_id, chip.chip_id)})
    yield from process_counts(pids)


def process_counts(pids: Sequence[int]) -> Iterator[Told]:
    """How many processes a chip has, and their pids."""
    yield Told("process_total", float(len(pids)))
    yield Told("process_info", float(len(pids)), (("process_pids", ",".join(map(str, pids))),) if pids else ())


def of_details(readings: Mapping[str, Reading], codes: tuple[int, ...] | None) -> Iterator[Told]:
    """What ``npu-smi info -t`` says of a chip, all its answers together."""
    for name, value in readings.items():
        if name in _DETAIL_NAMES:
            yield Told(_DETAIL_NAMES[name], value)
    if codes is not None:
        yield error_codes(codes)


def error_codes(codes: tuple[int, ...]) -> Told:
    """How many error codes a chip reports, and which."""
    return Told("error_code", float(len(codes)), (("error_codes", ",".join(f"0x{code:08x}" for code in codes)),) if codes else ())
