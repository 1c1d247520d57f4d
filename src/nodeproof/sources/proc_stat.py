"""``/proc/stat``: ``cpu0 85 0 40 9000 12 0 3 0 0 0`` and ``ctxt 123`` (proc_stat(5), fs/proc/stat.c).

Times are ticks of USER_HZ. ``guest`` and ``guest_nice`` are already part of ``user`` and ``nice``: they are left out of every
sum.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["CpuTimes", "Stat", "parse"]

_FIELDS = 8
_NO_TIMES = (0,) * _FIELDS
_LIMIT = 2**64
"""The kernel counts in 64 bits."""
_SINGLES = {b"intr", b"ctxt", b"btime", b"processes", b"procs_running", b"procs_blocked", b"softirq"}


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
    """What we use of the file; a line that is absent or damaged is None."""

    cpus: dict[str, CpuTimes]
    """By core: ``total`` first, then ``0``, ``1`` ... as far as they are online."""
    context_switches: int | None
    boot_time_s: int | None
    interrupts: int | None
    softirqs: int | None
    forks: int | None
    procs_running: int | None
    procs_blocked: int | None


def parse(raw: bytes, /) -> Stat:
    """Read the whole file; unknown lines are passed over. Raises ParseError when there is no usable ``cpu`` line."""
    cpus: dict[str, CpuTimes] = {}
    singles: dict[bytes, int] = {}
    for line in raw.split(b"\n"):
        if line.startswith(b"cpu"):
            fields = line.split()
            core = fields[0][3:].decode("ascii", "replace")
            times = _times(fields[1 : _FIELDS + 1])
            if times is not None and (core.isdecimal() or not core):
                cpus[core or "total"] = times
        elif line:
            # The rest of intr and softirq counts single sources: thousands of columns that nobody asks for.
            words = line.split(None, 2)
            if len(words) > 1 and words[0] in _SINGLES and words[1].isdigit() and len(words[1]) <= 20:
                singles[words[0]] = int(words[1])
    if not cpus:
        raise ParseError(
            "/proc/stat",
            0,
            raw[:40].decode("utf-8", "replace"),
            "lines that begin with cpu and hold at least four counters",
        )
    return Stat(
        cpus,
        singles.get(b"ctxt"),
        singles.get(b"btime"),
        singles.get(b"intr"),
        singles.get(b"softirq"),
        singles.get(b"processes"),
        singles.get(b"procs_running"),
        singles.get(b"procs_blocked"),
    )


def _times(fields: list[bytes]) -> CpuTimes | None:
    """Counters of one line; kernels before 2.6.11 have fewer, newer ones more. None when it is damaged."""
    try:
        numbers = tuple(map(int, fields))
    except ValueError:
        return None
    if len(numbers) < _FIELDS:
        if len(numbers) < 4:
            return None
        numbers += _NO_TIMES[len(numbers) :]
    if min(numbers) < 0 or max(numbers) >= _LIMIT:
        return None
    return CpuTimes._make(numbers)
