"""What the benchmarks of speed share: cells measured one after the other, and what makes a cell worth nothing."""

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof import __version__
from nodeproof.bench.client import Timeouts
from nodeproof.bench.load.benchmark import needed_target
from nodeproof.bench.load.measure import Cell, Measurement
from nodeproof.bench.load.plan import Lengths, LoadPlan, PromptPlan, Where
from nodeproof.bench.load.prompts import filler
from nodeproof.bench.speed.probing import Prepared, calibrated, limits_of, prepare
from nodeproof.bench.speed.tasks import corpus_sha256
from nodeproof.bench.stats.rows import Answers, read_answers
from nodeproof.errors import RunError
from nodeproof.model.run import Elapsed, Frame, ResultTable, RunStatus, Stat, Verdict
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import ParamSpec, ParamValues

__all__ = ["CellPlan", "Shape", "SpeedBenchmark", "Taken", "doubt", "failed_how", "plan_of"]

_TURN_S = 1.0
_DAY_S = 86400.0
_TAG_DIGITS = 6
_SAMPLE_WORDS = 512


class CellPlan(NamedTuple):
    """A cell that is to be measured."""

    name: str
    plan: LoadPlan


class Shape(NamedTuple):
    """What a cell asks for."""

    input_tokens: int
    output_tokens: int
    concurrency: int = 1
    counted: int = 1
    """Requests that are to count."""
    warmup: int = 0
    """Requests before them that do not."""
    distinct: int = 0
    """Different prompts, asked in turn; 0 = each request has one of its own."""
    task: str = ""
    words: int = 0


class Taken(NamedTuple):
    """A cell that was measured."""

    cell: Cell
    plan: LoadPlan
    answers: Answers


class SpeedBenchmark:
    """One run. What differs between the benchmarks is :meth:`arrange` and :meth:`judged`."""

    def __init__(self, descriptor: Descriptor, parameters: tuple[ParamSpec, ...], description: str) -> None:
        self._descriptor, self._parameters, self._description = descriptor, parameters, description
        self.taken: list[Taken] = []
        """Cells that were measured, in the order of their plans."""
        self._handle: PluginHandle | None = None
        self._values: ParamValues | None = None
        self._plans: list[CellPlan] = []
        self._measurement: Measurement | None = None
        self._started_s = time.monotonic()

    # The protocol of a benchmark

    def descriptor(self) -> Descriptor:
        """What this is a run of."""
        return self._descriptor

    def metadata(self) -> PluginMetadata:
        """Ours."""
        return PluginMetadata(self._description, __version__, license="Apache-2.0", official=True)

    def parameters(self) -> tuple[ParamSpec, ...]:
        """Those of bench.md 5, and what was added to them."""
        return self._parameters

    def load(self, handle: PluginHandle) -> None:
        """Take the endpoint over."""
        needed_target(handle)
        self._handle = handle

    def configure(self, values: ParamValues) -> None:
        """Check the values and forget what was. Raises ParamError."""
        values.validate_against(self._parameters)
        self.check(values)
        self._values = values
        self._plans, self._measurement, self.taken = [], None, []
        self._started_s = time.monotonic()

    def next(self) -> Frame:
        """First the questions about the endpoint, then a second of watching at a time."""
        if not self._plans:
            self._plans = self.arrange()
            return Frame.running("probe", self.elapsed_s())
        name, plan = self._plans[len(self.taken)]
        if self._measurement is None:
            self._measurement = Measurement(self.handle, self.target, plan, name)
        cell = self._measurement.step(_TURN_S)
        if cell is not None:
            self._measurement = None
            self.taken.append(Taken(cell, plan, read_answers(cell.paths, cell.report.window_s)))
            self.look(self.taken[-1])
            if len(self.taken) == len(self._plans):
                return self.judged()
        return Frame.running("measure", self.elapsed_s(), progress=(len(self.taken), len(self._plans)))

    def cleanup(self) -> None:
        """End the workers."""
        if self._measurement is not None:
            self._measurement.close()

    # What a benchmark says of itself

    def check(self, values: ParamValues) -> None:
        """Whether the values go together. Raises ParamError."""

    def arrange(self) -> list[CellPlan]:
        """Ask the endpoint what must be known, and lay the cells out."""
        raise NotImplementedError

    def look(self, taken: Taken) -> None:
        """A cell is there. Raises RunError when the run cannot go on after what it shows: here, after a request that failed."""
        failed = failed_how(taken)
        if failed:
            raise RunError(failed)

    def judged(self) -> Frame:
        """The last frame."""
        raise NotImplementedError

    # For them

    @property
    def handle(self) -> PluginHandle:
        """Of the run. Raises RunError before there is one."""
        if self._handle is None:
            raise RunError(f"{self._descriptor.id}: next() before load()")
        return self._handle

    @property
    def target(self) -> TargetEndpoint:
        """The endpoint. Raises RunError before there is one."""
        return needed_target(self.handle)

    @property
    def values(self) -> ParamValues:
        """The configuration. Raises RunError before there is one."""
        if self._values is None:
            raise RunError(f"{self._descriptor.id}: next() before configure()")
        return self._values

    @property
    def timeouts(self) -> Timeouts:
        """Limits of each request."""
        return limits_of(self.values.int("request_timeout_s"))

    def elapsed_s(self) -> float:
        """Since it was configured."""
        return time.monotonic() - self._started_s

    def asked(self, extra: Mapping[str, object], *texts: str, ignore_eos: str = "no") -> Prepared:
        """The probe, with what the prompts are made of on the record. Raises RunError."""
        self.handle.status("the endpoint is asked what it can do")
        self.handle.ran("prompts", version=self._descriptor.updated, sha256=corpus_sha256(filler(0, _SAMPLE_WORDS), *texts))
        return prepare(self.handle, self.target, self.timeouts, extra, ignore_eos=ignore_eos)

    def true_length(self, prepared: Prepared, shape: Shape) -> Shape:
        """``shape`` with so many words that a prompt has the tokens that were asked for."""
        plan = plan_of(self.target, self.timeouts, prepared, shape)
        prompts = calibrated(self.handle, self.target, self.timeouts, prepared.features, plan, shape.input_tokens)
        return shape._replace(words=prompts.words)

    def cell(self, name: str, prepared: Prepared, shape: Shape, *, seed: int = 0) -> CellPlan:
        """A cell of this shape."""
        return CellPlan(name, plan_of(self.target, self.timeouts, prepared, shape, seed=seed))

    def last_frame(self, verdict: Verdict, metrics: dict[str, float], *, table: ResultTable, summary: Sequence[Stat]) -> Frame:
        """A run that came to its end."""
        return Frame(
            status=RunStatus.COMPLETED,
            phase="done",
            elapsed=Elapsed.of(self.elapsed_s()),
            progress=(len(self.taken), len(self.taken)),
            summary=tuple(summary),
            table=table,
            verdict=verdict,
            metrics=metrics,
        )


def plan_of(target: TargetEndpoint, timeouts: Timeouts, prepared: Prepared, shape: Shape, *, seed: int = 0) -> LoadPlan:
    """The closed loop of one cell: it ends with its last request, whatever time that takes.

    Prompts that are asked again are the same bytes in every run; those that are asked once are new to any server.
    """
    requests = shape.warmup + shape.counted
    most_s = timeouts.total_s * (1 + requests / shape.concurrency)
    return LoadPlan(
        where=Where(base_url=target.base_url, model=target.model, ca_file=target.ca_file, **timeouts._asdict()),
        prompts=PromptPlan(
            inputs=Lengths("fixed", shape.input_tokens),
            outputs=Lengths("fixed", shape.output_tokens),
            words_per_token=prepared.features.tokens.words_per_token,
            overhead_tokens=prepared.features.tokens.overhead,
            nonce="" if shape.distinct else f"{secrets.token_hex(4)}-",
            distinct=shape.distinct,
            words=shape.words,
            task=shape.task,
            tag_digits=_TAG_DIGITS,
        ),
        concurrency=shape.concurrency,
        requests=requests,
        warmup_requests=shape.warmup,
        duration_s=min(30 * _DAY_S, most_s),
        drain_s=timeouts.total_s,
        include_usage=not prepared.features.stream_options_refused,
        extra=prepared.extra,
        seed=seed,
    )


def failed_how(taken: Taken) -> str:
    """In which ways requests of a cell failed, the first in words; empty when none did."""
    if not taken.answers.failed:
        return ""
    notes = taken.cell.report.notes
    return f"{taken.answers.failed} of {taken.plan.requests} requests failed" + (f": {notes[0]}" if notes else "")


def doubt(cell: Cell) -> str:
    """Why the figures of a cell prove nothing, whatever the answers were; empty when they do."""
    report = cell.report
    if report.problems:
        return report.problems[0]
    if report.limited:
        return f"the generator was the limit: {'; '.join(report.limited)}"
    return "the box was not fit while it was measured" if cell.validity == "invalid" else ""
