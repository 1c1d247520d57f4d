"""Huawei's ``libdcmi.so`` as ctypes sees it: structures, functions and the types of their arguments.

Structures are those of ``dcmi_interface_api.h``, version 2. Each is read out of a buffer that is larger than it: a newer driver
may know more fields. Where a function has an older sister, the newer one is tried first and what the driver refused remembered.
"""

import ctypes
from ctypes import POINTER, Structure, Union, byref, c_char, c_int, c_ubyte, c_uint, c_ulong, c_ulonglong, c_void_p
from typing import Any

__all__ = [
    "CALLS",
    "SLACK_BYTES",
    "STRUCTURES",
    "AicpuInfo",
    "ChipInfoV2",
    "DvppRatio",
    "EccInfo",
    "HbmInfo",
    "Library",
    "LlcPerf",
    "MemoryInfoV3",
    "PcieInfo",
    "PcieInfoAll",
    "ProcMemInfo",
    "SensorInfo",
]

SLACK_BYTES = 512
_MISSING = -8254
"""The library's own code for a function that is not there."""
_NOT_SUPPORTED = -8255


class ChipInfoV2(Structure):
    """``struct dcmi_chip_info_v2``; the older one lacks the last field."""

    _fields_ = (
        ("chip_type", c_char * 32),
        ("chip_name", c_char * 32),
        ("chip_ver", c_char * 32),
        ("aicore_cnt", c_uint),
        ("npu_name", c_char * 32),
    )


class PcieInfoAll(Structure):
    """``struct dcmi_pcie_info_all``: 64 bytes."""

    _fields_ = (
        ("venderid", c_uint),
        ("subvenderid", c_uint),
        ("deviceid", c_uint),
        ("subdeviceid", c_uint),
        ("domain", c_int),
        ("bdf_busid", c_uint),
        ("bdf_deviceid", c_uint),
        ("bdf_funcid", c_uint),
        ("reserve", c_ubyte * 32),
    )


class PcieInfo(Structure):
    """``struct dcmi_pcie_info``: no domain."""

    _fields_ = tuple(
        (name, c_uint)
        for name in ("deviceid", "venderid", "subvenderid", "subdeviceid", "bdf_deviceid", "bdf_busid", "bdf_funcid")
    )


class HbmInfo(Structure):
    """``struct dcmi_hbm_info``, MB and MHz."""

    _fields_ = (
        ("memory_size", c_ulonglong),
        ("freq", c_uint),
        ("memory_usage", c_ulonglong),
        ("temp", c_int),
        ("bandwith_util_rate", c_uint),
    )


class MemoryInfoV3(Structure):
    """``struct dcmi_get_memory_info_stru``, MB."""

    _fields_ = (
        ("memory_size", c_ulonglong),
        ("memory_available", c_ulonglong),
        ("freq", c_uint),
        ("hugepagesize", c_ulong),
        ("hugepages_total", c_ulong),
        ("hugepages_free", c_ulong),
        ("utiliza", c_uint),
        ("reserve", c_ubyte * 60),
    )


class EccInfo(Structure):
    """``struct dcmi_ecc_info``."""

    _fields_ = (
        ("enable_flag", c_int),
        ("single_bit_error_cnt", c_uint),
        ("double_bit_error_cnt", c_uint),
        ("total_single_bit_error_cnt", c_uint),
        ("total_double_bit_error_cnt", c_uint),
        ("single_bit_isolated_pages_cnt", c_uint),
        ("double_bit_isolated_pages_cnt", c_uint),
    )


class AicpuInfo(Structure):
    """``struct dcmi_aicpu_info``, MHz."""

    _fields_ = (("max_freq", c_uint), ("cur_freq", c_uint), ("aicpu_num", c_uint), ("util_rate", c_uint * 16))


class DvppRatio(Structure):
    """``struct dcmi_dvpp_ratio``, %."""

    _fields_ = tuple((f"{part}_ratio", c_int) for part in ("vdec", "vpc", "venc", "jpege", "jpegd"))


class LlcPerf(Structure):
    """``struct dcmi_llc_perf``."""

    _fields_ = (("wr_hit_rate", c_uint), ("rd_hit_rate", c_uint), ("throughput", c_uint))


class SensorInfo(Union):
    """``union dcmi_sensor_info``: 64 bytes."""

    _fields_ = (("iint", c_int), ("ntc_tmp", c_int * 4), ("data", c_uint * 16))


class ProcMemInfo(Structure):
    """``struct dcmi_proc_mem_info``, bytes."""

    _fields_ = (("proc_id", c_int), ("proc_mem_usage", c_ulong))


STRUCTURES: dict[str, type[Any]] = {
    "dcmi_chip_info_v2": ChipInfoV2,
    "dcmi_pcie_info_all": PcieInfoAll,
    "dcmi_pcie_info": PcieInfo,
    "dcmi_hbm_info": HbmInfo,
    "dcmi_get_memory_info_stru": MemoryInfoV3,
    "dcmi_ecc_info": EccInfo,
    "dcmi_aicpu_info": AicpuInfo,
    "dcmi_dvpp_ratio": DvppRatio,
    "dcmi_llc_perf": LlcPerf,
    "dcmi_sensor_info": SensorInfo,
    "dcmi_proc_mem_info": ProcMemInfo,
}
"""By their names in the header, for the test that holds them against a compiler's."""

_CHIP = (c_int, c_int)

CALLS: dict[str, tuple[Any, ...]] = {
    "dcmi_init": (),
    "dcmi_get_card_list": (POINTER(c_int), POINTER(c_int), c_int),
    "dcmi_get_device_num_in_card": (c_int, POINTER(c_int)),
    "dcmi_get_device_type": (*_CHIP, POINTER(c_int)),
    "dcmi_get_driver_version": (c_void_p, c_uint),
    "dcmi_get_driver_health": (POINTER(c_uint),),
    "dcmi_get_device_logic_id": (POINTER(c_int), *_CHIP),
    "dcmi_get_device_phyid_from_logicid": (c_uint, POINTER(c_uint)),
    "dcmi_get_device_chip_info_v2": (*_CHIP, c_void_p),
    "dcmi_get_device_chip_info": (*_CHIP, c_void_p),
    "dcmi_get_device_pcie_info_v2": (*_CHIP, c_void_p),
    "dcmi_get_device_pcie_info": (*_CHIP, c_void_p),
    "dcmi_get_device_health": (*_CHIP, POINTER(c_uint)),
    "dcmi_get_device_errorcode_v2": (*_CHIP, POINTER(c_int), POINTER(c_uint), c_uint),
    "dcmi_get_device_temperature": (*_CHIP, POINTER(c_int)),
    "dcmi_get_device_power_info": (*_CHIP, POINTER(c_int)),
    "dcmi_get_device_voltage": (*_CHIP, POINTER(c_uint)),
    "dcmi_get_device_utilization_rate": (*_CHIP, c_int, POINTER(c_uint)),
    "dcmi_get_device_frequency": (*_CHIP, c_int, POINTER(c_uint)),
    "dcmi_get_device_sensor_info": (*_CHIP, c_int, c_void_p),
    "dcmi_get_device_hbm_info": (*_CHIP, c_void_p),
    "dcmi_get_device_memory_info_v3": (*_CHIP, c_void_p),
    "dcmi_get_device_ecc_info": (*_CHIP, c_int, c_void_p),
    "dcmi_get_device_aicpu_info": (*_CHIP, c_void_p),
    "dcmi_get_device_info": (*_CHIP, c_int, c_uint, c_void_p, POINTER(c_uint)),
    "dcmi_get_device_fan_count": (*_CHIP, POINTER(c_int)),
    "dcmi_get_device_fan_speed": (*_CHIP, c_int, POINTER(c_int)),
    "dcmi_get_device_dvpp_ratio_info": (*_CHIP, c_void_p),
    "dcmi_get_device_llc_perf_para": (*_CHIP, c_void_p),
    "dcmi_get_device_resource_info": (*_CHIP, c_void_p, POINTER(c_int)),
    "dcmi_get_device_network_health": (*_CHIP, POINTER(c_int)),
}
"""Every function that is called, with the types of its arguments; all give an int, 0 = well."""


class Library:
    """The library, loaded and told what its functions take."""

    def __init__(self, path: str) -> None:
        """Load the library at ``path``. Raises OSError."""
        self._functions: dict[str, Any] = {}
        library = ctypes.CDLL(path)
        for name, arguments in CALLS.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                continue
            function.argtypes = arguments
            function.restype = c_int
            self._functions[name] = function
        self._refused: set[str] = set()

    def call(self, name: str, *arguments: Any) -> int:
        """Return code of ``name``."""
        function = self._functions.get(name)
        return _MISSING if function is None else int(function(*arguments))

    def newest(self, names: tuple[str, ...], *arguments: Any) -> tuple[str, int]:
        """Which of several sister functions answered, and its code; one that the driver refuses is not tried again."""
        code, used = _MISSING, names[-1]
        for name in names:
            if name in self._refused:
                continue
            code, used = self.call(name, *arguments), name
            if code not in {_MISSING, _NOT_SUPPORTED}:
                break
            self._refused.add(name)
        return used, code

    def structure(self, kind: type[Any], name: str, *arguments: Any) -> list[Any]:
        """[code, fields] of a function whose last argument is a structure."""
        buffer = ctypes.create_string_buffer(ctypes.sizeof(kind) + SLACK_BYTES)
        code = self.call(name, *arguments, ctypes.cast(buffer, c_void_p))
        return [code, None if code else _fields(kind.from_buffer(buffer))]

    def number(self, kind: type[Any], name: str, *arguments: Any) -> list[Any]:
        """[code, number] of a function whose last argument is a pointer to a number."""
        value = kind(0)
        code = self.call(name, *arguments, byref(value))
        return [code, None if code else value.value]


def _fields(structure: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, _ in structure._fields_:
        value = getattr(structure, name)
        if isinstance(value, bytes):
            found[name] = value.decode("utf-8", "replace")
        else:
            found[name] = list(value) if hasattr(value, "__len__") else value
    found.pop("reserve", None)
    return found
