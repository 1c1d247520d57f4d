"""``/proc/pressure/{cpu,memory,io}``: ``some avg10=0.12 avg60=0.04 avg300=0.01 total=4304928`` (kernel: accounting/psi.rst).

``some`` = at least one task stood still for want of the resource, ``full`` = all of them did. Kernels before 5.13 print no
``full`` line for the CPU, and ``/proc/pressure/irq`` has no ``some`` line.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["Pressure", "Stall", "parse"]


class Stall(NamedTuple):
    """One line: shares of time over three windows, and the time since boot."""

    avg10_percent: float
    avg60_percent: float
    avg300_percent: float
    total_s: float


class Pressure(NamedTuple):
    """One resource; a line that the kernel does not print, or that is damaged, is None."""

    some: Stall | None
    full: Stall | None


_MICROSECONDS = 1_000_000


def parse(raw: bytes, /) -> Pressure:
    """Read both lines; unknown lines and fields are passed over. Raises ParseError when neither line is usable."""
    stalls: dict[bytes, Stall | None] = {}
    for line in raw.split(b"\n"):
        word, _, rest = line.partition(b" ")
        if word in {b"some", b"full"}:
            stalls[word] = _stall(rest)
    pressure = Pressure(stalls.get(b"some"), stalls.get(b"full"))
    if pressure.some is None and pressure.full is None:
        raise ParseError(
            "/proc/pressure", 0, raw[:80].decode("utf-8", "replace"), "a line some or full with avg10, avg60, avg300 and total"
        )
    return pressure


def _stall(rest: bytes) -> Stall | None:
    fields = dict(pair.split(b"=", 1) for pair in rest.split() if b"=" in pair)
    try:
        averages = [float(fields[key]) for key in (b"avg10", b"avg60", b"avg300")]
        total_us = int(fields[b"total"])
    except (KeyError, ValueError):
        return None
    if total_us < 0 or not all(0.0 <= average <= 100.0 for average in averages):
        return None
    return Stall(averages[0], averages[1], averages[2], total_us / _MICROSECONDS)
