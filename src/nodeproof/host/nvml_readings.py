"""What is asked of NVML about one card, and under which name of the catalogue it goes.

Runs in the helper process (``nvml_helper``) and nowhere else: every call here may wait in the kernel for ever. Structures and
functions change with the driver; where there are several forms the newest is tried first, and the one that works is remembered.
Times come in ns, energy in mJ, power in mW, memory in bytes, traffic in KiB, PCIe throughput in KB/s (NVML API reference).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pynvml as nv

__all__ = ["DRIVER_GONE", "Asked", "CardGone", "Key", "Variants", "nv", "processes", "raise_if_gone", "read_deep", "read_fast"]

Key = tuple[str, ...]
_MIB = 1048576
_MAX_LINKS = 36
"""More than any card has (NVML_NVLINK_MAX_LINKS)."""
_UNTOLD = {
    nv.NVML_ERROR_NOT_SUPPORTED: ("unsupported", "this card or driver does not tell it"),
    nv.NVML_ERROR_FUNCTION_NOT_FOUND: ("unsupported", "this driver's NVML is too old to tell it"),
    nv.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: ("unsupported", "this driver's NVML knows no form of it that we know"),
    nv.NVML_ERROR_DEPRECATED: ("unsupported", "this driver does not tell it any more"),
    nv.NVML_ERROR_NO_PERMISSION: ("no_permission", "the driver shows it to root only"),
    nv.NVML_ERROR_NOT_FOUND: ("unknown", "the driver does not find it"),
    nv.NVML_ERROR_NO_DATA: ("unknown", "the driver has no data of it yet"),
    nv.NVML_ERROR_NOT_READY: ("unknown", "the driver is not ready to tell it"),
}
"""State and reason of a reading that was refused, by NVML's code; any other one is a read error."""
_OTHER_FORM = (nv.NVML_ERROR_FUNCTION_NOT_FOUND, nv.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nv.NVML_ERROR_DEPRECATED)
DRIVER_GONE = (
    nv.NVML_ERROR_UNINITIALIZED,
    nv.NVML_ERROR_DRIVER_NOT_LOADED,
    nv.NVML_ERROR_LIBRARY_NOT_FOUND,
    nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)
"""Only a new process can do better."""
_LOST = 3
_GONE = {nv.NVML_ERROR_GPU_IS_LOST: _LOST, nv.NVML_ERROR_RESET_REQUIRED: 2, nv.NVML_ERROR_GPU_NOT_FOUND: _LOST}

_REASONS = (
    (0x1, "idle"),
    (0x2, "app_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clocks"),
)
"""Bits of nvmlClocksEventReasons."""
_DOMAINS = ((nv.NVML_CLOCK_SM, "sm"), (nv.NVML_CLOCK_MEM, "memory"), (nv.NVML_CLOCK_VIDEO, "video"))
_MAX_DOMAINS = ((nv.NVML_CLOCK_GRAPHICS, "graphics"), (nv.NVML_CLOCK_SM, "sm"), (nv.NVML_CLOCK_MEM, "memory"))
_LIMITS = (
    (nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, "slowdown"),
    (nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, "shutdown"),
    (nv.NVML_TEMPERATURE_THRESHOLD_GPU_MAX, "operating"),
    (nv.NVML_TEMPERATURE_THRESHOLD_MEM_MAX, "memory"),
)
_THROTTLE_FIELDS: tuple[tuple[int, str], ...] = (
    (nv.NVML_FI_DEV_PERF_POLICY_POWER, "sw_power_cap"),
    (nv.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, "sync_boost"),
    (269, "sw_thermal"),
    (270, "hw_thermal"),
    (271, "hw_power_brake"),
    (nv.NVML_FI_DEV_PERF_POLICY_THERMAL, "thermal"),
)
"""Field ids of nvml.h; 269 to 271 have names in newer bindings only. ``thermal`` is what older drivers have instead."""
_ECC_KINDS = ((nv.NVML_MEMORY_ERROR_TYPE_CORRECTED, "corrected"), (nv.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, "uncorrected"))
_ECC_LIVES = ((nv.NVML_VOLATILE_ECC, "volatile"), (nv.NVML_AGGREGATE_ECC, "aggregate"))
_ECC_PLACES = ((nv.NVML_MEMORY_LOCATION_DRAM, "dram"), (nv.NVML_MEMORY_LOCATION_SRAM, "sram"))
_LINK_ERRORS = (
    (nv.NVML_NVLINK_ERROR_DL_REPLAY, "replay"),
    (nv.NVML_NVLINK_ERROR_DL_RECOVERY, "recovery"),
    (nv.NVML_NVLINK_ERROR_DL_CRC_FLIT, "crc_flit"),
    (nv.NVML_NVLINK_ERROR_DL_CRC_DATA, "crc_data"),
)
_RECOVERY_STATES = {1: 2, 2: 2, 4: 2, 6: 2, 7: 2}
"""Card state by advised recovery: resets and reboots. Of peer links (3) and of an IMEX domain (5) the card itself is well."""


class CardGone(Exception):  # noqa: N818 - it is what became of the card
    """The card is lost or must be reset: ``state`` is that of the catalogue."""

    def __init__(self, state: int, reason: str) -> None:
        self.state = state
        super().__init__(reason)


class Variants:
    """Forms of a call, newest first; which one this driver knows is found out once."""

    def __init__(self) -> None:
        self._chosen: dict[str, int] = {}

    def call(self, name: str, forms: Sequence[Callable[[], Any]]) -> Any:
        """The answer of the first form that this driver knows. Raises NVMLError."""
        first = self._chosen.get(name, 0)
        for number in range(first, len(forms)):
            try:
                answer = forms[number]()
            except nv.NVMLError as error:
                if error.value in _OTHER_FORM and number + 1 < len(forms):
                    continue
                raise
            self._chosen[name] = number
            return answer
        raise nv.NVMLError(nv.NVML_ERROR_FUNCTION_NOT_FOUND)


class Asked:
    """What one card answered."""

    def __init__(self) -> None:
        self.values: list[tuple[Key, float]] = []
        self.untold: list[tuple[Key, str, str]] = []

    def add(self, key: Key, value: float) -> None:
        """A number."""
        self.values.append((key, value))

    def ask(self, keys: Sequence[Key], call: Callable[[], Sequence[float | None]]) -> None:
        """Add what ``call`` gives, a number for each of ``keys``. Raises CardGone."""
        try:
            answers = call()
        except nv.NVMLError as error:
            raise_if_gone(error)
            state, reason = _UNTOLD.get(error.value, ("read_error", f"NVML: {error}"))
            self.untold += [(key, state, reason) for key in keys]
            return
        for key, answer in zip(keys, answers, strict=True):
            if answer is not None:
                self.add(key, float(answer))

    def one(self, key: Key, call: Callable[[], float]) -> None:
        """One number."""
        self.ask((key,), lambda: (call(),))

    def raise_if_mute(self) -> None:
        """Raise CardGone for a card that answered nothing at all, and some of it with an error: that one is not well."""
        errors = [reason for _, state, reason in self.untold if state == "read_error"]
        if errors and not self.values:
            raise CardGone(_LOST, errors[0])


def raise_if_gone(error: Any) -> None:
    """Raise CardGone for an error that is about the whole card, and the error itself when it is about the whole driver."""
    if error.value in DRIVER_GONE:
        raise error
    if error.value in _GONE:
        raise CardGone(_GONE[error.value], f"NVML: {error}") from None


def read_fast(handle: Any, asked: Asked, forms: Variants) -> int:
    """What changes from second to second; gives the card's state by the recovery that is advised. Raises CardGone."""
    asked.ask(
        (("utilization",), ("memory_utilization",)), lambda: _pair(nv.nvmlDeviceGetUtilizationRates(handle), "gpu", "memory")
    )
    asked.one(("encoder_utilization",), lambda: nv.nvmlDeviceGetEncoderUtilization(handle)[0])
    asked.one(("decoder_utilization",), lambda: nv.nvmlDeviceGetDecoderUtilization(handle)[0])
    _memory(handle, asked, forms)
    asked.one(
        ("temperature",),
        lambda: forms.call(
            "temperature",
            (
                lambda: nv.nvmlDeviceGetTemperatureV(handle, nv.NVML_TEMPERATURE_GPU),
                lambda: nv.nvmlDeviceGetTemperature(handle, nv.NVML_TEMPERATURE_GPU),
            ),
        ),
    )
    asked.one(("temperature_headroom",), lambda: nv.nvmlDeviceGetMarginTemperature(handle))
    asked.one(("power_draw",), lambda: nv.nvmlDeviceGetPowerUsage(handle) / 1e3)
    asked.one(("power_limit",), lambda: nv.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3)
    asked.one(("energy",), lambda: nv.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3)
    asked.one(("fan_speed",), lambda: nv.nvmlDeviceGetFanSpeed(handle))
    asked.one(("performance_state",), lambda: nv.nvmlDeviceGetPerformanceState(handle))
    asked.one(("clock_frequency",), lambda: nv.nvmlDeviceGetClockInfo(handle, nv.NVML_CLOCK_GRAPHICS))
    for number, domain in _DOMAINS:
        asked.one(("clock_domain_frequency", domain), partial(nv.nvmlDeviceGetClockInfo, handle, number))
    asked.ask(tuple(("throttle_reason", name) for _, name in _REASONS), lambda: _reasons(handle, forms))
    asked.one(("ecc_errors",), lambda: nv.nvmlDeviceGetTotalEccErrors(handle, _ECC_KINDS[1][0], nv.NVML_VOLATILE_ECC))
    asked.one(("ecc_mode",), lambda: nv.nvmlDeviceGetEccMode(handle)[0])
    asked.one(("mig_mode",), lambda: nv.nvmlDeviceGetMigMode(handle)[0])
    asked.one(("pcie_generation_max",), lambda: nv.nvmlDeviceGetMaxPcieLinkGeneration(handle))
    asked.one(("pcie_width_max",), lambda: nv.nvmlDeviceGetMaxPcieLinkWidth(handle))
    asked.one(("pcie_generation",), lambda: nv.nvmlDeviceGetCurrPcieLinkGeneration(handle))
    asked.one(("pcie_width",), lambda: nv.nvmlDeviceGetCurrPcieLinkWidth(handle))
    asked.one(("pcie_replays",), lambda: nv.nvmlDeviceGetPcieReplayCounter(handle))
    _fields(
        handle,
        asked,
        (
            (nv.NVML_FI_DEV_MEMORY_TEMP, ("memory_temperature",), 1.0),
            *((number, ("throttle_time", name), 1e-9) for number, name in _THROTTLE_FIELDS),
        ),
    )
    return _recovery(handle)


def read_deep(handle: Any, asked: Asked, forms: Variants) -> None:
    """What changes seldom or costs more. Raises CardGone."""
    asked.one(("power_limit_default",), lambda: nv.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1e3)
    for number, domain in _MAX_DOMAINS:
        asked.one(("clock_max_frequency", domain), partial(nv.nvmlDeviceGetMaxClockInfo, handle, number))
    for number, limit in _LIMITS:
        asked.one(("temperature_limit", limit), partial(nv.nvmlDeviceGetTemperatureThreshold, handle, number))
    # Each of the two samples for 20 ms (NVML API reference, nvmlDeviceGetPcieThroughput).
    asked.one(("pcie_throughput", "tx"), lambda: nv.nvmlDeviceGetPcieThroughput(handle, nv.NVML_PCIE_UTIL_TX_BYTES) / 1024)
    asked.one(("pcie_throughput", "rx"), lambda: nv.nvmlDeviceGetPcieThroughput(handle, nv.NVML_PCIE_UTIL_RX_BYTES) / 1024)
    asked.one(("persistence_mode",), lambda: nv.nvmlDeviceGetPersistenceMode(handle))
    bar1 = (("memory_detail", "bar1_total"), ("memory_detail", "bar1_used"))
    asked.ask(bar1, lambda: [part / _MIB for part in _pair(nv.nvmlDeviceGetBAR1MemoryInfo(handle), "bar1Total", "bar1Used")])
    _errors(handle, asked)
    _links(handle, asked)
    _fabric(handle, asked, forms)
    _mig(handle, asked, forms)


def processes(handle: Any, forms: Variants) -> list[tuple[int, float | None, bool]] | None:
    """Process, MiB it holds (None = not told), whether it only draws. None when they cannot be listed. Raises CardGone."""
    try:
        found = forms.call(
            "compute",
            (
                lambda: nv.nvmlDeviceGetComputeRunningProcesses_v3(handle),
                lambda: nv.nvmlDeviceGetComputeRunningProcesses_v2(handle),
            ),
        )
    except nv.NVMLError as error:
        raise_if_gone(error)
        return None
    return [(one.pid, None if one.usedGpuMemory is None else one.usedGpuMemory / _MIB, False) for one in found]


def _pair(answer: Any, *names: str) -> list[float]:
    return [float(getattr(answer, name)) for name in names]


def _memory(handle: Any, asked: Asked, forms: Variants) -> None:
    fields = ("total", "used", "free", "reserved")
    asked.ask(
        tuple(("memory_detail", field) for field in fields),
        lambda: forms.call(
            "memory",
            (
                lambda: [part / _MIB for part in _pair(nv.nvmlDeviceGetMemoryInfo(handle, nv.nvmlMemory_v2), *fields)],
                lambda: [*(part / _MIB for part in _pair(nv.nvmlDeviceGetMemoryInfo(handle), *fields[:3])), None],
            ),
        ),
    )


def _reasons(handle: Any, forms: Variants) -> list[float]:
    bits = forms.call(
        "reasons",
        (
            lambda: nv.nvmlDeviceGetCurrentClocksEventReasons(handle),
            lambda: nv.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        ),
    )
    return [float(bool(bits & bit)) for bit, _ in _REASONS]


def _fields(handle: Any, asked: Asked, wanted: Sequence[tuple[Any, Key, float]]) -> None:
    """Several field values in one call; each has an error of its own."""
    try:
        answers = nv.nvmlDeviceGetFieldValues(handle, [number for number, _, _ in wanted])
    except nv.NVMLError as error:
        raise_if_gone(error)
        state, reason = _UNTOLD.get(error.value, ("read_error", f"NVML: {error}"))
        asked.untold += [(key, state, reason) for _, key, _ in wanted]
        return
    for answer, (_, key, scale) in zip(answers, wanted, strict=True):
        if answer.nvmlReturn == nv.NVML_SUCCESS:
            asked.add(key, _field_value(answer) * scale)
        elif key[-1] != "thermal":  # which is only there for older drivers
            state, reason = _UNTOLD.get(answer.nvmlReturn, ("read_error", f"NVML: error {answer.nvmlReturn}"))
            asked.untold.append((key, state, reason))


def _field_value(answer: Any) -> float:
    part = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    kind = answer.valueType
    return float(getattr(answer.value, part[kind] if kind < len(part) else "ullVal"))


def _errors(handle: Any, asked: Asked) -> None:
    for kind, kind_name in _ECC_KINDS:
        for life, life_name in _ECC_LIVES:
            name = f"ecc_{life_name}_errors"
            asked.one((name, kind_name, "total"), partial(nv.nvmlDeviceGetTotalEccErrors, handle, kind, life))
            for place, place_name in _ECC_PLACES:
                asked.one(
                    (name, kind_name, place_name),
                    partial(nv.nvmlDeviceGetMemoryErrorCounter, handle, kind, life, place),
                )
    retired = (
        (nv.NVML_FI_DEV_RETIRED_SBE, ("retired_pages", "single_bit"), 1.0),
        (nv.NVML_FI_DEV_RETIRED_DBE, ("retired_pages", "double_bit"), 1.0),
        (nv.NVML_FI_DEV_RETIRED_PENDING, ("retired_pages_pending",), 1.0),
    )
    _fields(handle, asked, retired)
    rows = (("remapped_rows", "corrected"), ("remapped_rows", "uncorrected"), ("row_remap_pending",), ("row_remap_failure",))
    asked.ask(rows, lambda: list(nv.nvmlDeviceGetRemappedRows(handle)))
    spare = ("max", "high", "partial", "low", "none")
    banks = tuple(("row_remap_banks", name) for name in spare)
    asked.ask(banks, lambda: _pair(nv.nvmlDeviceGetRowRemapperHistogram(handle), *spare))
    asked.one(("sram_threshold_exceeded",), lambda: _sram(handle))


def _sram(handle: Any) -> float:
    status = nv.c_nvmlEccSramErrorStatus_v1_t()
    nv.nvmlDeviceGetSramEccErrorStatus(handle, nv.byref(status))
    return float(status.bThresholdExceeded)


def _links(handle: Any, asked: Asked) -> None:
    """States and errors of the links; ``nvlink_supported`` is a fact for the reader of this, no metric."""
    counted: list[int] = []
    try:
        answer = nv.nvmlDeviceGetFieldValues(handle, [nv.NVML_FI_DEV_NVLINK_LINK_COUNT])[0]
        if answer.nvmlReturn == nv.NVML_SUCCESS:
            counted = list(range(min(int(_field_value(answer)), _MAX_LINKS)))
    except nv.NVMLError as error:
        raise_if_gone(error)
    asked.add(("nvlink_supported",), float(len(counted)))
    for link in counted:
        asked.one(("nvlink_state", str(link)), partial(nv.nvmlDeviceGetNvLinkState, handle, link))
        for number, kind in _LINK_ERRORS:
            asked.one(
                ("nvlink_errors", str(link), kind),
                partial(nv.nvmlDeviceGetNvLinkErrorCounter, handle, link, number),
            )
    if counted:
        every = 0xFFFFFFFF  # scope of all links together
        traffic = (
            ((nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, every), ("nvlink_traffic", "tx"), 1 / 1024),
            ((nv.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, every), ("nvlink_traffic", "rx"), 1 / 1024),
        )
        _fields(handle, asked, traffic)


def _fabric(handle: Any, asked: Asked, forms: Variants) -> None:
    """0 not begun, 1 going on, 2 done, 3 failed; a card of no fabric is not supported."""

    def ask(struct: Any) -> float:
        info = struct()
        nv.nvmlDeviceGetGpuFabricInfoV(handle, nv.byref(info))
        if info.state == nv.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
            raise nv.NVMLError(nv.NVML_ERROR_NOT_SUPPORTED)
        done = info.state == nv.NVML_GPU_FABRIC_STATE_COMPLETED
        return 3.0 if done and info.status != nv.NVML_SUCCESS else float(info.state - 1)

    structs = [getattr(nv, name) for name in ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t") if hasattr(nv, name)]
    asked.one(
        ("fabric_state",),
        lambda: forms.call("fabric", [partial(ask, struct) for struct in structs]),
    )


def _mig(handle: Any, asked: Asked, forms: Variants) -> None:
    """Instances, where the card is cut into any."""
    try:
        slots = nv.nvmlDeviceGetMaxMigDeviceCount(handle) if nv.nvmlDeviceGetMigMode(handle)[0] else 0
    except nv.NVMLError as error:
        raise_if_gone(error)
        return
    found = 0
    for number in range(slots):
        try:
            instance = nv.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except nv.NVMLError as error:
            raise_if_gone(error)
            continue  # a slot without an instance
        found += 1
        keys = tuple(("mig_memory", str(number), field) for field in ("total", "used"))
        asked.ask(keys, partial(_mig_memory, instance, forms))
    if slots:
        asked.add(("mig_instances",), float(found))


def _mig_memory(instance: Any, forms: Variants) -> list[float]:
    info = forms.call(
        "memory of an instance",
        (
            lambda: nv.nvmlDeviceGetMemoryInfo(instance, nv.nvmlMemory_v2),
            lambda: nv.nvmlDeviceGetMemoryInfo(instance),
        ),
    )
    return [part / _MIB for part in _pair(info, "total", "used")]


def _recovery(handle: Any) -> int:
    """Card state by the recovery that the driver advises; 0 where it advises none, or is too old to."""
    try:
        answer = nv.nvmlDeviceGetFieldValues(handle, [230])[0]  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, newer bindings
    except nv.NVMLError as error:
        raise_if_gone(error)
        return 0
    return _RECOVERY_STATES.get(int(_field_value(answer)), 0) if answer.nvmlReturn == nv.NVML_SUCCESS else 0
