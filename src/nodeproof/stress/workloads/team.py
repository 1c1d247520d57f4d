"""Threads that run compiled work, one pinned to each CPU, while the main thread watches."""

import os
import threading
from collections.abc import Callable, Sequence

__all__ = ["Work", "run"]

Work = Callable[[int], object]
"""What one thread does; it is given its rank."""

_LOOK_S = 0.1


def run(cpus: Sequence[int], work: Work, watch: Callable[[], None]) -> None:
    """Run ``work(rank)`` for each CPU on a thread pinned to it; call ``watch`` now and then until all have ended.

    The first exception of any thread is raised as soon as it is seen. The other threads may then be waiting for the one
    that failed, so the caller must end the process (`launch.main` does); they are daemon threads and hold nobody.
    """
    errors: list[BaseException] = []

    def pinned(rank: int, cpu: int) -> None:
        try:
            os.sched_setaffinity(0, {cpu})
            work(rank)
        except BaseException as error:  # noqa: BLE001 - told to the main thread, which raises it
            errors.append(error)

    threads = [threading.Thread(target=pinned, args=(rank, cpu), name=f"cpu{cpu}", daemon=True) for rank, cpu in enumerate(cpus)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK_S)
            watch()
            if errors:
                raise errors[0]
    if errors:
        raise errors[0]
    watch()
