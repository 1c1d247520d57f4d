"""Files of an AMD card below ``/sys/bus/pci/devices/<address>`` (kernel: gpu/amdgpu/thermal.rst, driver-misc.rst, ras.rst).

``ras/umc_err_count`` has two or three lines: ``ue: 0``, ``ce: 12``, ``de: 0``. ``pp_dpm_sclk`` lists clocks: ``1: 1502Mhz *``.
"""

import re

__all__ = ["highest_clock_mhz", "parse_ras_counts"]

_COUNT = re.compile(r"^(ue|ce|de):\s*(\d{1,19})\s*$", re.MULTILINE)
_CLOCK = re.compile(r"^\s*[\dS]+:\s*(\d{1,6})Mhz", re.MULTILINE | re.IGNORECASE)
_KINDS = {"ue": "uncorrected", "ce": "corrected", "de": "deferred"}


def parse_ras_counts(raw: bytes, /) -> dict[str, int]:
    """Errors by kind; empty when the file tells none."""
    return {_KINDS[kind]: int(count) for kind, count in _COUNT.findall(raw.decode("utf-8", "replace"))}


def highest_clock_mhz(raw: bytes, /) -> float | None:
    """The highest clock of a list; None for an empty one."""
    clocks = [float(clock) for clock in _CLOCK.findall(raw.decode("utf-8", "replace"))]
    return max(clocks, default=None)
