"""A recorded host with the collector of component cpu on it."""

from collections.abc import Mapping

from nodeproof.collectors.cpu.collector import create
from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.metric import Batch, Missing
from support.tree import write

__all__ = ["CpuHost"]


class CpuHost:
    """Runs cycles and looks readings up; ``wanted`` = names to collect, None = all."""

    def __init__(
        self,
        root: str,
        answers: Mapping[str, bytes | CommandResult | CommandError] | None = None,
        wanted: frozenset[str] | None = None,
    ) -> None:
        self.root = root
        self.clock = ManualClock()
        self.machine = recorded_machine(root, answers, self.clock)
        self._wanted = wanted
        self.collector = create(self.machine, self)
        self.batch: Batch | None = None

    def wants(self, component: str, name: str) -> bool:
        """Selection of the collector."""
        return component == "cpu" and (self._wanted is None or name in self._wanted)

    def write(self, path: str, content: str | bytes | float) -> None:
        """Change one file in place, as the kernel does: an open descriptor reads the new content."""
        write(self.root, path, content)

    def cycle(self, after_s: float = 0.0) -> Batch:
        """One cycle, and the slow calls that it started come to their end."""
        self.clock.advance(after_s)
        self.batch = self.collector.collect()
        self.machine.settle(10.0)
        return self.batch

    def value(self, name: str, **labels: str) -> float:
        """The one reading of ``name`` with exactly these labels."""
        found = [metric.value for metric in self._batch.metrics if metric.name == name and (metric.labels or {}) == labels]
        assert len(found) == 1, f"{name} {labels}: {found}, missing {self.absences(name)}"
        return found[0]

    def values(self, name: str) -> list[tuple[dict[str, str], float]]:
        """All readings of ``name``."""
        return [(metric.labels or {}, metric.value) for metric in self._batch.metrics if metric.name == name]

    def absences(self, name: str) -> list[Missing]:
        """All absences of ``name``."""
        return [entry for entry in self._batch.missing if entry.name == name]

    def absence(self, name: str, **labels: str) -> Missing:
        """The one absence of ``name`` with exactly these labels."""
        found = [entry for entry in self.absences(name) if (entry.labels or {}) == labels]
        assert len(found) == 1, f"{name} {labels}: {found}, readings {self.values(name)}"
        return found[0]

    @property
    def _batch(self) -> Batch:
        assert self.batch is not None
        return self.batch
