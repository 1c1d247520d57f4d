"""``lspci -D -d 19e5:``: the accelerators that NPU Burn counts its logical devices by.

It takes every line that holds both ``Processing accelerators`` and ``Device``, sorted, and numbers them from 0::

    0000:01:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d802 (rev 20)

These numbers are neither those of the device nodes nor any that ``npu-smi`` prints.
"""

import re

__all__ = ["parse"]

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_MOST = 256


def parse(raw: bytes, /) -> tuple[str, ...]:
    """Addresses in the order of their logical ids."""
    found = []
    for line in sorted(raw.decode("utf-8", "replace").splitlines()):
        if "Processing accelerators" in line and "Device" in line:
            address = line.split(" ", 1)[0].lower()
            if _ADDRESS.fullmatch(address):
                found.append(address)
    return tuple(found[:_MOST])
