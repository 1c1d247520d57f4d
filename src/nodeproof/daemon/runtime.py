"""One life of the daemon: from a configuration to running collectors, sinks and exporter, and back to nothing."""

import logging
import threading
from collections.abc import Callable

from nodeproof.collectors.disk import collector as disk
from nodeproof.collectors.network import identity as network_identity
from nodeproof.collectors.services.identity import collect_hw_specs
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry, assemble
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import FEATURE_INTERVALS_S, Feature
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric
from nodeproof.model.snapshot import CollectorInfo
from nodeproof.scheduler.loop import CollectorCost, CollectorPlan
from nodeproof.scheduler.scheduler import Scheduler, spread
from nodeproof.scheduler.self_cost import SelfCost
from nodeproof.sinks.base import Sink, Sinks, StaleAfter
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
_YOUNG_S = 6.0
"""So long after the start each beat brings something that was unknown before, and health is judged at every one."""

IDENTITIES = (disk.identity, network_identity.identity)
"""What components tell once of their hardware."""


class Runtime:
    """Everything that lives between :meth:`start` and :meth:`stop`."""

    def __init__(self, config: Config, machine: Machine) -> None:
        """Nothing runs or is written yet. Raises ConfigError for what only the installed collectors can tell is wrong."""
        self.config = config
        self.machine = machine
        self._entries = assemble(config, machine)
        enabled = [entry for entry in self._entries if entry.enabled]
        self._scheduler = Scheduler(self._plans(enabled), self._publish, machine.clock)
        self.interval_s = min((entry.interval_s for entry in enabled), default=1.0)
        """Cadence of the node's own snapshot: that of the quickest collector."""
        self._intervals_s = {loop.plan.collector.component: loop.plan.interval_s for loop in self._scheduler.loops}
        self._evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme)
        self.latest = LatestStore(machine.clock, StaleAfter(self._intervals_s))
        self._global: GlobalSnapshots | None = None
        self._components: ComponentSnapshots | None = None
        self._sinks = Sinks([self.latest])
        self._undo: list[Callable[[], object]] = []
        self._cycles_seen = 0
        self._health: HealthScore | None = None
        self._judged_s = 0.0
        self._started_s = machine.clock.now().mono_s
        # A beat's grid is not exact to the millisecond: half a beat early is in time.
        self._judge_every_s = max(self.interval_s, min(FEATURE_INTERVALS_S[Feature.HEALTH].values())) - self.interval_s / 2

    def start(self) -> None:
        """Take the directory, listen, and let collectors run. What had begun is undone when any of it fails.

        Raises SnapshotError (another daemon has the directory), AddressInUseError (the exporter's port is taken), WriteError.
        """
        try:
            self._sinks = Sinks(self._open_sinks())
            self._undo.append(self._sinks.close)
            self._listen()
            self.machine.shared(KernelLog).start()
            self._undo.append(self._stop_collectors)
            self._scheduler.start()
            threading.Thread(target=self._identify, name="identity", daemon=True).start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End collectors, listeners and sinks, in this order; safe to call after a failed start."""
        while self._undo:
            self._undo.pop()()
        self.machine.close()

    def tick(self) -> HealthScore:
        """Write the node's snapshot with its health, judged anew when that is due, and let sinks do what is due.

        Called every :attr:`interval_s`.
        """
        now = self.machine.clock.now()
        young = now.mono_s - self._started_s < _YOUNG_S
        if self._health is None or young or now.mono_s - self._judged_s >= self._judge_every_s:
            self._health = self._evaluator.evaluate(Readings(self.latest.batches(now)), now)
            self._judged_s = now.mono_s
        if self._global is not None and self.latest.ready:
            self._global.write(self._health)
        self._sinks.flush(now)
        return self._health

    def progressed(self) -> bool:
        """Whether any collector has completed a cycle since the last call: what the watchdog is told."""
        cycles = sum(cost.cycles - cost.failures for cost in self._scheduler.costs().values())
        moved = cycles > self._cycles_seen
        self._cycles_seen = cycles
        return moved

    def _publish(self, batch: Batch) -> None:
        self._evaluator.note(batch)
        self._sinks.write(batch)

    def _costs(self) -> dict[str, CollectorCost]:
        return self._scheduler.costs()

    def _plans(self, entries: list[CollectorEntry]) -> list[CollectorPlan]:
        own = SelfCost(self.machine.clock, self._costs, lambda: self.machine.commands.started_total)
        collectors = [(entry.collector, entry.interval_s, entry.deadline_s) for entry in entries]
        return spread([*collectors, (own, own.default_interval_s, None)])

    def _open_sinks(self) -> list[Sink]:
        config, clock, stale_after = self.config, self.machine.clock, StaleAfter(self._intervals_s)
        sinks: list[Sink] = [self.latest]
        if config.snapshot.enabled:
            directory = SnapshotDirectory(config.snapshot.dir)
            for name in directory.open(self._intervals_s):
                _log.info("removed %s from %s: left over from an earlier daemon", name, config.snapshot.dir)
            self._undo.append(directory.close)
            self._components = ComponentSnapshots(config.snapshot.dir, clock, stale_after, origin=directory.origin)
            self._global = self._global_snapshots(directory)
            self._undo.append(self._global.close)
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
