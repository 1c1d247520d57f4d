"""The helper process that calls Huawei's ``libdcmi.so``, so that nobody else can be hung by it.

A line of JSON on standard input asks; each chip has a thread of its own, so that one that hangs in its driver holds up no other;
each answer is a line on standard output, written when it is there. Whoever asked kills this process when it is late, and it ends
by itself when its input does. Values are raw: return code, then what the library gave; ``sources.dcmi`` knows what they mean.

::

    > {"look": 1, "list": true}
    < {"look": 1, "chips": [[0, 0, {"name": "910B3", "bus": "0000:c1:00.0", "logic": 0, "phy": 0}]], "driver": "24.1.rc3"}
    > {"look": 2, "chips": [[0, 0]], "deep": false}
    < {"look": 2, "chip": [0, 0], "values": {"health": [0, 0], "power": [0, 942], "freq.7": [-8255, null]}}
    < {"failed": -8005, "reason": "dcmi_init"}                                           and the process ends
"""

import ctypes
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_uint, c_void_p
from typing import Any

from nodeproof.host.dcmi_library import (
    SLACK_BYTES,
    AicpuInfo,
    ChipInfoV2,
    DvppRatio,
    EccInfo,
    HbmInfo,
    Library,
    LlcPerf,
    MemoryInfoV3,
    PcieInfo,
    PcieInfoAll,
    ProcMemInfo,
    SensorInfo,
)

__all__ = ["Worker", "deep", "listing", "main", "quick", "say"]

_MOST_CARDS = 64
_MOST_CODES = 128
_MOST_PROCESSES = 256
_LIBRARIES = ("/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so", "libdcmi.so")

_UTILIZATION = (1, 2, 3, 4, 5, 10, 12, 13)
_FREQUENCY = (1, 2, 6, 7, 9, 12)
_SENSORS = (0, 1, 2, 3, 11, 12, 13, 14)
_NTC = 10
_ECC = (0, 2)
_LOW_POWER = 8
_LOW_POWER_SUB = (0, 1, 2, 3)
_ACG = 4


def quick(library: Library, card: int, device: int) -> dict[str, Any]:
    """What is read at each look."""
    chip = (card, device)
    found = {
        "health": library.number(c_uint, "dcmi_get_device_health", *chip),
        "errors": _error_codes(library, chip),
        "temperature": library.number(c_int, "dcmi_get_device_temperature", *chip),
        "power": library.number(c_int, "dcmi_get_device_power_info", *chip),
        "voltage": library.number(c_uint, "dcmi_get_device_voltage", *chip),
        "driver_health": library.number(c_uint, "dcmi_get_driver_health"),
        "hbm": library.structure(HbmInfo, "dcmi_get_device_hbm_info", *chip),
        "memory": library.structure(MemoryInfoV3, "dcmi_get_device_memory_info_v3", *chip),
        "aicpu": library.structure(AicpuInfo, "dcmi_get_device_aicpu_info", *chip),
    }
    for selector in _UTILIZATION:
        found[f"util.{selector}"] = library.number(c_uint, "dcmi_get_device_utilization_rate", *chip, selector)
    for selector in _FREQUENCY:
        found[f"freq.{selector}"] = library.number(c_uint, "dcmi_get_device_frequency", *chip, selector)
    for sensor in _SENSORS:
        code, value = library.structure(SensorInfo, "dcmi_get_device_sensor_info", *chip, sensor)
        found[f"sensor.{sensor}"] = [code, None if value is None else value["iint"]]
    for memory in _ECC:
        found[f"ecc.{memory}"] = library.structure(EccInfo, "dcmi_get_device_ecc_info", *chip, memory)
    for sub in _LOW_POWER_SUB:
        found[f"lp.{sub}"] = _low_power(library, chip, sub)
    return found


def deep(library: Library, card: int, device: int) -> dict[str, Any]:
    """What is read more rarely."""
    chip = (card, device)
    code, value = library.structure(SensorInfo, "dcmi_get_device_sensor_info", *chip, _NTC)
    return {
        "ntc": [code, None if value is None else value["ntc_tmp"]],
        "acg": _low_power(library, chip, _ACG),
        "fans": _fans(library, chip),
        "dvpp": library.structure(DvppRatio, "dcmi_get_device_dvpp_ratio_info", *chip),
        "llc": library.structure(LlcPerf, "dcmi_get_device_llc_perf_para", *chip),
        "processes": _processes(library, chip),
        "network": library.number(c_int, "dcmi_get_device_network_health", *chip),
    }


def _error_codes(library: Library, chip: tuple[int, int]) -> list[Any]:
    count, codes = c_int(0), (c_uint * _MOST_CODES)()
    code = library.call("dcmi_get_device_errorcode_v2", *chip, byref(count), codes, _MOST_CODES)
    return [code, None if code else list(codes)[: max(0, min(count.value, _MOST_CODES))]]


def _low_power(library: Library, chip: tuple[int, int], sub: int) -> list[Any]:
    buffer = ctypes.create_string_buffer(SLACK_BYTES)
    size = c_uint(4)
    code = library.call("dcmi_get_device_info", *chip, _LOW_POWER, sub, ctypes.cast(buffer, c_void_p), byref(size))
    return [code, None if code else c_uint.from_buffer(buffer).value]


def _fans(library: Library, chip: tuple[int, int]) -> list[Any]:
    code, count = library.number(c_int, "dcmi_get_device_fan_count", *chip)
    if code:
        return [code, None]
    return [0, [library.number(c_int, "dcmi_get_device_fan_speed", *chip, fan) for fan in range(max(0, min(count, 16)))]]


def _processes(library: Library, chip: tuple[int, int]) -> list[Any]:
    listed, count = (ProcMemInfo * _MOST_PROCESSES)(), c_int(0)
    code = library.call("dcmi_get_device_resource_info", *chip, ctypes.cast(listed, c_void_p), byref(count))
    shown = listed[: max(0, min(count.value, _MOST_PROCESSES))]
    return [code, None if code else [[one.proc_id, one.proc_mem_usage] for one in shown]]


def listing(library: Library) -> dict[str, Any]:
    """Chips, with what identifies them."""
    count, cards = c_int(0), (c_int * _MOST_CARDS)()
    code = library.call("dcmi_get_card_list", byref(count), cards, _MOST_CARDS)
    chips: list[Any] = []
    faults: list[Any] = [["dcmi_get_card_list", code]] if code else []
    for card in list(cards)[: max(0, min(count.value, _MOST_CARDS))]:
        code, devices = library.number(c_int, "dcmi_get_device_num_in_card", card)
        if code:
            faults.append([f"dcmi_get_device_num_in_card {card}", code])
            continue
        for device in range(max(0, min(devices, 16))):
            kind = library.number(c_int, "dcmi_get_device_type", card, device)
            if kind == [0, 0] or kind[0]:  # 0 = an NPU; controllers and processors of the card are none
                chips.append([card, device, _identity(library, card, device)])
    version = ctypes.create_string_buffer(256 + SLACK_BYTES)
    code = library.call("dcmi_get_driver_version", ctypes.cast(version, c_void_p), 256)
    driver = "" if code else version.value.decode("utf-8", "replace")[:64]
    return {"chips": chips, "faults": faults, "driver": driver}


def _identity(library: Library, card: int, device: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    buffer = ctypes.create_string_buffer(ctypes.sizeof(ChipInfoV2) + SLACK_BYTES)
    names = ("dcmi_get_device_chip_info_v2", "dcmi_get_device_chip_info")
    _, code = library.newest(names, card, device, ctypes.cast(buffer, c_void_p))
    if not code:
        info = ChipInfoV2.from_buffer(buffer)
        found["name"] = (info.npu_name or info.chip_name).decode("utf-8", "replace")
    buffer = ctypes.create_string_buffer(ctypes.sizeof(PcieInfoAll) + SLACK_BYTES)
    names = ("dcmi_get_device_pcie_info_v2", "dcmi_get_device_pcie_info")
    used, code = library.newest(names, card, device, ctypes.cast(buffer, c_void_p))
    if not code:
        kind: type[Any] = PcieInfoAll if used == names[0] else PcieInfo
        place = kind.from_buffer(buffer)
        domain = getattr(place, "domain", 0)
        found["bus"] = f"{domain:04x}:{place.bdf_busid:02x}:{place.bdf_deviceid:02x}.{place.bdf_funcid:x}"
    logic = c_int(-1)
    if not library.call("dcmi_get_device_logic_id", byref(logic), card, device) and logic.value >= 0:
        found["logic"] = logic.value
        code, phy = library.number(c_uint, "dcmi_get_device_phyid_from_logicid", logic.value)
        if not code:
            found["phy"] = phy
    return found


class Worker(threading.Thread):
    """One chip's thread, or the one that lists: works off its own requests, one after the other."""

    def __init__(self, name: str, work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        super().__init__(name=name, daemon=True)
        self.todo: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._work = work
        self.start()

    def run(self) -> None:
        """Work until the process ends."""
        while True:
            say(self._work(self.todo.get()))


_OUT = threading.Lock()


def say(line: dict[str, Any]) -> None:
    """Write one whole line."""
    data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    with _OUT:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def _load(paths: Sequence[str]) -> tuple[Library | None, str]:
    reason = "no libdcmi.so was found"
    for path in paths:
        try:
            return Library(path), ""
        except OSError as error:
            if os.path.exists(path):
                reason = str(error)
    return None, reason


def main(arguments: Sequence[str]) -> int:
    """Serve standard input until it ends. ``arguments``: paths of the library to try instead of the usual ones."""
    library, reason = _load(arguments or _LIBRARIES)
    if library is None:
        say({"failed": 1, "reason": reason[:200]})
        return 1
    code = library.call("dcmi_init")
    if code:
        say({"failed": code, "reason": "dcmi_init"})
        return 1
    say({"ready": 1})
    workers: dict[Any, Worker] = {}

    def look(request: dict[str, Any]) -> dict[str, Any]:
        card, device = request["chip"]
        values = quick(library, card, device)
        if request["deep"]:
            values |= deep(library, card, device)
        return {"look": request["look"], "chip": [card, device], "values": values}

    def names(request: dict[str, Any]) -> dict[str, Any]:
        return {"look": request["look"], **listing(library)}

    for line in sys.stdin:
        request = json.loads(line)
        todo = [(tuple(chip), request | {"chip": chip}) for chip in request.get("chips", ())] or [((), request)]
        for key, one in todo:
            if key not in workers:
                workers[key] = Worker(f"chip {key}", look) if key else Worker("list", names)
            workers[key].todo.put(one)
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # threads that hang in the driver cannot be waited for
