"""Runs of endpoint benchmarks under the executor, with a box that is as the test says."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.clock import SystemClock
from nodeproof.model.hardware import CellReport, Validity
from nodeproof.model.run import RunRecord
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.headless import HeadlessOptions, RunReporter, run_blocking
from nodeproof.runs.messages import MessageLog
from nodeproof.runs.ports import NullEvidence
from nodeproof.runs.registry import Registry
from nodeproof.runs.store import RunStore

__all__ = ["JudgedBox", "LoggedHandle", "run_benchmark"]


class JudgedBox(NullEvidence):
    """A box of which nothing is known but how it was in each cell, in the order in which they are judged."""

    def __init__(self, *validities: Validity) -> None:
        super().__init__("a test")
        self.judged: list[str] = []
        self._validities = list(validities)

    def judge(self, name: str, begin_s: float, end_s: float) -> CellReport:
        """The next of them."""
        self.judged.append(name)
        validity = self._validities.pop(0) if self._validities else Validity.VALID
        return CellReport(name, begin_s, end_s, validity, ["throttled 1.7 %"] if validity is Validity.INVALID else [])


class LoggedHandle(PluginHandle):
    """A handle without a run."""

    def __init__(self, home: str = "/nowhere") -> None:
        self._messages = MessageLog(SystemClock(), lambda _: None)
        super().__init__(
            run_number=1,
            log=self._messages,
            token=CancelToken(),
            artifacts=ArtifactStore(home, "test"),
            target=None,
            evidence=NullEvidence(),
            clock=SystemClock(),
            file_path=lambda name: f"{home}/{name}",
        )

    @property
    def warnings(self) -> list[str]:
        """What was warned of."""
        return self._messages.warnings()


def run_benchmark(
    home: Path,
    url: str,
    name: str,
    params: Mapping[str, str],
    *,
    box: Sequence[Validity] | None = None,
    serve_overrides: Mapping[str, str] | None = None,
) -> tuple[RunRecord, Path]:
    """The record of a run of the benchmark with this id or alias, and its directory."""
    registry = Registry()
    for descriptor in DESCRIPTORS:
        registry.add(descriptor, "test")
    evidence = JudgedBox(*(box or ()))
    executor = BenchmarkExecutor(home=str(home), store=RunStore(str(home / "runs")), evidence=lambda: evidence)
    target = TargetEndpoint.new(url, "m", serve_overrides)
    options = HeadlessOptions(target=target, poll_s=0.05, probe_coherence=False)
    outcome = run_blocking(executor, registry.get(name), params, RunReporter(), options=options)
    assert not outcome.save_error, outcome.save_error
    # What a run leaves must be readable: nobody keeps what cannot be read again.
    assert msgspec.json.decode(msgspec.json.encode(outcome.record), type=RunRecord) == outcome.record
    return outcome.record, Path(outcome.saved_to)
