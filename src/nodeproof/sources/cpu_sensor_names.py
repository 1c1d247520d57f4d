"""Which sensors are those of a processor: by chip and label of hwmon, by name on a BMC.

hwmon: ``coretemp`` has ``Package id 0`` and ``Core 5`` (Documentation/hwmon/coretemp.rst), ``k10temp`` has ``Tctl``, ``Tdie`` and
``Tccd1``. BMC: ``CPU1 Temp``, ``CPU1 MEM Temp``, ``CPU2 Pwr``; every maker has names of its own.
"""

__all__ = ["CORE", "PACKAGE", "bmc_metric", "first_number", "hwmon_part", "is_cpu_chip", "is_memory_chip"]

PACKAGE = "package"
CORE = "core"

_CPU_CHIPS = {"coretemp", "k10temp", "k8temp", "zenpower", "via_cputemp", "apm_xgene", "cpu_thermal", "soc_thermal", "cputemp"}
_MEMORY_CHIPS = {"jc42", "spd5118"}
"""Temperature sensors on memory modules: DDR3/DDR4 (JEDEC 42.4), DDR5."""


def is_cpu_chip(name: str, /) -> bool:
    """Whether temperatures of this chip are those of a processor."""
    return name in _CPU_CHIPS or (name.startswith("cpu") and name.endswith("thermal"))


def is_memory_chip(name: str, /) -> bool:
    """Whether this chip sits on a memory module."""
    return name in _MEMORY_CHIPS


def hwmon_part(label: str, labels: set[str], /) -> str:
    """What a temperature of a processor chip belongs to: :data:`PACKAGE`, :data:`CORE`, or nothing (empty).

    ``Tctl`` is a control value with an offset on some models; where the chip also has ``Tdie``, that is the temperature.
    """
    if label == "Tctl" and "Tdie" in labels:
        return ""
    return CORE if label.startswith("Core ") else PACKAGE


def bmc_metric(name: str, unit: str, /) -> str:
    """``mem_temperature``, ``temperature`` or ``power`` for a BMC's sensor of that name; empty for all others.

    Memory is asked for first: ``CPU1 MEM Temp`` is the memory beside processor 1. ``CPU1 DTS`` and margins count down to a limit
    and are no temperatures.
    """
    low = name.lower()
    if unit == "°C" and "temp" in low and "margin" not in low:
        if "mem" in low or "dimm" in low:
            return "mem_temperature"
        return "temperature" if "cpu" in low and "vr" not in low.replace("cpu", "") else ""
    return "power" if unit == "W" and "cpu" in low and ("pwr" in low or "power" in low) else ""


def first_number(name: str, /) -> str:
    """The first run of digits in a sensor's name; ``0`` when it has none."""
    start = next((at for at, letter in enumerate(name) if letter in "0123456789"), None)
    if start is None:
        return "0"
    rest = name[start:]
    return rest[: len(rest) - len(rest.lstrip("0123456789"))]
