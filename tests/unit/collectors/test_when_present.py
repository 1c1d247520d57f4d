"""Code for accelerators is loaded where there are some, also when they come later, and nowhere else."""

import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.collectors import gpu, npu
from nodeproof.collectors.base import Collector, Selection
from nodeproof.collectors.when_present import Devices, WhenPresent
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.metric import Batch, Metric


class _All:
    def wants(self, component: str, name: str) -> bool:
        del component, name
        return True


ALL = _All()
_CARD = "sys/bus/pci/devices/0000:17:00.0"


class Real:
    """A collector of one reading."""

    name = component = "gpu"
    default_interval_s = 3.0

    def __init__(self) -> None:
        self.cycles = self.forgotten = 0

    def collect(self) -> Batch:
        self.cycles += 1
        return Batch("gpu", "now", 1.0, [Metric("gpu", "cards", 1.0, "")], [], self.cycles)

    def forget(self) -> None:
        self.forgotten += 1


def test_it_says_that_there_are_none_and_becomes_the_collector_when_there_are(tmp_path: Path) -> None:
    clock = ManualClock()
    machine = recorded_machine(str(tmp_path), clock=clock)
    real, there, asked = Real(), [False], [0]

    def present(_: Machine) -> bool:
        asked[0] += 1
        return there[0]

    def make(_: Machine, __: Selection) -> Collector:
        return real

    made = WhenPresent(Devices("gpu", present, make, "none here"), machine, ALL)
    first = made.collect()
    assert [(entry.name, entry.state, entry.reason) for entry in first.missing] == [
        ("device_count", Absence.NOT_APPLICABLE, "none here")
    ]
    assert (made.name, made.component, first.metrics, first.sequence) == ("gpu", "gpu", [], 1)
    there[0] = True
    clock.advance(10)
    assert made.collect().metrics == []
    assert asked[0] == 1  # looked for once a minute
    clock.advance(60)
    batch = made.collect()
    assert ([metric.name for metric in batch.metrics], batch.missing, batch.sequence) == (["cards"], [], 3)
    there[0] = False
    clock.advance(60)
    assert made.collect().sequence == 4  # for good: what is lost is for the collector to tell
    made.forget()
    assert real.forgotten == 1


def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    def present(_: Machine) -> bool:
        raise NoData(Absence.NO_PERMISSION, "the bus may not be looked through")

    def make(_: Machine, __: Selection) -> Collector:
        raise AssertionError

    made = WhenPresent(Devices("gpu", present, make, "none"), recorded_machine(str(tmp_path)), ALL)
    assert [entry.state for entry in made.collect().missing] == [Absence.NO_PERMISSION]
    made.forget()
    assert [entry.state for entry in made.collect().missing] == [Absence.NO_PERMISSION]


@pytest.mark.parametrize(
    ("module", "files", "tools"),
    [
        (gpu, {"dev/nvidiactl": ""}, {}),
        (gpu, {}, {"nvidia-smi -L": b""}),
        (
            gpu,
            {"sys/bus/pci/devices/0000:17:00.0/class": "0x030200\n", "sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de\n"},
            {},
        ),
        (npu, {"dev/davinci3": ""}, {}),
        (npu, {}, {"npu-smi info": b""}),
        (
            npu,
            {"sys/bus/pci/devices/0000:17:00.0/class": "0x120000\n", "sys/bus/pci/devices/0000:17:00.0/vendor": "0x19e5\n"},
            {},
        ),
    ],
)
def test_any_hint_is_enough(tmp_path: Path, module: object, files: dict[str, str], tools: dict[str, bytes]) -> None:
    assert module in {gpu, npu}
    (tmp_path / "dev").mkdir()
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    machine = recorded_machine(str(tmp_path), dict(tools))
    assert getattr(module, "_hinted")(machine)  # noqa: B009 - both have it


@pytest.mark.parametrize("module", [gpu, npu])
def test_without_a_hint_there_is_none(tmp_path: Path, module: object) -> None:
    (tmp_path / "dev").mkdir()
    assert not getattr(module, "_hinted")(recorded_machine(str(tmp_path)))  # noqa: B009 - both have it


def test_a_daemon_without_cards_loads_none_of_it() -> None:
    heavy = "{'nvml', 'amd_gpus', 'gpu_fleet', 'dcmi', 'hccn', 'npu_smi'}"
    ours = "name.startswith('nodeproof.collectors.services.')"
    script = (
        f"import sys, nodeproof.daemon.service; print([name for name in sys.modules if {ours} and name.split('.')[3] in {heavy}])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
