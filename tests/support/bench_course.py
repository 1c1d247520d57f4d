"""Runs of benchmarks under the executor, and servers in processes of their own."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.model.run import LogEvent, RunRecord
from nodeproof.runs.endpoint import Secret, TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.headless import HeadlessOptions, RunReporter, run_blocking
from nodeproof.runs.store import RunStore

__all__ = ["Outcome", "run", "serving"]

_BY_ID = {descriptor.id: descriptor for descriptor in DESCRIPTORS}


class Outcome(NamedTuple):
    """What came of a run."""

    record: RunRecord
    files: Path
    """What it left."""

    @property
    def kind(self) -> str:
        """Of the verdict."""
        return str(self.record.verdict.kind)

    @property
    def reason(self) -> str:
        """Of the verdict."""
        return self.record.verdict.reason

    @property
    def metrics(self) -> dict[str, float]:
        """Of the last frame."""
        return self.record.frame.metrics


class _Reporter(RunReporter):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def message(self, message: object) -> None:
        event = getattr(message, "event", None)
        if isinstance(event, LogEvent):
            self.lines.append(event.text)


def run(tmp_path: Path, url: str, benchmark: str, model: str = "m", ca_file: str = "", **params: str) -> Outcome:
    """Run ``benchmark`` against ``url``."""
    store = RunStore(str(tmp_path / "runs"))
    executor = BenchmarkExecutor(home=str(tmp_path), store=store)
    options = HeadlessOptions(target=TargetEndpoint.new(url, model, key=Secret("sk-planted"), ca_file=ca_file), poll_s=0.05)
    outcome = run_blocking(executor, _BY_ID[benchmark], params, _Reporter(), options=options)
    return Outcome(outcome.record, Path(outcome.saved_to) / "files")


@contextlib.contextmanager
def serving(*options: str) -> Iterator[str]:
    """A server with known times as a process of its own; its address."""
    command = [sys.executable, "-m", "nodeproof.bench.testing", "--no-log", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()
