"""Processor limits of a control group: ``cpu.max`` holds ``200000 100000`` or ``max 100000`` (kernel: admin-guide/cgroup-v2.rst).

v1 has ``cpu.cfs_quota_us`` (``-1`` = no limit) and ``cpu.cfs_period_us`` (kernel: scheduler/sched-bwc.rst).
"""

from nodeproof.errors import ParseError

__all__ = ["parse_max", "parse_quota"]

_MAX_DIGITS = 19


def parse_max(raw: bytes, path: str, /) -> float | None:
    """Processors of ``cpu.max``; None = no limit. Raises ParseError."""
    fields = raw.split()
    if len(fields) != 2:
        raise ParseError(path, 1, raw.decode("utf-8", "replace"), "quota and period, or max and period")
    return None if fields[0] == b"max" else _cores(fields[0], fields[1], path)


def parse_quota(quota: bytes, period: bytes, path: str, /) -> float | None:
    """Processors of quota and period of v1; None = no limit. Raises ParseError."""
    return None if quota.strip() == b"-1" else _cores(quota.strip(), period.strip(), path)


def _cores(quota: bytes, period: bytes, path: str) -> float:
    if not all(field.isdigit() and len(field) <= _MAX_DIGITS and int(field) for field in (quota, period)):
        text = b" ".join((quota, period)).decode("utf-8", "replace")
        raise ParseError(path, 1, text, "a quota and a period in microseconds")
    return int(quota) / int(period)
