"""``/proc/self/status``: ``Cpus_allowed_list: 0-3,7`` (proc_pid_status(5))."""

from nodeproof.errors import ParseError
from nodeproof.sources import cpu_list

__all__ = ["parse_allowed_cpus"]

_SOURCE = "/proc/self/status"


def parse_allowed_cpus(raw: bytes, /) -> list[int]:
    """Processors this process may run on. Raises ParseError."""
    for line in raw.split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"Cpus_allowed_list":
            cpus = cpu_list.parse(value, _SOURCE)
            if cpus:
                return cpus
    raise ParseError(_SOURCE, 0, raw[:60].decode("utf-8", "replace"), "a line Cpus_allowed_list with at least one processor")
