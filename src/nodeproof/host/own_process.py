"""What this process itself uses. Always read from our own ``/proc``, wherever the observed machine's files lie."""

import os
import time

__all__ = ["cpu_s", "descriptors", "resident_bytes", "thread_cpu_s"]


def cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def thread_cpu_s() -> float:
    """CPU seconds of the calling thread."""
    return time.thread_time()


def resident_bytes() -> int:
    """Resident set: second field of statm, in pages (proc_pid_statm(5))."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read(200).split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    """Open file descriptors."""
    return len(os.listdir("/proc/self/fd")) - 1  # without the one that lists them
