"""A fixture host observed by everything the daemon is made of: all collectors, health, snapshot files and exposition.

Nothing of this machine comes in: files lie below a folder, programs give recorded answers, and the clock moves only when told.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from nodeproof.collectors import chassis, npu
from nodeproof.collectors.base import Collector, Selection
from nodeproof.collectors.cpu import collector as cpu
from nodeproof.collectors.disk import collector as disk
from nodeproof.collectors.gpu import collector as gpu
from nodeproof.collectors.memory import collector as memory
from nodeproof.collectors.network import collector as network
from nodeproof.collectors.services.identity import collect_hw_specs
from nodeproof.collectors.system import collector as system
from nodeproof.daemon.runtime import IDENTITIES
from nodeproof.errors import CommandError
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings
from nodeproof.host.background import Background
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric
from nodeproof.sinks.base import Sink, Sinks, StaleAfter
from nodeproof.sinks.exposition_names import Format, Naming
from nodeproof.sinks.latest import LatestStore
from nodeproof.sinks.prometheus import Renderer
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, Origin
from support.bmc import ipmitool_answers
from support.disk import smartctl_line
from support.hosts import GENERATED, KEPT, write_host
from support.hosts_disk import NVME, SAS, diskstats_256
from support.hosts_gpu import mixed_answers, nvidia_8_answers
from support.hosts_network import write_network
from support.hosts_npu import answers_of
from support.smartctl import smartctl_output
from support.tree import write

__all__ = ["FACTORIES", "HOSTS", "WholeHost", "recorded_answers"]

_T = TypeVar("_T")
Answers = Mapping[str, bytes | CommandResult | CommandError]

HOSTS = tuple(sorted({*GENERATED, *(path.name for path in KEPT.iterdir() if path.is_dir())}))
"""Every fixture host, kept or generated."""

FACTORIES: Mapping[str, Callable[[Machine, Selection], Collector]] = {
    "chassis": chassis.create,
    "cpu": cpu.create,
    "disk": disk.create,
    "gpu": gpu.create,
    "memory": memory.create,
    "network": network.create,
    "npu": npu.create,
    "system": system.create,
}
"""What the entry points of ``nodeproof.collectors`` name."""

_ORIGIN = Origin("00000000-0000-4000-8000-000000000000", 4242)
_LOOKS = 5
"""Slow sources that wait for one another have all answered by then."""
_APART_S = 10.0


class _Machine(Machine):
    """A recorded machine whose slow sources answer between cycles: what a cycle sees depends on no thread's speed."""

    def __init__(self, root: str, answers: Answers, clock: ManualClock) -> None:
        super().__init__(RecordedFiles(root), RecordedCommands(answers), clock)
        self.gate = threading.Event()
        self.gate.set()

    def background(self, name: str, call: Callable[[], _T], *, interval_s: float, deadline_s: float) -> Background[_T]:
        """As the real one, with the gate before each call."""

        def wait_and_call() -> _T:
            assert self.gate.wait(10)
            return call()

        return super().background(name, wait_and_call, interval_s=interval_s, deadline_s=deadline_s)


class WholeHost:
    """One fixture host; :meth:`observe` runs its cycles."""

    def __init__(self, name: str, folder: Path, selection: Selection, naming: Naming = Naming.NODEPROOF) -> None:
        self.name = name
        self.root = write_host(name, str(folder / name))
        self.snapshots = folder / "snapshot"
        self.snapshots.mkdir()
        self.clock = ManualClock()
        self.machine = _Machine(self.root, recorded_answers(name), self.clock)
        self.collectors = {component: create(self.machine, selection) for component, create in FACTORIES.items()}
        stale_after = StaleAfter(dict.fromkeys(FACTORIES, _APART_S))
        self.latest = LatestStore(self.clock, stale_after)
        self._files = ComponentSnapshots(str(self.snapshots), self.clock, stale_after, origin=_ORIGIN)
        self._global = GlobalSnapshots(str(self.snapshots), self.clock, 1.0, origin=_ORIGIN)
        sinks: list[Sink] = [self.latest, self._files]
        self._sinks = Sinks(sinks)
        self.renderer = Renderer(self.latest, naming=naming, version="0.0.0", statuses=self._sinks.statuses)
        self._evaluator = Evaluator()
        self.batches: dict[str, Batch] = {}
        self.identity: list[Metric] = []

    def observe(self) -> HealthScore:
        """Several looks ten seconds apart, each of all sources however slow; the host's counters move on before each."""
        self._identify()
        for tick in range(_LOOKS):
            if tick:
                self.clock.advance(_APART_S)
                _step(self.name, self.root, tick)
            for collector in self.collectors.values():
                collector.forget()
            health = self.cycle()
        self.machine.close()
        return health

    def cycle(self) -> HealthScore:
        """One cycle of every collector, handed to all sinks and judged; slow sources that it asked have answered afterwards."""
        self.machine.gate.clear()
        for component, collector in self.collectors.items():
            batch = self.batches[component] = collector.collect()
            self._evaluator.note(batch)
            self._sinks.write(batch)
        now = self.clock.now()
        health = self._evaluator.evaluate(Readings(self.latest.batches(now)), now)
        self._global.write(health)
        self.machine.gate.set()
        self.machine.settle(10.0)
        return health

    def page(self, form: Format) -> str:
        """The exposition as it stands."""
        return self.renderer.render(form).decode()

    def _identify(self) -> None:
        specs: dict[str, list[Metric]] = {}
        self.identity = collect_hw_specs(self.machine, IDENTITIES)
        for spec in self.identity:
            specs.setdefault(spec.component, []).append(spec)
        self._global.set_system_specs(specs.pop("system", []))
        for component, found in specs.items():
            self._files.set_comp_specs(component, found)
        self.machine.settle(10.0)


def recorded_answers(name: str) -> Answers:
    """What the programs on a host say."""
    answers: dict[str, Answers] = {
        "bare-x86-256cpu": {smartctl_line(one): smartctl_output("sas-hdd.json") for one in SAS}
        | {smartctl_line(one): smartctl_output("nvme.json") for one in NVME},
        "bmc-huawei": ipmitool_answers("huawei"),
        "bmc-supermicro": ipmitool_answers("supermicro"),
        "gpu-mixed": mixed_answers(),
        "gpu-nvidia-8": nvidia_8_answers(),
        "storage-sick": {
            smartctl_line("sda"): smartctl_output("failing.json"),
            smartctl_line("sdb"): smartctl_output("sata-hdd.json"),
            smartctl_line("sdc"): smartctl_output("no-device-type.json"),
            smartctl_line("sdd"): smartctl_output("case-41.1.json"),
            smartctl_line("nvme0n1"): smartctl_output("nvme-read-only.json"),
        },
    }
    return answers_of(name) if name.startswith("npu-") else answers.get(name, {})


_TICKS = (100, 0, 50, 700, 150, 0, 0, 0, 0, 0)
"""What each row of /proc/stat grows by in ten seconds at 100 Hz: user, nice, system, idle, iowait ..."""


def _step(name: str, root: str, tick: int) -> None:
    """Let the host's counters move on."""
    path = Path(f"{root}/proc/stat")
    if path.exists():
        path.write_text("".join([_grown(line) for line in path.read_text("utf-8").splitlines(keepends=True)]), "utf-8")
    if name == "bare-x86-256cpu":
        write_network(root, tick=tick)
        write(root, "/proc/diskstats", diskstats_256(tick))


def _grown(line: str) -> str:
    head, *numbers = line.split()
    if not head.startswith("cpu"):
        return line
    return " ".join([head, *(str(int(number) + more) for number, more in zip(numbers, _TICKS, strict=False))]) + "\n"
