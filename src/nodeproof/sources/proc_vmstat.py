"""``/proc/vmstat``: ``pgfault 1565060`` (proc_vmstat(5), mm/vmstat.c).

The same layout, a name and a number a line, is that of ``/sys/devices/system/node/node*/numastat`` and of the cgroup files
``memory.stat``, ``memory.events`` and ``memory.oom_control``.
"""

from nodeproof.errors import ParseError

__all__ = ["parse"]

_LIMIT = 1 << 64
"""Counters of the kernel have no more than 64 bits."""
_MAX_DIGITS = 20


def parse(raw: bytes, /, source: str = "/proc/vmstat") -> dict[str, int]:
    """Counters and gauges by name; damaged lines are passed over. Raises ParseError when no line is usable."""
    values = _at_once(raw.decode("utf-8", "replace").split())
    if values is None:
        values = _by_line(raw)
    if not values:
        raise ParseError(source, 0, raw[:60].decode("utf-8", "replace"), "lines of a name and a number")
    return values


def _at_once(fields: list[str]) -> dict[str, int] | None:
    """The quick way, right when every second word is a number and no name is; a line that lost or gained a word breaks that."""
    names = fields[::2]
    try:
        values = dict(zip(names, map(int, fields[1::2]), strict=True))
    except ValueError:
        return None
    numbers = values.values()
    sound = bool(values) and min(numbers) >= 0 and max(numbers) < _LIMIT and not any(map(str.isdecimal, names))
    return values if sound else None


def _by_line(raw: bytes) -> dict[str, int]:
    values: dict[str, int] = {}
    for line in raw.decode("utf-8", "replace").split("\n"):
        fields = line.split()
        if len(fields) != 2 or fields[0].isdecimal() or not fields[1].isdecimal() or len(fields[1]) > _MAX_DIGITS:
            continue
        number = int(fields[1])
        if number < _LIMIT:
            values[fields[0]] = number
    return values
