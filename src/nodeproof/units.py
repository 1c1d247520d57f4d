"""Conversions between the units of files and tools and ours, each stated once."""

__all__ = [
    "BYTES_PER_KIB",
    "BYTES_PER_MIB",
    "SECTOR_BYTES",
    "duration_text",
    "kelvin_to_celsius",
    "parse_duration",
]

BYTES_PER_KIB = 1024
BYTES_PER_MIB = 1024 * 1024
SECTOR_BYTES = 512
"""Sector of ``/proc/diskstats`` and ``/sys/block/*/size``, whatever the device's own (Documentation/admin-guide/iostats.rst)."""

_ABSOLUTE_ZERO_C = 273.15
_DURATION_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def kelvin_to_celsius(kelvin: float) -> float:
    """Degrees Celsius of ``kelvin``."""
    return kelvin - _ABSOLUTE_ZERO_C


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``3s``, ``168h``, ``1h30m`` or ``500ms``. Raises ValueError."""
    rest = text.strip()
    sign = 1.0
    if rest[:1] in {"+", "-"}:
        sign = -1.0 if rest[0] == "-" else 1.0
        rest = rest[1:]
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"{text!r} is no duration; write 3s, 500ms, 1h30m")
    total = 0.0
    while rest:
        number = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(number) :]
        unit = rest[: len(rest) - len(rest.lstrip("nuµmsh"))]
        rest = rest[len(unit) :]
        if not number or number.count(".") > 1 or number == "." or unit not in _DURATION_UNITS_S:
            raise ValueError(f"{text!r} is no duration; write 3s, 500ms, 1h30m")
        total += float(number) * _DURATION_UNITS_S[unit]
    return sign * total


def duration_text(seconds: float) -> str:
    """``seconds`` the way configuration files write it: ``500ms``, ``3s``, ``1m30s``, ``168h0m0s``."""
    if seconds < 1:
        return f"{round(seconds * 1000):d}ms"
    whole, fraction = int(seconds), round(seconds - int(seconds), 3)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    tail = f"{secs + fraction:g}s"
    if hours:
        return f"{hours}h{minutes}m{tail}"
    return f"{minutes}m{tail}" if minutes else tail
