"""What a process tree has used so far, ended processes included.

The kernel adds the times and bytes of a child to its parent when that waits for it. So the living members together hold what all
have used, save for children of the keeper: those it counts itself, times exactly (getrusage(2)), bytes as last seen. What is lost
(a parent that ignores SIGCHLD gets nothing added) makes a sum too small, never smaller than the sum before.
"""

import os
import resource
import time
from collections.abc import Sequence

from nodeproof.host.process_tree import Counters, Identity, ProcessStat, ProcessTree

__all__ = ["Account"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_NOTHING = Counters(0, 0, 0, 0)


class Account:
    """Sums for the children of this process and all below them."""

    def __init__(self, tree: ProcessTree, keeper: int) -> None:
        self._tree = tree
        self._keeper = keeper
        self._own_before_s = _waited_for_s()
        self._cpu_s = 0.0
        self._bytes = _NOTHING
        self._gone = _NOTHING
        """Of children of the keeper that have ended."""
        self._children: dict[Identity, Counters] = {}
        self._readable = False

    def sample(self, members: Sequence[ProcessStat], output_bytes: int) -> dict[str, object]:
        """The sums now, as fields of :class:`nodeproof.model.process.Progress`.

        ``members`` are all descendants; the dead that nobody has waited for still hold what they have used.
        """
        self._add_cpu(members)
        self._add_bytes(members)
        living = [stat for stat in members if stat.lives]
        states: dict[str, int] = {}
        for stat in living:
            states[stat.state] = states.get(stat.state, 0) + 1
        sample: dict[str, object] = {
            "at_mono_s": time.clock_gettime(time.CLOCK_BOOTTIME),
            "cpu_s": round(self._cpu_s, 3),
            "output_bytes": output_bytes,
            "processes": len(living),
            "threads": sum(stat.threads for stat in living),
            "resident_bytes": sum(stat.resident_pages for stat in living) * _PAGE_BYTES,
            "states": states,
        }
        if self._readable:
            sample["read_bytes"], sample["written_bytes"] = self._bytes.read, self._bytes.written
            sample["storage_read_bytes"], sample["storage_written_bytes"] = self._bytes.storage_read, self._bytes.storage_written
        return sample

    def _add_cpu(self, members: Sequence[ProcessStat]) -> None:
        held_s = sum(stat.cpu_ticks for stat in members) / _TICKS_PER_S
        self._cpu_s = max(self._cpu_s, held_s + _waited_for_s() - self._own_before_s)

    def _add_bytes(self, members: Sequence[ProcessStat]) -> None:
        children: dict[Identity, Counters] = {}
        held = _NOTHING
        for stat in members:
            counters = self._tree.counters(stat.pid)
            if counters is None:
                counters = self._children.get(stat.identity)
            else:
                self._readable = True
            if counters is not None:
                held = _sum(held, counters)
                if stat.parent == self._keeper:
                    children[stat.identity] = counters
        for identity, counters in self._children.items():
            if identity not in children:
                self._gone = _sum(self._gone, counters)
        self._children = children
        self._bytes = Counters(*map(max, self._bytes, _sum(held, self._gone)))


def _waited_for_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _sum(one: Counters, other: Counters) -> Counters:
    return Counters(*(a + b for a, b in zip(one, other, strict=True)))
