"""A small daemon for tests of liveness: owns a snapshot directory and writes to it until told to stop.

Run as ``python snapshot_daemon.py DIRECTORY INTERVAL_S``; SIGTERM stops it in good order.
"""

import signal
import sys
import threading

from nodeproof.clock import SystemClock
from nodeproof.sinks.base import StaleAfter
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, SnapshotDirectory
from support.batches import batch, health, metric


def main(folder: str, interval_s: float) -> None:
    """Write until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    directory = SnapshotDirectory(folder)
    directory.open({"cpu"})
    clock = SystemClock()
    parts = ComponentSnapshots(folder, clock, StaleAfter({"cpu": interval_s}), origin=directory.origin)
    whole = GlobalSnapshots(folder, clock, interval_s, origin=directory.origin)
    whole.set_intervals({"cpu": round(interval_s * 1000)})
    sequence = 0
    while not stop.is_set():
        sequence += 1
        parts.write(batch([metric("usage", 1.0)], at=clock.now(), sequence=sequence))
        whole.write(health())
        if sequence == 1:
            sys.stdout.write("running\n")
            sys.stdout.flush()
        stop.wait(interval_s)
    whole.close()
    directory.close()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
