"""``/proc/stat``: ``cpu0 85 0 40 9000 12 0 3 0 0 0`` and ``ctxt 123`` (proc_stat(5), fs/proc/stat.c).

Times are ticks of USER_HZ. ``guest`` and ``guest_nice`` are already part of ``user`` and ``nice``: they are left out of every
sum.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["CpuTimes", "Stat", "parse"]

_FIELDS = 8
_NO_TIMES = (0,) * _FIELDS


class CpuTimes(NamedTuple):
    """Ticks of one logical processor, or of all together."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int


class Stat(NamedTuple):
    """What we use of the file."""

    cpus: dict[str, CpuTimes]
    """By core: ``total`` first, then ``0``, ``1`` ... as far as they are online."""
    context_switches: int | None
    boot_time_s: int | None


def parse(raw: bytes, /) -> Stat:
    """Read the whole file; unknown lines are passed over. Raises ParseError when there is no usable ``cpu`` line."""
    cpus: dict[str, CpuTimes] = {}
    singles: dict[bytes, int] = {}
    for line in raw.split(b"\n"):
        if line.startswith(b"cpu"):
            fields = line.split()
            times = _times(fields)
            if times is not None:
                cpus[fields[0][3:].decode("ascii", "replace") or "total"] = times
        elif line.startswith((b"ctxt ", b"btime ")):
            fields = line.split()
            if len(fields) > 1 and fields[1].isdigit():
                singles[fields[0]] = int(fields[1])
    if not cpus:
        raise ParseError(
            "/proc/stat",
            0,
            raw[:40].decode("utf-8", "replace"),
            "lines that begin with cpu and hold at least four counters",
        )
    return Stat(cpus, singles.get(b"ctxt"), singles.get(b"btime"))


def _times(fields: list[bytes]) -> CpuTimes | None:
    """Counters of one line; kernels before 2.6.11 have fewer, newer ones more. None when it is damaged."""
    try:
        numbers = tuple(map(int, fields[1 : _FIELDS + 1]))
    except ValueError:
        return None
    if len(numbers) < 4:
        return None
    return CpuTimes(*(numbers + _NO_TIMES[len(numbers) :]))
