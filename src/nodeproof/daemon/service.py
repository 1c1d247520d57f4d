"""The daemon as a process: signals, reload, and what the service manager is told."""

import logging
import os
import signal
from collections.abc import Callable

from nodeproof.config.schema import Config
from nodeproof.daemon.runtime import Runtime
from nodeproof.errors import ConfigError, NodeproofError
from nodeproof.host.machine import Machine
from nodeproof.host.notify import Notifier
from nodeproof.host.remade_file import allow_leases
from nodeproof.host.signals import Signals
from nodeproof.model.health import HealthScore

__all__ = ["serve"]

_log = logging.getLogger(__name__)
_FIRST_VERDICT_S = 2.5
"""Rates need two readings: the first verdict is given after this time, when the quickest collectors have them."""

_AFTER_COLLECTORS_S = 0.05
"""The publisher follows the collectors of its beat, while they are still in the processor's caches."""


def serve(
    load: Callable[[], Config],
    machine: Callable[[], Machine],
    notifier: Notifier,
    first_verdict: Callable[[HealthScore, Config], None],
) -> None:
    """Run until SIGTERM or SIGINT; SIGHUP loads the configuration anew and keeps the old one when the new one is bad.

    Raises NodeproofError when the daemon cannot start.
    """
    allow_leases()
    with Signals(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        runtime = _start(load(), machine)
        notifier.send("READY=1", f"MAINPID={os.getpid()}", "STATUS=observing")
        try:
            runtime = _live(runtime, load, machine, notifier, signals, first_verdict)
        finally:
            notifier.send("STOPPING=1")
            runtime.stop()


def _start(config: Config, machine: Callable[[], Machine]) -> Runtime:
    for warning in config.warnings:
        _log.warning("%s", warning)
    runtime = Runtime(config, machine())
    runtime.start()
    _log.info("observing with the configuration of %s", config.source)
    if config.exporter.enabled:
        _log.info("metrics at http://%s/metrics", config.exporter.address)
    if config.snapshot.enabled:
        _log.info("snapshots in %s", config.snapshot.dir)
    return runtime


def _live(
    runtime: Runtime,
    load: Callable[[], Config],
    machine: Callable[[], Machine],
    notifier: Notifier,
    signals: Signals,
    first_verdict: Callable[[HealthScore, Config], None],
) -> Runtime:
    """Publish on a fixed grid until told to end; the runtime that is alive then."""
    began = runtime.machine.clock.now().mono_s
    due = began + _AFTER_COLLECTORS_S
    said = False
    while True:
        now = runtime.machine.clock.now().mono_s
        arrived = signals.wait(due - now)
        if arrived & {signal.SIGTERM, signal.SIGINT}:
            _log.info("ending: %s", ", ".join(sorted(one.name for one in arrived)))
            return runtime
        if signal.SIGHUP in arrived:
            runtime = _reload(runtime, load, machine, notifier)
            due = runtime.machine.clock.now().mono_s + _AFTER_COLLECTORS_S
            continue
        now = runtime.machine.clock.now().mono_s
        if now < due:
            continue
        health = runtime.tick()
        if runtime.progressed():
            notifier.send("WATCHDOG=1", f"STATUS={health.grade}, {health.score} of 100")
        if not said and now - began >= _FIRST_VERDICT_S:
            said = True
            first_verdict(health, runtime.config)
        due = max(due + runtime.interval_s, now)


def _reload(runtime: Runtime, load: Callable[[], Config], machine: Callable[[], Machine], notifier: Notifier) -> Runtime:
    """The runtime of the new configuration; of the old one when the new one is bad or cannot be started."""
    notifier.send("RELOADING=1", f"MONOTONIC_USEC={int(runtime.machine.clock.now().mono_s * 1e6)}")
    try:
        try:
            config = load()
            fresh = Runtime(config, machine())
        except ConfigError as error:
            _log.error("not reloaded, the old configuration stays in force: %s", error)
            return runtime
        runtime.stop()
        try:
            fresh.start()
        except NodeproofError as error:
            _log.error("the new configuration cannot be started, the old one is put back: %s", error)
            return _start(runtime.config, machine)
        _log.info("reloaded from %s", config.source)
        return fresh
    finally:
        notifier.send("READY=1")
