"""A made-up look at a node, and a live daemon's directory, for tests of commands."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from nodeproof.clock import Instant, SystemClock, rfc3339
from nodeproof.daemon.once import Observation
from nodeproof.health.grades import verdict
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, SnapshotDirectory
from support.node import Node, healthy

__all__ = ["HOSTILE", "hostile_look", "live_directory", "look_at", "steers"]

HOSTILE = "fan \x1b]0;owned\x07\x1b[2J\x7f\x9b31m\u202e\r\nforged line"
"""A name that would set the title, clear the screen, turn the text round and begin a line."""


_LONG_S = 300.0
"""Nothing becomes stale while a test reads it."""


def steers(text: str) -> bool:
    """Whether ``text`` holds anything that a terminal obeys, line ends apart."""
    return any(not char.isprintable() and char != "\n" for char in text)


def look_at(node: Node) -> Observation:
    """Two looks at ``node``, one second apart, as commands get them."""
    first = _now(node)
    node.pass_time(1.0)
    return Observation(_now(node), {}, first)


def hostile_look() -> Observation:
    """A look whose every text is hostile."""
    node = healthy()
    node.set("disk", "inode_usage", 99.9, device=HOSTILE, mount_point=HOSTILE, fstype=HOSTILE)
    node.set("network", HOSTILE, 1.0, interface=HOSTILE)
    found = look_at(node)
    stamp = next(iter(found.batches.values())).timestamp
    absence = Missing("cpu", HOSTILE, "read_error", HOSTILE, {"core": HOSTILE}, HOSTILE, HOSTILE, stamp)  # type: ignore[arg-type]
    for look in (found.first, found.batches):
        look["cpu"].missing.append(absence)
        look["cpu"].missing.append(Missing("cpu", "temperature", "no_permission", HOSTILE, None, HOSTILE, HOSTILE, stamp))  # type: ignore[arg-type]
        look["cpu"].metrics[:] = [metric for metric in look["cpu"].metrics if metric.name != "temperature"]
        look["fans"] = Batch("fans", stamp, 0.0, [Metric("fans", "speed", 1.0, HOSTILE, {HOSTILE: HOSTILE}, stamp)], [])
    return Observation(found.batches, {HOSTILE: HOSTILE}, found.first)


@contextlib.contextmanager
def live_directory(folder: Path, node: Node, score: HealthScore | None = None) -> Iterator[GlobalSnapshots]:
    """A snapshot directory that this process holds and has just written, as a daemon does."""
    clock = SystemClock()
    batches = _now(node)
    directory = SnapshotDirectory(str(folder))
    directory.open(set(batches))
    parts = ComponentSnapshots(str(folder), clock, lambda _: _LONG_S, origin=directory.origin)
    whole = GlobalSnapshots(str(folder), clock, _LONG_S, origin=directory.origin)
    try:
        whole.set_intervals(dict.fromkeys(batches, 1000))
        for batch in batches.values():
            parts.write(batch)
        judged = score if score is not None else node.judge()
        whole.write(judged, verdict(judged))
        yield whole
    finally:
        whole.close()
        parts.close()
        directory.close()


def _now(node: Node) -> dict[str, Batch]:
    """The node's batches as of this moment on the real clock."""
    node.at = Instant(*SystemClock().now()) if node.at.wall_s < SystemClock().now().wall_s else node.at
    stamp = rfc3339(node.at.wall_s)
    return {name: Batch(name, stamp, node.at.mono_s, batch.metrics, batch.missing) for name, batch in node.batches().items()}
