"""A recorded machine with a BMC, and the tool outputs that stand in ``tests/fixtures/commands/ipmitool``."""

from pathlib import Path

from nodeproof.collectors.base import Collector
from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.metric import Batch, Missing

__all__ = ["EVERYTHING", "bmc_machine", "ipmitool_answers", "ipmitool_output", "missing_of", "settled", "values"]

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_CALLS = {
    "sensor": "ipmitool sensor",
    "dcmi": "ipmitool dcmi power reading",
    "chassis": "ipmitool chassis status",
    "psu": "ipmitool sdr type Power Supply",
    "sel_info": "ipmitool sel info",
    "sel_elist": "ipmitool sel elist last 512",
}


class _Everything:
    def wants(self, component: str, name: str) -> bool:  # noqa: ARG002 - the protocol's parameters
        return True


EVERYTHING = _Everything()


def ipmitool_output(name: str) -> bytes:
    """One recorded output, ``dell.sensor``."""
    return (_FIXTURES / "commands" / "ipmitool" / f"{name}.txt").read_bytes()


def ipmitool_answers(maker: str) -> dict[str, bytes | CommandResult | CommandError]:
    """Every output recorded for ``maker``, by command line."""
    folder = _FIXTURES / "commands" / "ipmitool"
    return {
        line: (folder / f"{maker}.{kind}.txt").read_bytes()
        for kind, line in _CALLS.items()
        if (folder / f"{maker}.{kind}.txt").exists()
    }


def bmc_machine(
    answers: dict[str, bytes | CommandResult | CommandError], clock: ManualClock | None = None, host: str = "bmc-supermicro"
) -> Machine:
    """A machine with ``/dev/ipmi0`` whose ipmitool gives ``answers``."""
    return recorded_machine(str(_FIXTURES / "hosts" / host), answers, clock or ManualClock())


def settled(machine: Machine, collector: Collector, *, cycles: int = 4) -> Batch:
    """What the collector brings once every slow call that it asked for has ended."""
    for _ in range(cycles):
        collector.collect()
        machine.settle(10.0)
    return collector.collect()


def values(batch: Batch) -> dict[tuple[str, ...], float]:
    """Values by name and label values, in the order of the label keys."""
    return {
        (metric.name, *(value for _, value in sorted((metric.labels or {}).items(), reverse=True))): metric.value
        for metric in batch.metrics
    }


def missing_of(batch: Batch, name: str) -> list[Missing]:
    """Absences of one metric."""
    return [entry for entry in batch.missing if entry.name == name]
