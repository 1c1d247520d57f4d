"""NVIDIA and AMD cards for the box under a run, from the same sources as the daemon's.

What slows a card is told by its driver: reasons that hold now, and the time that each has held. Where a driver counts only heat
altogether (NVIDIA's before 2023), that stands as the software's part, because it cannot be told apart. A card's power is that of
its whole board as it measures itself: the rail is named ``gpu_rail``. A look costs no program while NVML or the driver's files
answer.
"""

from collections.abc import Iterator, Mapping

from nodeproof.clock import Instant
from nodeproof.collectors.services.gpu_fleet import FleetCard, GpuFleet, VendorReading
from nodeproof.collectors.services.nvidia_smi import NvidiaSmi
from nodeproof.errors import Absence, NoData
from nodeproof.hardware.providers import Survey
from nodeproof.host.machine import Machine
from nodeproof.model.gpu import CardState, Key
from nodeproof.model.hardware import ComputeApp, DeviceState, Field, ThrottleActive, ThrottleCounters

__all__ = ["GPU_RAIL", "GpuProvider", "device_name"]

GPU_RAIL = "gpu_rail"
_US = 1e6
_FIRST_S = 10.0
"""So long the first look waits for nvidia-smi, where NVML does not answer."""
_HEALTH = {CardState.SILENT: "silent", CardState.RESET_REQUIRED: "reset required", CardState.LOST: "lost"}
_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "sw_power_cap_us": ("sw_power_cap",),
    "sw_thermal_us": ("sw_thermal", "thermal"),
    "hw_thermal_us": ("hw_thermal",),
    "hw_power_brake_us": ("hw_power_brake",),
    "sync_boost_us": ("sync_boost",),
}
"""Counters of the contract by reason; the first that is told counts."""
_FLAGS = ("sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake")
_READINGS: tuple[tuple[Key, str], ...] = (
    (("temperature",), "°C"),
    (("clock_domain_frequency", "sm"), "MHz"),
    (("clock_frequency",), "MHz"),
    (("utilization",), "%"),
    (("power_draw",), "W"),
    (("power_limit",), "W"),
    (("ecc_errors",), ""),
    (("pcie_generation",), ""),
    (("pcie_width",), ""),
)


class GpuProvider:
    """All NVIDIA and AMD cards of this node."""

    name = "gpu"

    def __init__(self, machine: Machine) -> None:
        self._fleet = machine.shared(GpuFleet)
        self._smi = machine.shared(NvidiaSmi)
        self._clock = machine.clock
        self._waited = False

    def read(self) -> Survey:
        """All cards now. Raises NoData when there are none, or they cannot be asked."""
        vendors = self._fleet.read().vendors
        if not vendors:
            raise NoData(Absence.NOT_APPLICABLE, "there is no NVIDIA or AMD GPU on the PCI bus")
        if not self._waited and any(vendor.absence is not None for vendor in vendors):
            self._waited = True
            self._smi.wait(_FIRST_S)
            vendors = self._fleet.read().vendors
        silent = next((vendor.absence for vendor in vendors if vendor.absence is not None), None)
        if silent is not None:
            raise silent
        now = self._clock.now()
        cards = [(vendor, one) for vendor in vendors for one in vendor.cards]
        apps, absence = _apps(cards)
        source = ", ".join(dict.fromkeys(one.source for _, one in cards if one.source)) or "gpu"
        return Survey(
            tuple(_state(vendor, one) for vendor, one in cards),
            apps,
            source,
            absence,
            tuple(field for _, one in cards for field in _fields(one, now)),
        )


def device_name(one: FleetCard) -> str:
    """``gpu0``, ``gpuamd0``."""
    return f"gpu{one.gpu_id}"


def _state(vendor: VendorReading, one: FleetCard) -> DeviceState:
    card, values = one.card, one.card.values
    busy, power = values.get(("utilization",)), values.get(("power_draw",))
    corrected = values.get(("ecc_volatile_errors", "corrected", "total"))
    persistence = values.get(("persistence_mode",))
    return DeviceState(
        device_name(one),
        vendor={"nvidia": "NVIDIA", "amd": "AMD"}[card.vendor],
        name=card.identity.get("name"),
        driver=card.identity.get("driver"),
        temp_c=values.get(("temperature",)),
        critical_c=values.get(("temperature_limit", "slowdown")),
        clock_mhz=_first(values, ("clock_domain_frequency", "sm"), ("clock_frequency",)),
        clock_max_mhz=_first(values, ("clock_max_frequency", "sm"), ("clock_max_frequency", "graphics")),
        throttle_counters=ThrottleCounters(**{name: _microseconds(values, reasons) for name, reasons in _COUNTERS.items()}),
        throttle_active=ThrottleActive(**{name: _flag(values, name) for name in _FLAGS}),
        uncorrected_errors=_whole(values.get(("ecc_errors",))),
        corrected_errors=_whole(corrected),
        persistence_mode=None if persistence is None else bool(persistence),
        busy_share=None if busy is None else busy / 100.0,
        power_w=power,
        power_rail=GPU_RAIL if power is not None else "",
        power_at_s=vendor.at.mono_s if vendor.at is not None and power is not None else None,
        health=_HEALTH.get(card.state, "OK"),
    )


def _apps(cards: list[tuple[VendorReading, FleetCard]]) -> tuple[tuple[ComputeApp, ...] | None, NoData | None]:
    """Processes that compute, card by card; why they cannot be listed, when one card's cannot."""
    apps: list[ComputeApp] = []
    for _, one in cards:
        processes = one.card.processes
        if processes is None and one.card.state is CardState.ANSWERS:
            return None, NoData(Absence.UNKNOWN, f"{one.source} does not list the processes on {device_name(one)}")
        apps += [
            ComputeApp(process.pid, process.name, _whole(process.used_mib), device_name(one))
            for process in processes or ()
            if not process.graphics
        ]
    return tuple(apps), None


def _fields(one: FleetCard, now: Instant) -> Iterator[Field]:
    """Every reading with its value or its reason."""
    device, source = device_name(one), one.source or "PCI bus"
    for key, unit in _READINGS:
        value = one.card.values.get(key)
        name = "_".join(key)
        if value is not None:
            yield Field(device, name, source, now.wall_s, value=value, unit=unit)
            continue
        why = one.card.untold.get(key)
        state = (
            why.state if why is not None else Absence.UNSUPPORTED if one.card.state is CardState.ANSWERS else Absence.READ_ERROR
        )
        reason = why.reason if why is not None else one.card.reason or f"{source} does not tell it"
        yield Field(device, name, source, now.wall_s, state=state, reason=reason)


def _first(values: Mapping[Key, float], *keys: Key) -> float | None:
    return next((values[key] for key in keys if key in values), None)


def _microseconds(values: Mapping[Key, float], reasons: tuple[str, ...]) -> int | None:
    seconds = _first(values, *(("throttle_time", reason) for reason in reasons))
    return None if seconds is None else round(seconds * _US)


def _flag(values: Mapping[Key, float], reason: str) -> bool | None:
    value = values.get(("throttle_reason", reason))
    return None if value is None else bool(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
