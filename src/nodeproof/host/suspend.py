"""How long the machine has been suspended since it started: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not."""

import time

__all__ = ["suspended_s"]


def suspended_s() -> float:
    """Seconds. A machine that never slept comes out at 0, or a microsecond beyond (clock_gettime(2))."""
    running_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - running_s)
