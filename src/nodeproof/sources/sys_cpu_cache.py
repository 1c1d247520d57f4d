"""``/sys/devices/system/cpu/cpuN/cache/indexN``: ``size`` holds ``32K``, ``level`` ``1``, ``type`` ``Data``.

The kernel prints K; texts of other kernels and boards have M and G too (kernel: ABI/testing/sysfs-devices-system-cpu).
"""

from nodeproof.errors import ParseError

__all__ = ["kind", "parse_size_kib"]

_UNITS_KIB = {"K": 1, "M": 1024, "G": 1024 * 1024}
_MAX_KIB = 64 * 1024 * 1024
"""64 GiB: far above any cache there is."""


def parse_size_kib(raw: bytes, path: str, /) -> int:
    """Size in KiB. Raises ParseError; a number without suffix counts bytes, as no kernel prints it otherwise."""
    text = raw.decode("utf-8", "replace").strip()
    digits, suffix = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 15 and (not suffix or suffix in _UNITS_KIB)):
        raise ParseError(path, 1, text, "a size such as 32K, 2M or 1G")
    size_kib = int(digits) * _UNITS_KIB[suffix] if suffix else int(digits) // 1024
    if not 0 < size_kib <= _MAX_KIB:
        raise ParseError(path, 1, text, "a size from 1K to 64G")
    return size_kib


def kind(level: bytes, cache_type: bytes, /) -> str:
    """``l1d``, ``l1i``, ``l2`` or ``l3``; empty for any other cache. A unified level 1 is its data cache."""
    number, word = level.strip(), cache_type.strip()
    if number == b"1":
        return {b"Data": "l1d", b"Unified": "l1d", b"Instruction": "l1i"}.get(word, "")
    return {b"2": "l2", b"3": "l3"}.get(number, "")
