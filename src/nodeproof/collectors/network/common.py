"""What the parts of component network share: where the files are, rates between two readings, slow sources, lists of names."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle
from nodeproof.errors import NoData
from nodeproof.host.background import Answer
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine

__all__ = ["DEADLINE_S", "LINK_PERIOD_S", "Rate", "SlowRead", "is_foreign_namespace", "listing", "net_root"]

_T = TypeVar("_T")

LINK_PERIOD_S = 10.0
"""Cadence of sources that ask a driver or the firmware of an adapter."""
DEADLINE_S = 5.0
_SHOWN = 3


def net_root(files: FileTree) -> str:
    """Directory of the network files of the host.

    ``/proc/net`` is a link to the reader's own network namespace. Where the host's files are mounted elsewhere, the reader lives
    in a container, and the host's namespace is that of its process 1.
    """
    return "/proc/1/net" if files.root and files.can_read("/proc/1/net/dev") else "/proc/net"


def is_foreign_namespace(files: FileTree) -> bool:
    """Whether ``/proc/sys/net`` shows another network namespace than :func:`net_root`; true when that cannot be told."""
    if net_root(files) == "/proc/net":
        return False
    try:
        return files.link_target("/proc/self/ns/net") != files.link_target("/proc/1/ns/net")
    except NoData:
        return True


def listing(names: Sequence[str]) -> str:
    """``eth0, eth1, eth2 and 61 more``: names for a reason that stays short."""
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


class Rate:
    """One counter between two readings of it."""

    __slots__ = ("_at_s", "_value")

    def __init__(self) -> None:
        self._at_s = 0.0
        self._value: int | None = None

    def step(self, value: int | None, at: Instant) -> tuple[int, float] | None:
        """Growth since the reading before and the seconds between; None for a first reading, a restart or no time between."""
        before, before_s = self._value, self._at_s
        self._value, self._at_s = value, at.mono_s
        if value is None or before is None or value < before or at.mono_s <= before_s:
            return None
        return value - before, at.mono_s - before_s


class SlowRead(Generic[_T]):
    """A source that may block, and how its answer becomes metrics: made once an answer, with the time of the answer."""

    def __init__(
        self,
        machine: Machine,
        name: str,
        call: Callable[[], _T],
        render: Callable[[Cycle, _T], None],
        *,
        interval_s: float = LINK_PERIOD_S,
    ) -> None:
        self._source = machine.background(name, call, interval_s=interval_s, deadline_s=DEADLINE_S)
        self._render = render
        self._shown: tuple[Answer[_T], Cycle] | None = None

    def latest(self) -> Answer[_T]:
        """The newest answer. Raises NoData."""
        return self._source.latest()

    def read(self, cycle: Cycle) -> None:
        """Put the metrics of the newest answer into ``cycle``. Raises NoData."""
        answer = self._source.latest()
        if self._shown is None or self._shown[0] is not answer:
            made = cycle.as_of(answer.at)
            self._render(made, answer.value)
            self._shown = answer, made
        cycle.take(self._shown[1])
