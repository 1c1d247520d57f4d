"""``amd-smi metric|static|process --json`` and ``rocm-smi ... --json``: layouts of ROCm 5 to 7 (AMD SMI and ROCm SMI documents).

::

    {"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 87, "unit": "%"}, "umc_activity": "N/A"}, ...}]}
    [{"gpu": 0, "power": {"socket_power": {"value": 140, "unit": "W"}}}]
    {"card0": {"Temperature (Sensor junction) (C)": "55.0", "PCI Bus": "0000:83:00.0"}, "system": {"Driver version": "6.3.6"}}

Warnings stand on standard output before, between and in place of documents; several documents may follow each other. ``N/A`` in
place of an object is an absent value.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nodeproof.errors import Absence
from nodeproof.model.gpu import CardReading, GpuProcess, Key, Untold, is_blank, normal_address
from nodeproof.sources.gpu_reasons import with_usage

__all__ = ["Json", "documents", "merged", "metric_cards", "plausible", "process_lists", "rocm_cards", "static_buses"]

_MAX_DOCUMENTS = 64
_MARKS = frozenset({65535.0, 4294967295.0, 18446744073709551615.0})
"""All bits set: what the firmware's tables hold where they hold nothing (amdgpu gpu_metrics)."""
_COLDEST_C, _HOTTEST_C = -40.0, 150.0
_NUMBER = re.compile(r"\(?\s*([+-]?\d+(?:\.\d+)?)")
_LINK = re.compile(r"([\d.]+)\s*GT/s\s+x(\d+)")
_GENERATIONS = {2.5: 1.0, 5.0: 2.0, 8.0: 3.0, 16.0: 4.0, 32.0: 5.0, 64.0: 6.0}
_ACC_REASONS = {
    "ppt": "sw_power_cap",
    "socket_thermal": "sw_thermal",
    "vr_thermal": "hw_thermal",
    "prochot": "hw_power_brake",
}
Json = Any


def documents(raw: bytes, /) -> tuple[list[Json], str]:
    """Every JSON document in the output, and the first line that is none."""
    text = raw.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    found: list[Json] = []
    note = ""
    at = 0
    while at < len(text) and len(found) < _MAX_DOCUMENTS:
        if text[at] in "[{":
            try:
                document, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                pass
            else:
                found.append(document)
                continue
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        note = note or text[at:end].strip()[:200]
        at = end + 1
    return found, note


def merged(found: list[Json]) -> dict[int, dict[str, Json]]:
    """Cards by number; what several documents tell of one card is put together."""
    cards: dict[int, dict[str, Json]] = {}
    for entry in _entries(found):
        number = entry.get("gpu")
        if isinstance(number, int) and not isinstance(number, bool):
            cards.setdefault(number, {}).update(entry)
    return cards


def _entries(found: list[Json]) -> Iterator[dict[str, Json]]:
    for document in found:
        rows = document.get("gpu_data", [document]) if isinstance(document, dict) else document
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield row


def plausible(key: Key, value: float) -> float | Untold:
    """``value``, unless it is a mark for nothing or a torn read: no chip is 2112 degrees warm."""
    if value in _MARKS or is_blank(value):
        return Untold(Absence.UNSUPPORTED, "the firmware gives a mark for 'not told' in place of a number")
    if "temperature" in key[0] and not _COLDEST_C <= value <= _HOTTEST_C:
        return Untold(Absence.UNKNOWN, f"{value:g} degrees cannot be: the firmware was read while it wrote")
    return value


def static_buses(found: list[Json]) -> dict[int, tuple[str, dict[str, str]]]:
    """PCI address and identity of each card, out of ``static --json``."""
    buses: dict[int, tuple[str, dict[str, str]]] = {}
    for number, card in merged(found).items():
        address = normal_address(str(_at(card, "bus", "bdf") or ""))
        if address is None:
            continue
        identity = {
            "name": _text(_at(card, "asic", "market_name")),
            "uuid": _text(card.get("uuid")),
            "driver": _text(_at(card, "driver", "version")),
            "vbios": _text(_at(card, "vbios", "version") or _at(card, "ifwi", "version")),
        }
        buses[number] = (address, {key: text for key, text in identity.items() if text})
    return buses


def process_lists(found: list[Json]) -> dict[int, tuple[GpuProcess, ...]]:
    """Processes of each card, out of ``process --json``."""
    lists: dict[int, tuple[GpuProcess, ...]] = {}
    for number, card in merged(found).items():
        rows = card.get("process_list")
        processes = []
        for row in rows if isinstance(rows, list) else ():
            info = row.get("process_info", row) if isinstance(row, dict) else None
            if not isinstance(info, dict) or not isinstance(info.get("pid"), int):
                continue
            used = _value(_at(info, "memory_usage", "vram_mem") or info.get("vram_mem"))
            processes.append(GpuProcess(info["pid"], _text(info.get("name"))[:200], used))
        lists[number] = tuple(processes)
    return lists


_PATHS: Mapping[Key, tuple[tuple[str, ...], ...]] = {
    ("utilization",): (("usage", "gfx_activity"),),
    ("memory_utilization",): (("usage", "umc_activity"),),
    ("decoder_utilization",): (("usage", "mm_activity"),),
    ("memory_detail", "total"): (("mem_usage", "total_vram"),),
    ("memory_detail", "used"): (("mem_usage", "used_vram"),),
    ("memory_detail", "free"): (("mem_usage", "free_vram"),),
    ("memory_detail", "shared_total"): (("mem_usage", "total_gtt"),),
    ("memory_detail", "shared_used"): (("mem_usage", "used_gtt"),),
    ("temperature",): (("temperature", "hotspot"), ("temperature", "edge")),
    ("memory_temperature",): (("temperature", "mem"),),
    ("power_draw",): (("power", "socket_power"), ("power", "current_socket_power"), ("power", "average_socket_power")),
    ("power_limit",): (("power", "socket_power_limit"), ("power", "power_limit")),
    ("energy",): (("energy", "total_energy_consumption"),),
    ("clock_frequency",): (("clock", "gfx_0", "clk"), ("clock", "gfx", "clk")),
    ("clock_domain_frequency", "memory"): (("clock", "mem_0", "clk"), ("clock", "mem", "clk")),
    ("clock_max_frequency", "graphics"): (("clock", "gfx_0", "max_clk"), ("clock", "gfx", "max_clk")),
    ("fan_speed",): (("fan", "usage"),),
    ("pcie_width",): (("pcie", "width"), ("pcie", "current_lanes")),
    ("pcie_replays",): (("pcie", "replay_count"), ("pcie", "replay_counter")),
    ("ecc_errors",): (("ecc", "total_uncorrectable_count"), ("ecc", "total_uncorrectable")),
    ("ecc_volatile_errors", "corrected", "total"): (("ecc", "total_correctable_count"), ("ecc", "total_correctable")),
    ("ecc_volatile_errors", "uncorrected", "total"): (("ecc", "total_uncorrectable_count"), ("ecc", "total_uncorrectable")),
    ("ecc_volatile_errors", "deferred", "total"): (("ecc", "total_deferred_count"), ("ecc", "total_deferred")),
}


def metric_cards(found: list[Json], buses: Mapping[int, tuple[str, dict[str, str]]]) -> list[CardReading]:
    """Readings of ``metric --json``, for cards whose address is known."""
    cards = []
    for number, card in merged(found).items():
        address, identity = buses.get(number, ("", {}))
        if not address:
            continue
        values, untold = _of_paths(card, _PATHS)
        for block, counts in _dict(card.get("ecc_blocks")).items():
            for kind, name in (("correctable_count", "corrected"), ("uncorrectable_count", "uncorrected")):
                count = _value(_dict(counts).get(kind))
                if count is not None:
                    values["ecc_volatile_errors", name, block.lower()] = count
        speed = _value(_at(card, "pcie", "speed"))
        if speed is not None and speed in _GENERATIONS:
            values["pcie_generation",] = _GENERATIONS[speed]
        for word, reason in _ACC_REASONS.items():
            status = _at(card, "throttle", f"{word}_violation_status")
            if status in {"ACTIVE", "NOT ACTIVE"}:
                values["throttle_reason", reason] = float(status == "ACTIVE")
        cards.append(_card(address, number, identity, values, untold))
    return cards


_ROCM: Mapping[Key, tuple[str, ...]] = {
    ("utilization",): ("GPU use (%)",),
    ("memory_utilization",): ("GPU Memory Read/Write Activity (%)",),
    ("temperature",): ("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"),
    ("memory_temperature",): ("Temperature (Sensor memory) (C)",),
    ("power_draw",): ("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"),
    ("power_limit",): ("Max Graphics Package Power (W)",),
    ("fan_speed",): ("Fan speed (%)", "Fan Speed (%)"),
    ("clock_frequency",): ("sclk clock speed:",),
    ("clock_domain_frequency", "memory"): ("mclk clock speed:",),
    ("pcie_replays",): ("PCIe Replay Count",),
}
_ROCM_BYTES: Mapping[Key, str] = {
    ("memory_detail", "total"): "VRAM Total Memory (B)",
    ("memory_detail", "used"): "VRAM Total Used Memory (B)",
    ("memory_detail", "shared_total"): "GTT Total Memory (B)",
    ("memory_detail", "shared_used"): "GTT Total Used Memory (B)",
}


def rocm_cards(found: list[Json]) -> list[CardReading]:
    """Readings of rocm-smi: an object a card, all values text."""
    cards = []
    for document in found:
        rows = _dict(document)
        driver = _text(_dict(rows.get("system")).get("Driver version"))
        for name, row in rows.items():
            address = normal_address(_text(_dict(row).get("PCI Bus")))
            if address is None or not name.startswith("card"):
                continue
            values, untold = _of_keys(row)
            identity = {
                "name": _text(row.get("Device Name") or row.get("Card Series") or row.get("Card series")),
                "uuid": _text(row.get("Unique ID")),
                "vbios": _text(row.get("VBIOS version")),
                "driver": driver,
            }
            number = int(name[4:]) if name[4:].isdecimal() and name.isascii() else None
            known = {key: text for key, text in identity.items() if text}
            cards.append(_card(address, number, known, values, untold))
    return cards


def _of_keys(row: dict[str, Json]) -> tuple[dict[Key, float], dict[Key, Untold]]:
    values: dict[Key, float] = {}
    untold: dict[Key, Untold] = {}
    for key, names in _ROCM.items():
        _take(key, next((found for name in names if (found := _value(row.get(name))) is not None), None), values, untold)
    for key, name in _ROCM_BYTES.items():
        size = _value(row.get(name))
        _take(key, None if size is None else size / 1048576, values, untold)
    link = _LINK.search(_text(row.get("pcie clock level")))
    if link is not None:
        values["pcie_width",] = float(link[2])
        if (generation := _GENERATIONS.get(_float(link[1]))) is not None:
            values["pcie_generation",] = generation
    return values, untold


def _of_paths(
    card: dict[str, Json], paths: Mapping[Key, tuple[tuple[str, ...], ...]]
) -> tuple[dict[Key, float], dict[Key, Untold]]:
    values: dict[Key, float] = {}
    untold: dict[Key, Untold] = {}
    for key, ways in paths.items():
        _take(key, next((found for way in ways if (found := _value(_at(card, *way))) is not None), None), values, untold)
    return values, untold


def _take(key: Key, value: float | None, values: dict[Key, float], untold: dict[Key, Untold]) -> None:
    judged = Untold(Absence.UNSUPPORTED, "this card or driver does not tell it") if value is None else plausible(key, value)
    if isinstance(judged, Untold):
        untold[key] = judged
    else:
        values[key] = judged


def _card(
    address: str, number: int | None, identity: dict[str, str], values: dict[Key, float], untold: dict[Key, Untold]
) -> CardReading:
    with_usage(values, untold)
    return CardReading(address=address, vendor="amd", index=number, identity=identity, values=values, untold=untold)


def _at(card: Json, *way: str) -> Json:
    for name in way:
        card = _dict(card).get(name)
    return card


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) and value.strip() not in {"N/A", ""} else ""


_FACTORS: Mapping[str, Callable[[float], float]] = {
    "mW": lambda value: value / 1e3,
    "GB": lambda value: value * 1024,
    "KB": lambda value: value / 1024,
    "B": lambda value: value / 1048576,
    "GHz": lambda value: value * 1e3,
}


def _value(value: Json) -> float | None:
    """A number: bare, as text, or with its unit; in MiB, W, MHz, J, degrees and per cent."""
    unit = ""
    if isinstance(value, dict):
        unit = _text(value.get("unit"))
        value = value.get("value")
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        number = float(value) if abs(value) < 1e30 else float("inf")
    else:
        found = _NUMBER.match(_text(value))
        if found is None:
            return None
        number = _float(found[1])
    if number - number != 0:
        return None
    return _FACTORS[unit](number) if unit in _FACTORS else number


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
