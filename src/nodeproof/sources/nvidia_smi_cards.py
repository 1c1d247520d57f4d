"""From rows of ``nvidia-smi`` to readings of the catalogue: which field is which metric, in which order fields are preferred."""

from collections.abc import Callable, Mapping

from nodeproof.errors import Absence
from nodeproof.model.gpu import CardReading, CardState, GpuProcess, Key, Untold, normal_address
from nodeproof.sources.gpu_reasons import better_reason, with_usage
from nodeproof.sources.nvidia_smi import Row, Table

__all__ = ["FIELDS", "cards", "recovery_state"]

_Value = float | Untold
_REASONS = {
    "gpu_idle": "idle",
    "applications_clocks_setting": "app_clocks",
    "sw_power_cap": "sw_power_cap",
    "hw_slowdown": "hw_slowdown",
    "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "sw_thermal",
    "hw_thermal_slowdown": "hw_thermal",
    "hw_power_brake_slowdown": "hw_power_brake",
}
_COUNTED = ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
_WORDS = {
    "enabled": 1.0,
    "disabled": 0.0,
    "active": 1.0,
    "not active": 0.0,
    "yes": 1.0,
    "no": 0.0,
}
_FABRIC = {"not started": 0.0, "in progress": 1.0, "completed": 2.0}
_FABRIC_FAILED = 3.0
_RECOVERY = {
    "none": CardState.ANSWERS,
    "reset": CardState.RESET_REQUIRED,
    "gpu reset": CardState.RESET_REQUIRED,
    "reboot": CardState.RESET_REQUIRED,
    "node reboot": CardState.RESET_REQUIRED,
    "drain and reset": CardState.RESET_REQUIRED,
}
"""``gpu_recovery_action``: what the driver advises. ``Drain P2P`` leaves the card usable."""


def _numbers() -> dict[Key, tuple[str, ...]]:
    """Metrics that are a number of one field: the first field of each list that has a value counts."""
    plain: dict[Key, tuple[str, ...]] = {
        ("utilization",): ("utilization.gpu",),
        ("memory_utilization",): ("utilization.memory",),
        ("encoder_utilization",): ("utilization.encoder",),
        ("decoder_utilization",): ("utilization.decoder",),
        ("memory_detail", "total"): ("memory.total",),
        ("memory_detail", "used"): ("memory.used",),
        ("memory_detail", "free"): ("memory.free",),
        ("memory_detail", "reserved"): ("memory.reserved",),
        ("temperature",): ("temperature.gpu",),
        ("memory_temperature",): ("temperature.memory",),
        ("temperature_headroom",): ("temperature.gpu.tlimit",),
        ("power_draw",): ("power.draw", "power.draw.average", "power.draw.instant"),
        ("power_limit",): ("enforced.power.limit", "power.limit"),
        ("power_limit_default",): ("power.default_limit",),
        ("fan_speed",): ("fan.speed",),
        ("clock_frequency",): ("clocks.current.graphics",),
        ("ecc_errors",): ("ecc.errors.uncorrected.volatile.total",),
        ("retired_pages", "single_bit"): ("retired_pages.single_bit_ecc.count",),
        ("retired_pages", "double_bit"): ("retired_pages.double_bit.count",),
        ("remapped_rows", "corrected"): ("remapped_rows.correctable",),
        ("remapped_rows", "uncorrected"): ("remapped_rows.uncorrectable",),
        ("pcie_generation",): ("pcie.link.gen.current", "pcie.link.gen.gpucurrent"),
        ("pcie_generation_max",): ("pcie.link.gen.max",),
        ("pcie_width",): ("pcie.link.width.current",),
        ("pcie_width_max",): ("pcie.link.width.max",),
    }
    for domain in ("sm", "memory", "video"):
        plain["clock_domain_frequency", domain] = (f"clocks.current.{domain}",)
    for domain in ("graphics", "sm", "memory"):
        plain["clock_max_frequency", domain] = (f"clocks.max.{domain}",)
    for reason in _COUNTED:
        plain["throttle_time", _REASONS[reason]] = (f"clocks_event_reasons_counters.{reason}",)
    for kind in ("corrected", "uncorrected"):
        for life in ("volatile", "aggregate"):
            for place in ("total", "dram", "sram"):
                plain[f"ecc_{life}_errors", kind, place] = (f"ecc.errors.{kind}.{life}.{place}",)
    for spare in ("max", "high", "partial", "low", "none"):
        plain["row_remap_banks", spare] = (f"remapped_rows.histogram.{spare}",)
    return plain


def _flags() -> dict[Key, str]:
    """Metrics that are 1 or 0 for a word of one field."""
    flags: dict[Key, str] = {
        ("ecc_mode",): "ecc.mode.current",
        ("mig_mode",): "mig.mode.current",
        ("persistence_mode",): "persistence_mode",
        ("retired_pages_pending",): "retired_pages.pending",
        ("row_remap_pending",): "remapped_rows.pending",
        ("row_remap_failure",): "remapped_rows.failure",
        ("sram_threshold_exceeded",): "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
    }
    for reason, name in _REASONS.items():
        flags["throttle_reason", name] = f"clocks_event_reasons.{reason}"
    return flags


_NUMBERS: Mapping[Key, tuple[str, ...]] = _numbers()
_FLAGS: Mapping[Key, str] = _flags()
_IDENTITY = {"name": "name", "uuid": "uuid", "driver_version": "driver", "vbios_version": "vbios"}
_OTHERS = ("index", "pci.bus_id", *_IDENTITY, "pstate", "fabric.state", "fabric.status", "gpu_recovery_action")

FIELDS: tuple[str, ...] = tuple(
    dict.fromkeys((*_OTHERS, *(field for fields in _NUMBERS.values() for field in fields), *_FLAGS.values()))
)
"""Every field that is asked for, as far as this nvidia-smi knows it."""


def recovery_state(action: str) -> CardState:
    """What ``gpu_recovery_action`` says of the card; an unknown action is none."""
    return _RECOVERY.get(action.strip().lower(), CardState.ANSWERS)


def cards(table: Table, processes: Mapping[str, tuple[GpuProcess, ...]] | None = None) -> list[CardReading]:
    """Every card that the table tells of; those that only a message tells of are there, with their state and without readings."""
    found = {card.address: card for row in table.rows if (card := _card(row, processes)) is not None}
    for address, trouble in table.troubles.items():
        if address not in found:
            found[address] = CardReading(address=address, vendor="nvidia", state=trouble.state, reason=trouble.reason)
    return [found[address] for address in sorted(found)]


def _card(row: Row, processes: Mapping[str, tuple[GpuProcess, ...]] | None) -> CardReading | None:
    address = normal_address(row.text("pci.bus_id"))
    if address is None:
        return None
    values: dict[Key, float] = {}
    untold: dict[Key, Untold] = {}
    for key, read in _READERS.items():
        value = read(row)
        if isinstance(value, Untold):
            untold[key] = value
        elif value is not None:
            values[key] = value
    state, reason = row.state, row.reason
    advised = recovery_state(row.text("gpu_recovery_action"))
    if advised > state:
        state, reason = advised, f"the driver advises: {row.text('gpu_recovery_action')}"
    with_usage(values, untold)
    untold = {key: better_reason(key, absence, values) for key, absence in untold.items()}
    index = row.text("index")
    identity = {name: text for field, name in _IDENTITY.items() if (text := row.text(field))}
    return CardReading(
        address=address,
        vendor="nvidia",
        index=int(index) if index.isdigit() else None,
        state=state,
        reason=reason,
        identity=identity,
        values=values,
        untold=untold,
        processes=None if processes is None else processes.get(identity.get("uuid", ""), ()),
    )


def _of_number(fields: tuple[str, ...]) -> Callable[[Row], "_Value | None"]:
    def read(row: Row) -> _Value | None:
        absence: Untold | None = None
        for field in fields:
            value = row.number(field)
            if isinstance(value, float):
                return value
            absence = absence or value
        return absence

    return read


def _of_word(field: str, words: Mapping[str, float]) -> Callable[[Row], "_Value | None"]:
    def read(row: Row) -> _Value | None:
        cell = row.cells.get(field)
        if cell is None or isinstance(cell, Untold):
            return cell
        value = words.get(cell.lower())
        return value if value is not None else Untold(Absence.READ_ERROR, f"nvidia-smi says {cell[:60]!r}")

    return read


def _performance_state(row: Row) -> _Value | None:
    cell = row.cells.get("pstate")
    if cell is None or isinstance(cell, Untold):
        return cell
    number = cell[1:]
    if cell[:1] != "P" or not (number.isdecimal() and number.isascii()) or len(number) > 2:
        return Untold(Absence.READ_ERROR, f"nvidia-smi says {cell[:60]!r}")
    return float(number)


def _fabric(row: Row) -> _Value | None:
    value = _of_word("fabric.state", _FABRIC)(row)
    status = row.text("fabric.status").lower()
    return _FABRIC_FAILED if value == _FABRIC["completed"] and status not in {"", "success"} else value


_READERS: Mapping[Key, Callable[[Row], "_Value | None"]] = {
    **{key: _of_number(fields) for key, fields in _NUMBERS.items()},
    **{key: _of_word(field, _WORDS) for key, field in _FLAGS.items()},
    ("performance_state",): _performance_state,
    ("fabric_state",): _fabric,
}
