"""What the numbers of Huawei's ``libdcmi.so`` mean: units, selectors, codes that stand for an absence.

Each value comes with the library's return code. 0 is well; -8255 means that this card does not have it, -8012 that the chip is
not ready. Power is in 0.1 W and voltage in 0.01 V; the voltage registers of the low-power part have no documented unit and are
believed only where they can be millivolts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nodeproof.errors import Absence, NoData
from nodeproof.sources.npu_cells import Reading, believable

__all__ = ["LOST_CODES", "DcmiValue", "Raw", "absence", "is_deep", "processes", "values"]

LOST_CODES = frozenset({-8008, -8012})
"""The chip does not exist, or is not ready: it was there, or it would not have been asked."""

_CODES: Mapping[int, tuple[Absence, str]] = {
    -8002: (Absence.NO_PERMISSION, "the driver does not permit it to this user"),
    -8006: (Absence.READ_ERROR, "the driver timed out"),
    -8008: (Absence.READ_ERROR, "the driver says that the chip does not exist"),
    -8012: (Absence.READ_ERROR, "the driver says that the chip is not ready"),
    -8013: (Absence.UNSUPPORTED, "the driver does not tell it inside a container"),
    -8017: (Absence.UNKNOWN, "the chip is being upgraded"),
    -8020: (Absence.UNKNOWN, "the chip is in use by somebody who holds it alone"),
    -8254: (Absence.UNSUPPORTED, "this version of libdcmi.so has no such function"),
    -8255: (Absence.UNSUPPORTED, "the driver says that this card does not have it"),
}

_HEALTH = {0: (1.0, "OK"), 1: (2.0, "Warning"), 2: (3.0, "Alarm"), 3: (4.0, "Critical")}

_UTILIZATION = {
    1: "ddr_util",
    2: "utilization",
    3: "aicpu_util",
    4: "ctrlcpu_util",
    5: "ddr_bandwidth_util",
    10: "hbm_bandwidth_util",
    12: "vector_core_util",
    13: "npu_util",
}
_FREQUENCY = {1: "ddr_freq", 2: "ctrlcpu_freq", 6: "hbm_freq", 7: "aicore_freq", 9: "aicore_rated_freq", 12: "vector_core_freq"}
_SENSORS = {
    0: "cluster_temp",
    1: "peri_temp",
    2: "aicore0_temp",
    3: "aicore1_temp",
    11: "soc_max_temp",
    12: "fp_max_temp",
    13: "ndie_temp",
    14: "hbm_max_temp",
}
_LOW_POWER = {0: "aicore_voltage", 1: "hybrid_voltage", 2: "cpu_voltage", 3: "ddr_voltage"}
_MILLIVOLTS = (200, 3000)
_ECC = {0: "ddr", 2: "hbm"}
_ECC_FIELDS = {
    "single_ecc_errors_total": "single_bit_error_cnt",
    "double_ecc_errors_total": "double_bit_error_cnt",
    "single_ecc_isolated": "single_bit_isolated_pages_cnt",
    "double_ecc_isolated": "double_bit_isolated_pages_cnt",
}
_DVPP = ("vdec", "vpc", "venc", "jpege", "jpegd")
_OF_DDR = ("ddr_util", "ddr_bandwidth_util", "ddr_freq", *(f"ddr_{field}" for field in _ECC_FIELDS))


class DcmiValue(NamedTuple):
    """One reading by its name in the catalogue."""

    name: str
    value: Reading
    labels: tuple[tuple[str, str], ...] = ()


Raw = Mapping[str, Any]


def absence(code: int) -> NoData:
    """What return code ``code`` means for the value that was asked for."""
    state, reason = _CODES.get(code, (Absence.READ_ERROR, f"libdcmi.so answered {code}"))
    return NoData(state, reason)


def is_deep(raw: Raw) -> bool:
    """Whether an answer also holds what is asked for rarely."""
    return "ntc" in raw


def values(raw: Raw) -> Iterator[DcmiValue]:
    """Every reading that one answer holds; answers without its key say nothing of it."""
    yield from _state(raw)
    no_ddr = _no_ddr(raw)
    for name, value, labels in (*_plain(raw), *_memory(raw), *_errors(raw), *_rare(raw)):
        yield DcmiValue(name, no_ddr if no_ddr is not None and name in _OF_DDR else value, labels)


def processes(raw: Raw) -> list[tuple[int, int]] | NoData:
    """(pid, bytes of memory) of the processes on a chip, or why they cannot be listed."""
    code, listed = _pair(raw.get("processes"))
    if code or not isinstance(listed, Sequence):
        return absence(code)
    return [(int(one[0]), int(one[1])) for one in listed if int(one[0]) > 0]


def _pair(cell: Any) -> tuple[int, Any]:  # noqa: ANN401 - decoded JSON of our own helper
    return (int(cell[0]), cell[1]) if isinstance(cell, Sequence) and len(cell) == 2 else (-8254, None)


def _number(raw: Raw, key: str, unit: str, scale: float = 1.0) -> Reading:
    code, value = _pair(raw.get(key))
    if code or not isinstance(value, int):
        return absence(code)
    checked = believable(float(value), "count" if unit != "°C" else unit, key) if scale != 1.0 else float(value)
    return believable(round(checked * scale, 3), unit, key) if isinstance(checked, float) else checked


def _state(raw: Raw) -> Iterator[DcmiValue]:
    code, health = _pair(raw.get("health"))
    if not code and isinstance(health, int) and health in _HEALTH:
        value, word = _HEALTH[health]
        yield DcmiValue("health_status", value, (("status", word),))
        yield DcmiValue("card_drop", 0.0)
    else:
        unknown = absence(code) if code else NoData(Absence.UNKNOWN, f"the chip gives its health as {health}")
        yield DcmiValue("health_status", unknown)
        yield DcmiValue("card_drop", 1.0 if code in LOST_CODES else unknown.again())
    code, listed = _pair(raw.get("errors"))
    if code or not isinstance(listed, Sequence):
        yield DcmiValue("error_code", absence(code))
    else:
        codes = [f"0x{one:08x}" for one in dict.fromkeys(listed) if one]
        yield DcmiValue("error_code", float(len(codes)), (("error_codes", ",".join(codes)),) if codes else ())
    yield DcmiValue("driver_health", _number(raw, "driver_health", ""))


def _plain(raw: Raw) -> Iterator[DcmiValue]:
    yield DcmiValue("temperature", _number(raw, "temperature", "°C"))
    yield DcmiValue("power_draw", _number(raw, "power", "W", 0.1))
    yield DcmiValue("voltage", _number(raw, "voltage", "V", 0.01))
    for selector, name in _UTILIZATION.items():
        yield DcmiValue(name, _number(raw, f"util.{selector}", "%"))
    for selector, name in _FREQUENCY.items():
        yield DcmiValue(name, _number(raw, f"freq.{selector}", "MHz"))
    for sensor, name in _SENSORS.items():
        yield DcmiValue(name, _number(raw, f"sensor.{sensor}", "°C"))
    for sub, name in _LOW_POWER.items():
        yield DcmiValue(name, _register(raw, f"lp.{sub}"))
    yield DcmiValue("aicpu_freq", _field(raw, "aicpu", "cur_freq", "MHz"))


def _register(raw: Raw, key: str) -> Reading:
    code, value = _pair(raw.get(key))
    if code or not isinstance(value, int):
        return absence(code)
    if _MILLIVOLTS[0] <= value <= _MILLIVOLTS[1]:
        return value / 1000.0
    return NoData(Absence.UNKNOWN, f"the driver gives a register of {value:#x}, whose unit it does not tell")


def _field(raw: Raw, key: str, field: str, unit: str) -> Reading:
    code, fields = _pair(raw.get(key))
    if code or not isinstance(fields, Mapping) or not isinstance(fields.get(field), int):
        return absence(code)
    return believable(float(fields[field]), unit, f"{key} {field}")


def _no_ddr(raw: Raw) -> NoData | None:
    """That the card has no DDR memory, where the driver tells of one of size 0 or of none at all."""
    code, fields = _pair(raw.get("memory"))
    if code == -8255 or (not code and isinstance(fields, Mapping) and fields.get("memory_size") == 0):
        return NoData(Absence.NOT_APPLICABLE, "the card has no DDR memory")
    return None


def _memory(raw: Raw) -> Iterator[DcmiValue]:
    total, used = _field(raw, "hbm", "memory_size", "MB"), _field(raw, "hbm", "memory_usage", "MB")
    if total == 0.0:
        total = used = NoData(Absence.NOT_APPLICABLE, "the card has no high-bandwidth memory")
    yield DcmiValue("hbm_total_memory", total)
    yield DcmiValue("hbm_used_memory", used)
    yield DcmiValue("hbm_temp", _field(raw, "hbm", "temp", "°C"))
    if not isinstance(total, float):
        total, free = _field(raw, "memory", "memory_size", "MB"), _field(raw, "memory", "memory_available", "MB")
        used = total - free if isinstance(total, float) and isinstance(free, float) else free
    if isinstance(total, float) and isinstance(used, float) and total:
        yield DcmiValue("memory_usage", believable(round(100.0 * used / total, 2), "%", "memory_usage"))
    else:
        yield DcmiValue(
            "memory_usage", used if isinstance(used, NoData) else NoData(Absence.UNKNOWN, "the size of the memory is 0")
        )


def _errors(raw: Raw) -> Iterator[DcmiValue]:
    for number, memory in _ECC.items():
        for name, field in _ECC_FIELDS.items():
            yield DcmiValue(f"{memory}_{name}", _field(raw, f"ecc.{number}", field, "count"))


def _rare(raw: Raw) -> Iterator[DcmiValue]:
    if not is_deep(raw):
        return
    code, ntc = _pair(raw["ntc"])
    for number in range(4):
        value = believable(float(ntc[number]), "°C", f"ntc {number + 1}") if not code else absence(code)
        yield DcmiValue(f"ntc{number + 1}_temp", value)
    yield DcmiValue("acg_count", _number(raw, "acg", "count"))
    for part in _DVPP:
        yield DcmiValue(f"{part}_util", _field(raw, "dvpp", f"{part}_ratio", "%"))
    yield DcmiValue("llc_write_hit_rate", _field(raw, "llc", "wr_hit_rate", "%"))
    yield DcmiValue("llc_read_hit_rate", _field(raw, "llc", "rd_hit_rate", "%"))
    yield DcmiValue("llc_throughput", _field(raw, "llc", "throughput", "MB/s"))
    yield DcmiValue("network_health", _number(raw, "network", ""))
    yield from _fans(raw)
    listed = processes(raw)
    if isinstance(listed, NoData):
        yield DcmiValue("process_total", listed)
        yield DcmiValue("process_info", listed.again())
    else:
        pids = ",".join(str(pid) for pid in sorted({pid for pid, _ in listed}))
        yield DcmiValue("process_total", float(len(listed)))
        yield DcmiValue("process_info", float(len(listed)), (("process_pids", pids),) if pids else ())


def _fans(raw: Raw) -> Iterator[DcmiValue]:
    code, fans = _pair(raw.get("fans"))
    if code or not isinstance(fans, Sequence):
        yield DcmiValue("fan_speed", absence(code))
    elif not fans:
        yield DcmiValue("fan_speed", NoData(Absence.NOT_APPLICABLE, "the card has no fans of its own"))
    else:
        for number in range(len(fans)):
            value = _number({"fan": fans[number]}, "fan", "%")
            yield DcmiValue("fan_speed", value, (("fan", str(number)),))
