"""A node whose readings a test sets one by one, judged as often as it likes."""

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.health import Evaluator, Readings
from nodeproof.model.catalogue import CATALOGUE
from nodeproof.model.health import Explanation, Finding, HealthScore, UnknownConcern
from nodeproof.model.metric import Batch, Metric, Missing

__all__ = ["HEALTHY", "Node", "bare", "by_rule", "finding", "healthy", "unknown", "with_gpus", "with_npus"]

Key = tuple[str, str, tuple[tuple[str, str], ...]]

HEALTHY: tuple[tuple[str, str, dict[str, str], float], ...] = (
    ("cpu", "usage", {"core": "total"}, 12.0),
    ("cpu", "usage", {"core": "0"}, 12.0),
    ("cpu", "temperature", {"cpu": "0", "sensor": "Package id 0"}, 48.0),
    ("cpu", "load_average", {"interval": "1m"}, 0.5),
    ("cpu", "load_average", {"interval": "5m"}, 0.5),
    ("cpu", "core_num", {}, 4.0),
    ("cpu", "cpu_ce_errors", {"cpu": "0"}, 0.0),
    ("cpu", "cpu_uce_errors", {"cpu": "0"}, 0.0),
    ("memory", "usage", {}, 30.0),
    ("memory", "swap_usage", {}, 0.0),
    ("memory", "saturation", {"interval": "avg10"}, 0.0),
    ("memory", "fragmentation", {"node": "0", "zone": "Normal"}, 20.0),
    ("memory", "ecc_ce_errors", {"mc": "mc0"}, 0.0),
    ("memory", "ecc_uce_errors", {"mc": "mc0"}, 0.0),
    ("disk", "space_detail", {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4", "field": "total"}, 1000.0),
    ("disk", "space_detail", {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4", "field": "used"}, 300.0),
    ("disk", "space_detail", {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4", "field": "available"}, 650.0),
    ("disk", "space_usage", {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4"}, 30.0),
    ("disk", "io_wait", {}, 1.0),
    ("disk", "smart_status", {"device": "sda", "status": "PASSED"}, 1.0),
    ("network", "error_count", {"interface": "eth0", "type": "rx_err"}, 0.0),
    ("network", "connection_count", {"state": "TIME_WAIT"}, 10.0),
    ("network", "connection_count", {"state": "ESTABLISHED"}, 20.0),
    ("chassis", "inlet_temp", {}, 22.0),
    ("chassis", "outlet_temp", {}, 35.0),
)
"""Everything that the tables of a host without cards look at, at values with nothing wrong."""


class Node:
    """Readings, time and an evaluator. Each :meth:`judge` is one collector cycle of every component, ``every_s`` apart."""

    def __init__(self, evaluator: Evaluator | None = None, *, every_s: float = 1.0) -> None:
        self.evaluator = evaluator if evaluator is not None else Evaluator(confirm=False)
        self.every_s = every_s
        self.at = Instant(1_790_000_000.0, 1_000.0)
        self.values: dict[Key, float] = {}
        self.absences: dict[Key, Missing] = {}
        self.components: set[str] = set()
        self._readings = Readings({})

    def set(self, component: str, name: str, value: float, **labels: str) -> "Node":
        """One reading."""
        key = (component, name, tuple(labels.items()))
        self.values[key] = value
        self.absences.pop(key, None)
        self.components.add(component)
        return self

    def drop(self, component: str, name: str = "") -> "Node":
        """Forget one metric, or all of a component; nobody reports it missing."""
        for held in (self.values, self.absences):
            for key in [key for key in held if key[0] == component and name in {"", key[1]}]:
                del held[key]
        return self

    def miss(
        self, component: str, name: str, state: Absence = Absence.READ_ERROR, reason: str = "it broke", /, **labels: str
    ) -> "Node":
        """One metric, or one of its readings, turned into an absence."""
        wanted = tuple(labels.items())
        for key in [key for key in self.values if key[:2] == (component, name) and (not wanted or set(wanted) <= set(key[2]))]:
            del self.values[key]
        entry = Missing(component, name, state, reason, dict(labels) or None, source="/some/file", remedy="do something")
        self.absences[component, name, wanted] = entry
        self.components.add(component)
        return self

    def miss_component(self, component: str, state: Absence = Absence.READ_ERROR, reason: str = "it broke") -> "Node":
        """Every metric of a component turned into an absence."""
        for name in {key[1] for key in self.values if key[0] == component}:
            self.miss(component, name, state, reason)
        return self

    def batches(self) -> dict[str, Batch]:
        """What the collectors would hand in now."""
        stamp = rfc3339(self.at.wall_s)
        found = {name: Batch(name, stamp, self.at.mono_s, [], []) for name in sorted(self.components)}
        for (component, name, labels), value in self.values.items():
            spec = CATALOGUE.get((component, name))
            unit = "" if spec is None else spec.unit
            found[component].metrics.append(Metric(component, name, value, unit, dict(labels) or None, stamp))
        for entry in self.absences.values():
            found[entry.component].missing.append(entry)
        return found

    def pass_time(self, seconds: float) -> "Node":
        """Time goes by."""
        self.at = Instant(self.at.wall_s + seconds, self.at.mono_s + seconds)
        return self

    def judge(self, times: int = 1) -> HealthScore:
        """So many cycles, each followed by an evaluation; the last answer."""
        for _ in range(times):
            self.pass_time(self.every_s)
            self._readings = Readings(self.batches())
            score = self.evaluator.evaluate(self._readings, self.at)
        return score

    def judge_again(self) -> HealthScore:
        """An evaluation of the readings that were judged last."""
        return self.evaluator.evaluate(self._readings, self.at)

    def explain(self, rule: str) -> list[Explanation]:
        """Explanations of the readings that were judged last."""
        return self.evaluator.explain(rule, self._readings, self.at)


def bare(evaluator: Evaluator | None = None) -> Node:
    """A node that tells nothing."""
    return Node(evaluator)


def healthy(evaluator: Evaluator | None = None, *, every_s: float = 1.0) -> Node:
    """A bare-metal host without cards, everything read and good."""
    node = Node(evaluator, every_s=every_s)
    for component, name, labels, value in HEALTHY:
        node.set(component, name, value, **labels)
    return node


def with_gpus(count: int, evaluator: Evaluator | None = None) -> Node:
    """The healthy host with so many good GPUs."""
    node = healthy(evaluator)
    for card in map(str, range(count)):
        node.set("gpu", "temperature", 50, gpu_id=card).set("gpu", "memory_usage", 10, gpu_id=card)
        node.set("gpu", "utilization", 5, gpu_id=card).set("gpu", "ecc_errors", 0, gpu_id=card)
    return node


def with_npus(count: int, evaluator: Evaluator | None = None) -> Node:
    """The healthy host with so many good NPUs of one chip."""
    node = healthy(evaluator)
    for card in map(str, range(count)):
        add_npu(node, card)
    return node


def add_npu(node: Node, card: str) -> None:
    """One good NPU."""
    where = {"npu_id": card, "chip_id": "0"}
    for name, value in (("card_drop", 0), ("temperature", 50), ("memory_usage", 10), ("utilization", 5), ("error_code", 0)):
        node.set("npu", name, value, **where)
    node.set("npu", "health_status", 1, **where)
    for memory in ("hbm", "ddr"):
        for kind in ("single", "double"):
            node.set("npu", f"{memory}_{kind}_ecc", 0, **where)


def by_rule(score: HealthScore) -> dict[str, Finding]:
    """Findings by rule; several of one rule: the last."""
    return {one.rule: one for one in score.findings}


def finding(score: HealthScore, rule: str) -> Finding:
    """The one finding of ``rule``."""
    found = [one for one in score.findings if one.rule == rule]
    assert len(found) == 1, f"{rule}: {found}"
    return found[0]


def unknown(score: HealthScore, component: str, concern: str) -> UnknownConcern:
    """The one entry about this concern."""
    found = [one for one in score.unknown if one.component == component and concern in one.concern.split(", ")]
    assert len(found) == 1, f"{component} {concern}: {score.unknown}"
    return found[0]
