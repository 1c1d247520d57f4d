import threading
from pathlib import Path

from nodeproof.daemon import snapshot_facade
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.metric import Metric
from nodeproof.sinks import facade
from support.batches import metric


class Source:
    def all_metrics(self) -> list[Metric]:
        return [metric("usage", 95.0, {"core": "total"}), metric("usage", 10.0, component="memory")]

    def ready(self) -> bool:
        return True


def test_every_name_of_the_pure_facade_is_here_too() -> None:
    assert set(facade.__all__) <= set(snapshot_facade.__all__)
    assert all(hasattr(snapshot_facade, name) for name in snapshot_facade.__all__)


def test_the_node_is_judged_by_the_default_rules(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    writer = snapshot_facade.GlobalWriter(Source(), str(tmp_path))
    assert writer.interval_s == 5.0
    writer.run(stop)
    health = snapshot_facade.read_global(str(tmp_path / "snapshot.json")).health
    assert health.ruleset == "0.3.5"
    assert set(health.components) >= {"cpu", "memory"}


def test_health_of_readings_at_once() -> None:
    score = snapshot_facade.assess(Source().all_metrics())
    assert [deduction.rule for deduction in score.components["cpu"].deductions or ()] == ["usage>90%"]


def test_identity_of_a_machine(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.1.0-test\n")
    specs = snapshot_facade.collect_hw_specs(recorded_machine(str(tmp_path)))
    assert [(spec.component, spec.name, spec.labels) for spec in specs] == [("system", "os_info", {"kernel": "6.1.0-test"})]


def test_identity_of_this_machine() -> None:
    specs = snapshot_facade.collect_hw_specs()
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    (os_info,) = [spec for spec in specs if spec.name == "os_info"]
    assert os_info.labels is not None
    assert os_info.labels["kernel"] == release
