"""``/proc/diskstats``: ``8 0 sda 117611 95370 6965839 38221 261613 160604 8232403 192966 0 176554 129885`` (iostats.rst).

Eleven counters since Linux 2.6, four more for discards since 4.18, two more for flushes since 5.5; lxcfs prints another number of
them, and partitions of kernels before 2.6.25 have four. Times are milliseconds in 32 bits: they wrap after 49 days of waiting.
"""

from collections.abc import Container
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["DiskCounters", "DiskStats", "parse"]

_BASIC = 11
_DISCARD = 4
_FLUSH = 2
_OLD_PARTITION = 4
_TOO_LARGE = 1 << 64


class DiskCounters(NamedTuple):
    """Counters of one device since it appeared; None = this kernel does not print them. Sectors have 512 bytes."""

    reads: int
    sectors_read: int
    writes: int
    sectors_written: int
    read_ms: int | None = None
    write_ms: int | None = None
    in_flight: int | None = None
    busy_ms: int | None = None
    """Time with at least one request in flight."""
    weighted_ms: int | None = None
    """Time in flight, summed over all requests: its growth over time is the average queue."""
    discards: int | None = None
    sectors_discarded: int | None = None
    discard_ms: int | None = None
    flushes: int | None = None
    flush_ms: int | None = None


class DiskStats(NamedTuple):
    """The file."""

    devices: dict[str, DiskCounters]
    """By name, whole disks and partitions alike, in the order of the file."""
    skipped: int
    """Lines that could not be understood."""


def parse(raw: bytes, /, only: Container[bytes] | None = None) -> DiskStats:
    """Read the file, or just the devices named in ``only``. Raises ParseError when no line of a file that has some is usable."""
    devices: dict[str, DiskCounters] = {}
    skipped = 0
    lines = 0
    for line in raw.split(b"\n"):
        fields = line.split()
        if not fields:
            continue
        lines += 1
        if only is not None and len(fields) > 2 and fields[2] not in only:
            continue
        device = _device(fields)
        if device is None:
            skipped += 1
        else:
            devices[device[0]] = device[1]
    if skipped == lines and lines:
        raise ParseError(
            "/proc/diskstats", 0, raw[:80].decode("utf-8", "replace"), "lines with major, minor, name and at least four counters"
        )
    return DiskStats(devices, skipped)


def _device(fields: list[bytes]) -> tuple[str, DiskCounters] | None:
    """Name and counters of one line; None when it is damaged, or from Linux 2.4 (which puts a size before the name)."""
    if len(fields) < 3 + _OLD_PARTITION or not (fields[0].isdigit() and fields[1].isdigit()) or fields[2].isdigit():
        return None
    first = 3
    while first < len(fields) and not fields[first].isdigit():  # a name with a space
        first += 1
    numbers: list[int] = []
    for field in fields[first : first + _BASIC + _DISCARD + _FLUSH]:
        if not field.isdigit() or len(field) > 20:
            break
        numbers.append(int(field))
    whole_line = len(numbers) == len(fields) - first
    counters = _counters(numbers) if whole_line or len(numbers) >= _BASIC else None
    if counters is None or max(numbers) >= _TOO_LARGE:
        return None
    return b" ".join(fields[2:first]).decode("utf-8", "replace"), counters


def _counters(numbers: list[int]) -> DiskCounters | None:
    if len(numbers) < _BASIC:
        return DiskCounters(*numbers) if len(numbers) == _OLD_PARTITION else None
    reads, _, sectors_read, read_ms, writes, _, sectors_written, write_ms, in_flight, busy_ms, weighted_ms = numbers[:_BASIC]
    counters = DiskCounters(reads, sectors_read, writes, sectors_written, read_ms, write_ms, in_flight, busy_ms, weighted_ms)
    if len(numbers) < _BASIC + _DISCARD:
        return counters
    discards, _, sectors_discarded, discard_ms = numbers[_BASIC : _BASIC + _DISCARD]
    flushes, flush_ms = numbers[_BASIC + _DISCARD :] if len(numbers) == _BASIC + _DISCARD + _FLUSH else (None, None)
    return DiskCounters(*counters[:9], discards, sectors_discarded, discard_ms, flushes, flush_ms)
