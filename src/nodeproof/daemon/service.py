"""The daemon as a process: signals, reload, and what the service manager is told."""

import gc
import logging
import os
import signal
from collections.abc import Callable

from nodeproof.config.schema import Config
from nodeproof.daemon.runtime import Runtime
from nodeproof.errors import NodeproofError
from nodeproof.host.allocator import give_back, share_one_arena
from nodeproof.host.machine import Machine
from nodeproof.host.notify import Notifier
from nodeproof.host.remade_file import allow_leases
from nodeproof.host.signals import Signals
from nodeproof.model.health import HealthScore
from nodeproof.sinks.snapshot import SnapshotDirectory

__all__ = ["Service"]

_log = logging.getLogger(__name__)
_FIRST_VERDICT_S = 2.5
"""Rates need two readings: the first verdict is given after this time, when the quickest collectors have them."""

_AFTER_COLLECTORS_S = 0.008
"""The publisher follows the collectors of its beat, while they are still in the processor's caches."""


class Service:
    """Observes until SIGTERM or SIGINT; SIGHUP loads the configuration anew and keeps the old one when the new one is bad.

    SIGUSR1 says that somebody left an order for the faults (``nodeproof faults``).
    """

    def __init__(
        self,
        load: Callable[[], Config],
        machine: Callable[[], Machine],
        notifier: Notifier,
        first_verdict: Callable[[HealthScore, Config], None],
    ) -> None:
        self._load = load
        self._machine = machine
        self._notifier = notifier
        self._first_verdict: Callable[[HealthScore, Config], None] | None = first_verdict
        self._runtime: Runtime | None = None

    def run(self) -> None:
        """Run until told to end. Raises NodeproofError when the daemon cannot start."""
        share_one_arena()
        allow_leases()
        with Signals(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1) as signals:
            config = self._load()
            self._start(Runtime(config, self._machine), None)
            self._notifier.send("READY=1", f"MAINPID={os.getpid()}", "STATUS=observing")
            try:
                self._live(signals)
            finally:
                self._notifier.send("STOPPING=1")
                if self._runtime is not None:
                    self._runtime.stop()

    def _start(self, runtime: Runtime, directory: SnapshotDirectory | None) -> None:
        """Make ``runtime`` the one that is alive. Raises NodeproofError."""
        runtime.start(directory)
        self._runtime = runtime
        config = runtime.config
        for warning in config.warnings:
            _log.warning("%s", warning)
        _log.info("observing with the configuration of %s", config.source)
        if config.exporter.enabled:
            _log.info("metrics at http://%s/metrics", config.exporter.address)
        if config.snapshot.enabled:
            _log.info("snapshots in %s", config.snapshot.dir)
        watchdog_s = self._notifier.watchdog_s
        if watchdog_s is not None and watchdog_s < 2 * runtime.interval_s:
            text = "systemd wants a sign of life every %g s, and the quickest collector runs every %g s: lengthen WatchdogSec"
            _log.warning(text, watchdog_s, runtime.interval_s)

    def _live(self, signals: Signals) -> None:
        """Publish on a fixed grid until told to end."""
        runtime = self._alive()
        began = runtime.machine.clock.now().mono_s
        due = began + _AFTER_COLLECTORS_S
        while True:
            now = runtime.machine.clock.now().mono_s
            arrived = signals.wait(due - now)
            if arrived & {signal.SIGTERM, signal.SIGINT}:
                _log.info("ending: %s", ", ".join(sorted(one.name for one in arrived)))
                return
            if signal.SIGHUP in arrived:
                self._reload()
                runtime = self._alive()
                _settle_memory()
                due = runtime.machine.clock.now().mono_s + _AFTER_COLLECTORS_S
                continue
            now = runtime.machine.clock.now().mono_s
            if signal.SIGUSR1 in arrived:
                runtime.take_orders()
                due = now
            if now < due:
                continue
            health = runtime.tick()
            if runtime.progressed():
                self._notifier.alive(f"{health.grade}, {health.score} of 100")
            if self._first_verdict is not None and now - began >= _FIRST_VERDICT_S:
                self._first_verdict(health, runtime.config)
                self._first_verdict = None
                _settle_memory()
            due = max(due + runtime.interval_s, now)

    def _alive(self) -> Runtime:
        if self._runtime is None:
            raise RuntimeError("nothing is running")
        return self._runtime

    def _reload(self) -> None:
        """Live on by the new configuration; by the old one when the new one is bad or cannot be started."""
        self._notifier.reloading()
        status = "observing"
        try:
            old = self._alive()
            try:
                fresh = Runtime(self._load(), self._machine, old)
            except NodeproofError as error:
                status = "not reloaded: the new configuration is bad"
                _log.error("not reloaded, the old configuration stays in force: %s", error)
                return
            directory = old.stop(fresh)
            try:
                self._start(fresh, directory)
                _log.info("reloaded from %s", fresh.config.source)
            except NodeproofError as error:
                status = "not reloaded: the new configuration cannot be started"
                _log.error("the new configuration cannot be started, the old one is put back: %s", error)
                self._start(Runtime(old.config, self._machine, old), directory)
        finally:
            self._notifier.send("READY=1", f"STATUS={status}")


def _settle_memory() -> None:
    """Take everything that was made at the start out of the garbage collector's rounds: it stays, and looking at it costs.

    After a reload what was taken out before is looked at once more: most of it has become garbage.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    give_back()
