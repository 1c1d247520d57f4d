"""What a cycle of the daemon costs in CPU time, on a made-up host of any size, part by part.

The runtime is the daemon's own; only its threads are missing: the collectors of a beat run one after the other on the caller's
thread, on a clock that the caller moves, so that each part's CPU time can be told from the rest.
"""

import gc
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

import msgspec

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle, GroupCollector
from nodeproof.config.resolve import build
from nodeproof.daemon.runtime import Runtime
from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.host.remade_file import allow_leases
from nodeproof.model.metric import Batch, Metric
from nodeproof.sinks.base import Sink, Trouble
from nodeproof.sinks.prometheus import Format, Renderer
from support.hosts_grown import Size, grown_answers, step, write_grown_host

__all__ = ["YARDSTICK_S", "Answers", "Costs", "Daemon", "Part", "total", "windows", "yardstick"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

Answers = Mapping[str, bytes | CommandResult | CommandError]
Part = tuple[str, str]
"""What cost it: (``collect``, component), (``group``, component and metric), (``sink``, name), (``health``, ``judge``) ..."""
Costs = dict[Part, float]
"""CPU seconds by part."""


def total(costs: Costs) -> float:
    """All parts; groups are parts of their collector."""
    return sum(cost for (kind, _), cost in costs.items() if kind != "group")


_BEAT_S = 1.0
_WINDOW = 10
"""Beats in which everything that is done each 1, 2, 3 or 5 s has its share."""


def windows(beats: Sequence[float]) -> list[float]:
    """Mean of each ten in a row."""
    return [sum(beats[first : first + _WINDOW]) / _WINDOW for first in range(len(beats) - _WINDOW + 1)]


YARDSTICK_S = 0.0008
"""What :func:`yardstick` costs between two cycles of the largest host on the machine that limits in milliseconds are meant for: a
virtual machine on an AMD EPYC, with nobody else on it."""
_LABELS = [{"core": str(core)} for core in range(64)]
_LINE = b"cpu0 85 0 40 9000 12 0 3 0 0 0"
_encode = msgspec.json.Encoder().encode


def yardstick() -> float:
    """CPU seconds of a fixed piece of work of the daemon's kind: how quick this machine is at this moment.

    The same work costs half as much again while a neighbour uses the other half of a processor's core, and more on an older
    machine: a limit in milliseconds says nothing without it.
    """
    began = time.thread_time()
    stamp = "2026-11-30T12:00:00+00:00"
    metrics = [Metric("cpu", "usage", number / 7, "%", _LABELS[number % 64], stamp) for number in range(2000)]
    found: dict[str, list[float]] = {}
    for metric in metrics:
        found.setdefault(metric.name, []).append(metric.value)
    for _ in range(100):
        sum(map(int, _LINE.split()[1:]))
    _encode(metrics)
    return time.thread_time() - began


class _Meter(Protocol):
    def __call__(self, part: Part, act: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T: ...


class _MeasuredSink:
    """A sink whose cost is told."""

    def __init__(self, sink: Sink, meter: _Meter) -> None:
        self.name = sink.name
        self.trouble: Trouble = sink.trouble
        self._sink = sink
        self._meter = meter

    def write(self, batch: Batch) -> None:
        self._meter(("sink", f"{self.name} write"), self._sink.write, batch)

    def flush(self, now: Instant) -> None:
        self._meter(("sink", f"{self.name} flush"), self._sink.flush, now)

    def close(self) -> None:
        self._sink.close()


def _without_threads() -> None:
    """In the place of the scheduler's start."""


def _none_left_behind(timeout_s: float) -> list[str]:
    """In the place of the scheduler's stop."""
    del timeout_s
    return []


class Daemon:
    """A daemon with default features and everything on but the collectors' threads and the port, below the new ``folder``."""

    def __init__(self, folder: Path, size: Size, *, by_group: bool = False, tools: Answers | None = None) -> None:
        """``tools``: what smartctl and ipmitool answer; None = all well."""
        self.size = size
        self._sigio = signal.getsignal(signal.SIGIO)
        allow_leases()
        self._root = str(folder / "root")
        write_grown_host(self._root, size)
        settings: dict[str, object] = {
            "storage": {"data_dir": str(folder / "data")},
            "snapshot": {"dir": str(folder / "snapshot")},
            "exporter": {"enabled": False},
        }
        config = build(settings, "a measurement", (), {})
        self.clock = ManualClock()
        self.commands = RecordedCommands(grown_answers(size) if tools is None else tools)
        self._machine = Machine(RecordedFiles(self._root), self.commands, self.clock)
        self._runtime = Runtime(config, lambda: self._machine)
        scheduler = self._runtime.observing.scheduler
        scheduler.start, scheduler.stop = _without_threads, _none_left_behind  # type: ignore[method-assign]  # driven by beat()
        self._runtime.start()
        self._runtime._sinks._sinks = tuple(_MeasuredSink(sink, self._meter) for sink in self._runtime._sinks._sinks)
        self._renderer = Renderer(self._runtime.latest)
        self._loops = scheduler.loops
        if by_group:
            self._measure_groups()
        for loop in self._loops:
            part = ("collect", loop.plan.collector.component)
            # On the collector itself: a stand-in would be checked like a stranger's, which ours are not.
            setattr(loop.plan.collector, "collect", partial(self._meter, part, loop.plan.collector.collect))  # noqa: B010
        self._costs: Costs = {}
        self.ticks = 0
        """Seconds since the made-up host's counters began."""
        self.stepping_s = 0.0
        """CPU time spent on changing the made-up host: what the whole process spends besides is the daemon's."""

    @property
    def series(self) -> int:
        """Readings in the newest batches."""
        return len(self._runtime.latest.metrics())

    def trouble(self) -> list[str]:
        """What sinks complain about; must be nothing, or the figures are not those of the daemon."""
        return [status.problem for status in self._runtime._sinks.statuses() if status.problem]

    def beat(self, *, everything: bool) -> Costs:
        """One second of the daemon: collectors, sinks, health, snapshots; its cost by part.

        ``everything``: all collectors and a judgement, however recent the last ones are; else what is due. What slow sources do
        meanwhile on threads of their own is waited for and not counted here.
        """
        self.ticks += 1
        self.clock.advance(_BEAT_S)
        began = time.thread_time()
        step(self._root, self.size, self.ticks)
        self.stepping_s += time.thread_time() - began
        self._costs = {}
        if everything:
            self._runtime._judged_s = 0.0
        now_s = self.clock.now().mono_s
        for loop in self._loops:
            if everything:  # without moving its grid
                self._meter(("loop", ""), loop._cycle)
            elif loop.due_s <= now_s + _BEAT_S / 2:
                self._meter(("loop", ""), loop.run)
        self._meter(("tick", ""), self._runtime.tick)
        self._machine.settle(30.0)
        return self._split()

    def forget_commands(self) -> None:
        """Drop the list of commands that the recorded machine was asked to run: it grows, and no daemon has it."""
        self.commands.asked.clear()

    def warm_up(self, beats: int = 75) -> None:
        """Run until every slow group has run twice and each ring is full."""
        for _ in range(beats):
            self.beat(everything=True)
        gc.collect()
        gc.freeze()  # as the daemon does when it has settled

    def page(self) -> float:
        """CPU seconds of one exposition after a beat."""
        self._costs = {}
        self._meter(("page", ""), self._renderer.render, Format.TEXT)
        return self._costs["page", ""]

    def close(self) -> None:
        """Give everything back."""
        self._runtime.stop()
        gc.unfreeze()
        signal.signal(signal.SIGIO, self._sigio)

    def _meter(self, part: Part, act: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        began = time.thread_time()
        try:
            return act(*args, **kwargs)
        finally:
            self._costs[part] = self._costs.get(part, 0.0) + time.thread_time() - began

    def _split(self) -> Costs:
        """The cost of loops and tick, without what is told of parts within them."""
        costs = dict(self._costs)
        within = {"loop": 0.0, "tick": 0.0}
        for (kind, name), cost in costs.items():
            if kind == "collect" or (kind == "sink" and name.endswith("write")):
                within["loop"] += cost
            elif kind == "sink":
                within["tick"] += cost
        costs["loop", "all else"] = costs.pop(("loop", "")) - within["loop"]
        costs["health", "judge, snapshot.json"] = costs.pop(("tick", "")) - within["tick"]
        return costs

    def _measure_groups(self) -> None:
        for loop in self._loops:
            collector = loop.plan.collector
            if isinstance(collector, GroupCollector):
                collector._groups = [
                    group._replace(read=self._measured(f"{collector.component} {group.names[0]}", group.read))
                    for group in collector._groups
                ]

    def _measured(self, name: str, read: Callable[[Cycle], None]) -> Callable[[Cycle], None]:
        def act(cycle: Cycle) -> None:
            self._meter(("group", name), read, cycle)

        return act
