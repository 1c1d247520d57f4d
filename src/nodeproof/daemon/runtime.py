"""One life of the daemon: from a configuration to running collectors, sinks and exporter, and back to nothing."""

import logging
import threading
from collections.abc import Callable

from nodeproof.clock import Instant
from nodeproof.collectors import npu
from nodeproof.collectors.disk import collector as disk
from nodeproof.collectors.network import identity as network_identity
from nodeproof.collectors.services.identity import collect_hw_specs
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry
from nodeproof.daemon.fault_watch import FaultWatch
from nodeproof.daemon.observing import Observing
from nodeproof.health.grades import unjudged, verdict
from nodeproof.health.readings import Readings
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import FEATURE_INTERVALS_S, Feature
from nodeproof.model.health import HealthScore, Verdict
from nodeproof.model.metric import Metric
from nodeproof.model.snapshot import CollectorInfo
from nodeproof.sinks.base import Sink, Sinks, SinkStatus, Trouble
from nodeproof.sinks.exporter_http import Exporter
from nodeproof.sinks.exposition_names import Naming
from nodeproof.sinks.jsonl import JsonLines
from nodeproof.sinks.jsonl_files import Limits
from nodeproof.sinks.prometheus import Renderer
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, SnapshotDirectory, global_stale_after_s
from nodeproof.units import duration_text

__all__ = ["IDENTITIES", "Runtime"]

_log = logging.getLogger(__name__)
_FIRST_ROUND_S = 4.0
"""A collector that has not had its first cycle by then keeps nobody waiting any longer."""
_SECOND_ROUND_S = 3.0
"""So long after a reload or a sleep at most, what was written before stands: it is not stale by then."""
_FLUSH_EVERY_S = 5.0
_YOUNG_S = 6.0
"""So long after the start each beat brings something that was unknown before, and health is judged at every one."""

IDENTITIES = (disk.identity, network_identity.identity, npu.identity)
"""What components tell once of their hardware."""


class Runtime:
    """Everything that lives between :meth:`start` and :meth:`stop`."""

    def __init__(self, config: Config, machine: Callable[[], Machine], before: "Runtime | None" = None) -> None:
        """Nothing runs or is written yet. Raises ConfigError for what only the installed collectors can tell is wrong.

        What is observed goes on where ``before`` observes just that; else it is made anew, on a ``machine`` made anew.
        """
        self.config = config
        self._before = before
        observed = before.observing if before is not None else None
        goes_on = observed is not None and observed.serves(config)
        self.observing: Observing = observed if observed is not None and goes_on else Observing(config, machine(), observed)
        self.machine = self.observing.machine
        self.latest = self.observing.latest
        self.interval_s = self.observing.interval_s
        """Cadence of the node's own snapshot: that of the quickest collector."""
        self._global: GlobalSnapshots | None = None
        self._components: ComponentSnapshots | None = None
        self._data: JsonLines | None = None
        self._sinks = Sinks([])
        self._undo: list[Callable[[], object]] = []
        self._directory: SnapshotDirectory | None = None
        self._handed_on = False
        self._hung: set[str] = set()
        self._trouble = Trouble("health")
        self._cycles_seen = 0
        self._health: HealthScore | None = None
        self._verdict: Verdict | None = None
        self._judged_s = 0.0
        self._flushed_s = 0.0
        self._ticked_s = self._started_s = self.machine.clock.now().mono_s
        self._woken_s: float | None = None
        """When the machine was woken, until its readings are of now again."""
        # Who comes after another has no verdict to give before all rates have their second reading: nobody asked for a new one.
        self._rounds = 0 if goes_on else 1 if before is None else 2
        """Cycles of each collector that the first verdict waits for."""
        self._faults = FaultWatch(config, self.machine)
        # A beat's grid is not exact to the millisecond: half a beat early is in time.
        self._judge_every_s = max(self.interval_s, *FEATURE_INTERVALS_S[Feature.HEALTH].values()) - self.interval_s / 2

    def start(self, directory: SnapshotDirectory | None = None) -> None:
        """Take the directory, listen, and let collectors run. What had begun is undone when any of it fails.

        ``directory``: the one of a predecessor, still held; it stays the caller's when this fails. Raises SnapshotError (another
        daemon has the directory), AddressInUseError or UsageError (the exporter cannot listen), WriteError.
        """
        before, self._before = self._before, None
        goes_on = before is not None and before.observing is self.observing
        try:
            sinks = self._open_sinks(directory, before)
            self._sinks = self.observing.give_to(sinks, self._statuses)
            self._undo.append(self._sinks.close)
            self._listen()
            self._faults.start()
            self._undo.append(self._faults.stop)
            if not goes_on:
                self._undo.append(self.observing.stop)
                self.observing.start()
            threading.Thread(target=self._identify, name="identity", daemon=True).start()
        except BaseException:
            if self._directory is directory:
                self._directory = None
            self.stop(before if goes_on else None)
            raise
        if goes_on:
            self._undo.append(self.observing.stop)

    def stop(self, successor: "Runtime | None" = None) -> SnapshotDirectory | None:
        """End collectors, listeners and sinks, in this order; safe to call after a failed start.

        What ``successor`` goes on observing is not ended. When it writes to the same snapshot directory, that is given back,
        still held, and nothing there says that the daemon was stopped: no reader is to take a reload for an end.
        """
        directory = self._directory
        settings = successor.config.snapshot if successor is not None else None
        self._handed_on = directory is not None and settings is not None and settings.enabled and settings.dir == directory.path
        goes_on = successor is not None and successor.observing is self.observing
        if goes_on:
            self.observing.give_to([])
        while self._undo:
            act = self._undo.pop()
            if not (goes_on and act == self.observing.stop):
                act()
        self._directory = None
        if directory is not None and not self._handed_on:
            directory.close()
            return None
        return directory

    def tick(self) -> HealthScore:
        """Write the node's snapshot with its health, judged anew when that is due, and let sinks do what is due.

        Called every :attr:`interval_s`.
        """
        now = self.machine.clock.now()
        ready = self._ready(now)
        young = now.mono_s - self._started_s < _YOUNG_S
        news = self._faults.hear()
        if self._health is None or (ready and (young or news or now.mono_s - self._judged_s >= self._judge_every_s)):
            self._health = self.observing.health = self._judged(now)
            self._verdict = verdict(self._health)
            self._judged_s = now.mono_s
        if ready and self._global is not None:
            self._global.write(self._health, self._verdict)
        if now.mono_s - self._flushed_s >= _FLUSH_EVERY_S:
            self._flushed_s = now.mono_s
            self._sinks.flush(now)
        self._watch()
        return self._health

    def _ready(self, now: Instant) -> bool:
        """Whether there is a verdict to give: collectors have had their cycles, also since a sleep, or time enough for them."""
        if now.mono_s - self._ticked_s > global_stale_after_s(self.interval_s):
            self._woken_s = now.mono_s
        self._ticked_s = now.mono_s
        if self._woken_s is not None:
            stale = any(entry.expired for entry in self.latest.entries(now).values())
            if stale and now.mono_s - self._woken_s < _SECOND_ROUND_S:
                return False
            self._woken_s = None
        if self._rounds:
            wait_s = _FIRST_ROUND_S if self._rounds == 1 else _SECOND_ROUND_S
            looked = all(cost.cycles >= self._rounds for cost in self.observing.scheduler.costs().values())
            if not looked and now.mono_s - self._started_s < wait_s:
                return False
            self._rounds = 0
        return True

    def progressed(self) -> bool:
        """Whether any collector has completed a cycle since the last call: what the watchdog is told."""
        cycles = self.observing.scheduler.completed()
        moved = cycles > self._cycles_seen
        self._cycles_seen = cycles
        return moved

    def take_orders(self) -> None:
        """Do what operators asked for, and judge anew with the next tick."""
        self._faults.take_orders()
        self._health = None

    def _judged(self, now: Instant) -> HealthScore:
        """Health by the newest readings; unknown, and why, when judging itself fails."""
        try:
            readings = Readings(self.latest.batches(now))
            health = self.observing.evaluator.evaluate(readings, now, self._faults.findings())
            self._faults.judge(self.observing.evaluator, readings, health)
        except Exception as error:  # noqa: BLE001 - a rule's bug must not end the daemon
            problem = f"could not be judged: {type(error).__name__}: {error}"
            self._trouble.failed(problem)
            return unjudged(self.config.health.ruleset, problem, now)
        self._trouble.healed()
        return health

    def _watch(self) -> None:
        """Tell once of each collector that overruns its deadline, and once when it is back."""
        hung = self.observing.scheduler.overrun()
        for name in hung - self._hung:
            _log.warning("collector %s hangs: its cycle has overrun the deadline; the others go on", name)
        for name in self._hung - hung:
            _log.warning("collector %s is back", name)
        self._hung = hung

    def _statuses(self) -> list[SinkStatus]:
        """How all that is written fares."""
        told = self._sinks.statuses()
        if self._global is not None:
            told.append(SinkStatus("snapshot.json", self._global.trouble.total, self._global.trouble.problem))
        return told

    def _open_sinks(self, directory: SnapshotDirectory | None, before: "Runtime | None") -> list[Sink]:
        """Everything that is written to. What ``before`` wrote to the same places is gone on with."""
        config, clock = self.config, self.machine.clock
        sinks: list[Sink] = []
        if config.snapshot.enabled:
            self._directory = directory = directory or SnapshotDirectory(config.snapshot.dir)
            for name in directory.open(self.observing.components):
                _log.info("removed %s from %s: nobody writes it any more", name, config.snapshot.dir)
            self._components = ComponentSnapshots(config.snapshot.dir, clock, self.observing.stale_after, origin=directory.origin)
            self._global = self._global_snapshots(directory)
            if before is not None and before.config.snapshot == config.snapshot:
                self._components.go_on_from(before._components, self.observing.components)  # noqa: SLF001 - another of this class
                self._global.go_on_from(before._global)  # noqa: SLF001 - the same
            self._undo.append(self._close_global)
            sinks.append(self._components)
        if config.storage.enabled:
            limits = Limits(max_age_s=config.storage.max_file_age_s, max_total_bytes=config.storage.max_total_bytes)
            self._data = JsonLines(config.storage.data_dir, clock, interval_s=config.storage.interval_s, limits=limits)
            if before is not None and before.config.storage == config.storage:
                self._data.go_on_from(before._data)  # noqa: SLF001 - the same
            sinks.append(self._data)
        if config.straggler_output.enabled:
            from nodeproof.sinks.kpi import KpiFiles  # noqa: PLC0415 - only where somebody wants them

            kpi = config.straggler_output
            sinks.append(KpiFiles(kpi.data_dir, clock, retention_s=kpi.retention_s, flush_interval_s=kpi.flush_interval_s))
        return sinks

    def _global_snapshots(self, directory: SnapshotDirectory) -> GlobalSnapshots:
        snapshots = GlobalSnapshots(
            directory.path, self.machine.clock, self.interval_s, origin=directory.origin, renew=directory.renew
        )
        snapshots.set_collectors([_info(entry) for entry in self.observing.entries])
        snapshots.set_intervals({component: round(seconds * 1000) for component, seconds in self.observing.intervals_s.items()})
        return snapshots

    def _listen(self) -> None:
        settings = self.config.exporter
        if not settings.enabled:
            return
        renderer = Renderer(self.latest, naming=Naming(settings.naming), statuses=self._statuses)
        self.observing.latest.tell(renderer.prepare)
        self._undo.append(self.observing.latest.tell)
        exporter = Exporter(renderer, settings.address, allowed_hosts=settings.allowed_hosts)
        exporter.start()
        self._undo.append(exporter.stop)

    def _identify(self) -> None:
        """Read what the node is made of, once, and hand it to the snapshots; on a thread, since tools may be slow."""
        specs: dict[str, list[Metric]] = {}
        for spec in collect_hw_specs(self.machine, IDENTITIES):
            specs.setdefault(spec.component, []).append(spec)
        if self._global is not None:
            self._global.set_system_specs(specs.pop("system", []))
        if self._components is not None:
            for component, found in specs.items():
                self._components.set_comp_specs(component, found)

    def _close_global(self) -> None:
        if self._global is not None:
            self._global.close(handed_on=self._handed_on)


def _info(entry: CollectorEntry) -> CollectorInfo:
    return CollectorInfo(
        name=entry.name,
        component=entry.collector.component,
        priority="High",
        interval=duration_text(entry.interval_s),
        enabled=entry.enabled,
    )
