"""One life of the daemon: from a configuration to running collectors, sinks and exporter, and back to nothing."""

import logging
import threading
from collections.abc import Callable

from nodeproof.clock import Instant
from nodeproof.collectors.disk import collector as disk
from nodeproof.collectors.network import identity as network_identity
from nodeproof.collectors.services.identity import collect_hw_specs
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry, assemble
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.grades import unjudged
from nodeproof.health.readings import Readings
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import FEATURE_INTERVALS_S, Feature
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric
from nodeproof.model.snapshot import CollectorInfo
from nodeproof.scheduler.loop import CollectorCost, CollectorPlan
from nodeproof.scheduler.scheduler import Scheduler, spread
from nodeproof.scheduler.self_cost import SelfCost
from nodeproof.sinks.base import Sink, Sinks, StaleAfter, Trouble
from nodeproof.sinks.exporter_http import Exporter
from nodeproof.sinks.exposition_names import Naming
from nodeproof.sinks.jsonl import JsonLines
from nodeproof.sinks.jsonl_files import Limits
from nodeproof.sinks.latest import LatestStore
from nodeproof.sinks.prometheus import Renderer
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, SnapshotDirectory
from nodeproof.units import duration_text

__all__ = ["IDENTITIES", "Runtime"]

_log = logging.getLogger(__name__)
_STOP_S = 5.0
_FIRST_ROUND_S = 4.0
"""A collector that has not had its first cycle by then keeps nobody waiting any longer."""
_YOUNG_S = 6.0
"""So long after the start each beat brings something that was unknown before, and health is judged at every one."""

IDENTITIES = (disk.identity, network_identity.identity)
"""What components tell once of their hardware."""


class Runtime:
    """Everything that lives between :meth:`start` and :meth:`stop`."""

    def __init__(self, config: Config, machine: Machine, before: "Runtime | None" = None) -> None:
        """Nothing runs or is written yet. Raises ConfigError for what only the installed collectors can tell is wrong.

        What rules remember of ``before`` (growth of counters, since when) goes on where both judge the same things.
        """
        self.config = config
        self.machine = machine
        self._entries = assemble(config, machine)
        enabled = [entry for entry in self._entries if entry.enabled]
        self._scheduler = Scheduler(self._plans(enabled), self._publish, machine.clock)
        self.interval_s = min((entry.interval_s for entry in enabled), default=1.0)
        """Cadence of the node's own snapshot: that of the quickest collector."""
        self._intervals_s = {loop.plan.collector.component: loop.plan.interval_s for loop in self._scheduler.loops}
        self._evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme)
        if before is not None and before.config.health == config.health and before.components == self.components:
            self._evaluator = before._evaluator  # noqa: SLF001 - another of this class
        self.latest = LatestStore(machine.clock, StaleAfter(self._intervals_s))
        self._global: GlobalSnapshots | None = None
        self._components: ComponentSnapshots | None = None
        self._sinks = Sinks([self.latest])
        self._undo: list[Callable[[], object]] = []
        self._directory: SnapshotDirectory | None = None
        self._handed_on = False
        self._hung: set[str] = set()
        self._trouble = Trouble("health")
        self._cycles_seen = 0
        self._health: HealthScore | None = None
        self._judged_s = 0.0
        self._looked = False
        self._started_s = machine.clock.now().mono_s
        # A beat's grid is not exact to the millisecond: half a beat early is in time.
        self._judge_every_s = max(self.interval_s, *FEATURE_INTERVALS_S[Feature.HEALTH].values()) - self.interval_s / 2

    @property
    def components(self) -> frozenset[str]:
        """What is observed."""
        return frozenset(self._intervals_s)

    def start(self, directory: SnapshotDirectory | None = None) -> None:
        """Take the directory, listen, and let collectors run. What had begun is undone when any of it fails.

        ``directory``: the one of a predecessor, still held; it stays the caller's when this fails. Raises SnapshotError (another
        daemon has the directory), AddressInUseError or UsageError (the exporter cannot listen), WriteError.
        """
        try:
            self._sinks = Sinks(self._open_sinks(directory))
            self._undo.append(self._sinks.close)
            self._listen()
            self.machine.shared(KernelLog).start()
            self._undo.append(self._stop_collectors)
            self._scheduler.start()
            threading.Thread(target=self._identify, name="identity", daemon=True).start()
        except BaseException:
            if self._directory is directory:
                self._directory = None
            self.stop()
            raise

    def stop(self, successor: Config | None = None) -> SnapshotDirectory | None:
        """End collectors, listeners and sinks, in this order; safe to call after a failed start.

        When ``successor`` writes to the same snapshot directory, that is given back, still held, and nothing there says that the
        daemon was stopped: no reader is to take a reload for an end.
        """
        directory = self._directory
        settings = successor.snapshot if successor is not None else None
        self._handed_on = directory is not None and settings is not None and settings.enabled and settings.dir == directory.path
        while self._undo:
            self._undo.pop()()
        self.machine.close()
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
        young = now.mono_s - self._started_s < _YOUNG_S
        if self._health is None or young or now.mono_s - self._judged_s >= self._judge_every_s:
            self._health = self._judged(now)
            self._judged_s = now.mono_s
        if self._global is not None and self._looked_once(now):
            self._global.write(self._health)
        self._sinks.flush(now)
        self._watch()
        return self._health

    def _looked_once(self, now: Instant) -> bool:
        """Whether every collector has had its first cycle, or has had time enough for it: before, there is no verdict to give."""
        if not self._looked:
            costs = self._scheduler.costs().values()
            self._looked = all(cost.cycles for cost in costs) or now.mono_s - self._started_s >= _FIRST_ROUND_S
        return self._looked

    def progressed(self) -> bool:
        """Whether any collector has completed a cycle since the last call: what the watchdog is told."""
        cycles = self._scheduler.completed()
        moved = cycles > self._cycles_seen
        self._cycles_seen = cycles
        return moved

    def _judged(self, now: Instant) -> HealthScore:
        """Health by the newest readings; unknown, and why, when judging itself fails."""
        try:
            health = self._evaluator.evaluate(Readings(self.latest.batches(now)), now)
        except Exception as error:  # noqa: BLE001 - a rule's bug must not end the daemon
            problem = f"could not be judged: {type(error).__name__}: {error}"
            self._trouble.failed(problem)
            return unjudged(self.config.health.ruleset, problem, now)
        self._trouble.healed()
        return health

    def _watch(self) -> None:
        """Tell once of each collector that overruns its deadline, and once when it is back."""
        hung = {name: cost for name, cost in self._scheduler.costs().items() if cost.hung_s > 0}
        for name in hung.keys() - self._hung:
            _log.warning("collector %s hangs: its cycle has overrun the deadline; the others go on", name)
        for name in self._hung - hung.keys():
            _log.warning("collector %s is back", name)
        self._hung = set(hung)

    def _publish(self, batch: Batch) -> None:
        self._evaluator.note(batch)
        self._sinks.write(batch)

    def _costs(self) -> dict[str, CollectorCost]:
        return self._scheduler.costs()

    def _plans(self, entries: list[CollectorEntry]) -> list[CollectorPlan]:
        own = SelfCost(self.machine.clock, self._costs, lambda: self.machine.commands.started_total, lambda: self._health)
        collectors = [(entry.collector, entry.interval_s, entry.deadline_s) for entry in entries]
        return spread([*collectors, (own, own.default_interval_s, None)])

    def _open_sinks(self, directory: SnapshotDirectory | None) -> list[Sink]:
        config, clock, stale_after = self.config, self.machine.clock, StaleAfter(self._intervals_s)
        sinks: list[Sink] = [self.latest]
        if config.snapshot.enabled:
            self._directory = directory = directory or SnapshotDirectory(config.snapshot.dir)
            for name in directory.open(self._intervals_s):
                _log.info("removed %s from %s: nobody writes it any more", name, config.snapshot.dir)
            self._components = ComponentSnapshots(config.snapshot.dir, clock, stale_after, origin=directory.origin)
            self._global = self._global_snapshots(directory)
            self._undo.append(self._close_global)
            sinks.append(self._components)
        if config.storage.enabled:
            limits = Limits(max_age_s=config.storage.max_file_age_s, max_total_bytes=config.storage.max_total_bytes)
            sinks.append(JsonLines(config.storage.data_dir, clock, interval_s=config.storage.interval_s, limits=limits))
        return sinks

    def _global_snapshots(self, directory: SnapshotDirectory) -> GlobalSnapshots:
        snapshots = GlobalSnapshots(
            directory.path, self.machine.clock, self.interval_s, origin=directory.origin, renew=directory.renew
        )
        snapshots.set_collectors([_info(entry) for entry in self._entries])
        snapshots.set_intervals({component: round(seconds * 1000) for component, seconds in self._intervals_s.items()})
        return snapshots

    def _listen(self) -> None:
        settings = self.config.exporter
        if not settings.enabled:
            return
        renderer = Renderer(self.latest, naming=Naming(settings.naming), statuses=self._sinks.statuses)
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

    def _stop_collectors(self) -> None:
        for name in self._scheduler.stop(_STOP_S):
            _log.warning("collector %s did not come back within %g s; left behind", name, _STOP_S)


def _info(entry: CollectorEntry) -> CollectorInfo:
    return CollectorInfo(
        name=entry.name,
        component=entry.collector.component,
        priority="High",
        interval=duration_text(entry.interval_s),
        enabled=entry.enabled,
    )
