"""``/sys/devices/system/cpu/cpuN/cpufreq``: ``scaling_cur_freq`` holds ``2596122`` kHz (kernel: admin-guide/pm/cpufreq.rst)."""

from nodeproof.errors import ParseError

__all__ = ["parse_mhz"]

_KHZ_PER_MHZ = 1000
_MAX_KHZ = 20_000_000


def parse_mhz(raw: bytes, path: str, /) -> float:
    """Frequency in MHz. Raises ParseError for ``<unknown>`` and for 0, which drivers say of a processor they cannot ask."""
    text = raw.decode("utf-8", "replace").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 0 < int(text) <= _MAX_KHZ):
        raise ParseError(path, 1, text, "a frequency in kHz, up to 20 GHz")
    return int(text) / _KHZ_PER_MHZ
