"""``/proc/<pid>/status``: ``voluntary_ctxt_switches:	150`` and ``nonvoluntary_ctxt_switches:	545`` (proc_pid_status(5))."""

from nodeproof.errors import ParseError

__all__ = ["parse_switches"]

_SOURCE = "/proc/PID/status"
_KEYS = frozenset({b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches"})
_MOST_DIGITS = 20
"""Of a number of 64 bits."""


def parse_switches(raw: bytes, /) -> int:
    """How often the first thread has given up a processor, of its own accord or not. Raises ParseError.

    The number stands still while, and only while, a task sleeps on: khungtaskd goes by it too (kernel/hung_task.c).
    """
    counts = []
    for line in raw.split(b"\n"):
        key, _, value = line.partition(b":")
        digits = value.strip()
        if key in _KEYS and digits.isdigit() and len(digits) <= _MOST_DIGITS:
            counts.append(int(digits))
    if len(counts) != len(_KEYS):
        raise ParseError(_SOURCE, 0, raw[-60:].decode("utf-8", "replace"), "both counts of context switches")
    return sum(counts)
