"""The benchmark ``serve-matrix``: every model of a plan must come up and do its work; what is missing counts against the plan."""

import os
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.course import Course, slug
from nodeproof.bench.features import list_models
from nodeproof.bench.matrix.examination import Bar, Examined, Result, examine
from nodeproof.bench.matrix.host import boot, restore
from nodeproof.bench.matrix.roster import Entry, Roster, read_roster
from nodeproof.bench.reach import require_reached, unreached
from nodeproof.bench.session import Session
from nodeproof.bench.trials import SERVE_MATRIX
from nodeproof.errors import RunError
from nodeproof.host.containment import Contained
from nodeproof.host.sandbox import Sandbox, SandboxLimits
from nodeproof.model.run import Align, Cell, CellStyle, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.params import Bool, Choice, Float, Int, ParamSpec, ParamValues, Text

__all__ = ["MATRIX_PARAMETERS", "Matrix"]

_SERVED = "served"
MATRIX_PARAMETERS = (
    ParamSpec("roster", "Roster", f"File that names the models and how each is started; {_SERVED} = all that the endpoint lists",
              Text(), _SERVED),
    ParamSpec("rate_tolerance_pct", "Tolerance", "A rate may lie so far below its baseline", Float(0.0, 100.0), 10.0),
    ParamSpec("save_baseline", "Baseline", "Keep the rates of models that pass as baselines", Bool(), default=False),
    ParamSpec("isolation", "Isolation", "Of the code that models write: required, or best as this machine allows",
              Choice(("required", "best")), "required"),
    ParamSpec("seed", "Seed", "What is asked", Int(0, (1 << 31) - 1), 1),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of an answer", Float(1.0, 3600.0), 300.0),
)  # fmt: skip
_JUDGED = ("identity", "coherence", "code", "tool")
_NAMED = 4
_STYLES = {Bar.PASS: CellStyle.GOOD, Bar.FAIL: CellStyle.BAD, Bar.NOT_OFFERED: CellStyle.DIM, Bar.ERROR: CellStyle.WARN}


class _Row(msgspec.Struct, kw_only=True):
    """A planned model with what came of it."""

    entry: Entry
    found: Examined | None = None
    baseline_tok_s: float | None = None

    def verdict(self, tolerance_pct: float) -> Result:
        """Of the model as a whole."""
        found = self.found
        if found is None or found.problem:
            return Result(Bar.FAIL, found.problem if found is not None else "it was planned and not examined")
        results: dict[str, Result] = {name: getattr(found, name) for name in _JUDGED}
        for bar in (Bar.FAIL, Bar.ERROR):
            bad = [f"{name}: {result.detail}" for name, result in results.items() if result.bar is bar]
            if bad:
                return Result(bar, "; ".join(bad))
        if found.output_tok_s is None or found.output_tok_s <= 0:
            return Result(Bar.ERROR, "its rate could not be measured")
        if self.baseline_tok_s is not None:
            floor = self.baseline_tok_s * (1 - tolerance_pct / 100)
            if found.output_tok_s < floor:
                return Result(Bar.FAIL, f"{found.output_tok_s:.4g} tok/s, at least {floor:.4g} by its baseline")
        return Result(Bar.PASS)


class Matrix(Course):
    """One run of it."""

    IDENTITY = SERVE_MATRIX
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = MATRIX_PARAMETERS
    ABOUT = "Whether every model of a plan comes up and does its work"

    def __init__(self) -> None:
        super().__init__()
        self._roster: Roster | None = None

    def check(self, values: ParamValues) -> None:
        """A roster can be read before anything starts. Raises RunError."""
        self._roster = None if values.text("roster") == _SERVED else read_roster(values.text("roster"))

    def course(self) -> Iterator[Frame]:
        """The plan, then model after model, then the plan held against what came of it."""
        roster = self._roster or self._listed()
        rows = [_Row(entry=entry, baseline_tok_s=self._baseline(entry.model)) for entry in roster.entries]
        if roster.restore:
            self.held().callback(self._restore, roster.restore)
        yield self.running("plan", 0, len(rows))
        for place, row in enumerate(rows):
            row.found = self._one(row.entry, place)
            self.keep(f"model-{place}.json", row.found)
            yield self.running("serve", place + 1, len(rows))
        tolerance_pct = self.values.float("rate_tolerance_pct")
        if self.values.bool("save_baseline"):
            for row in rows:
                if row.verdict(tolerance_pct).bar is Bar.PASS and row.found is not None and row.found.output_tok_s:
                    self._save_baseline(row.entry.model, row.found.output_tok_s)
        yield self._end(rows, tolerance_pct)

    def _listed(self) -> Roster:
        with Session.of(self.target, self._timeouts()) as session, self.handle.on_cancel(session.cancel):
            models, problem = list_models(session)
        if models is None and not problem.startswith("status"):
            raise unreached(self.target.base_url, problem)
        if not models:
            raise RunError(
                f"{self.target.base_url} lists no models ({problem or 'its list is empty'}); name them in a file, roster=FILE"
            )
        return Roster.of(models)

    def _timeouts(self) -> Timeouts:
        limit_s = self.values.float("request_timeout_s")
        return Timeouts(10.0, limit_s, limit_s, limit_s)

    def _one(self, entry: Entry, place: int) -> Examined:
        """Boot it if it has to be, and examine it."""
        target = msgspec.structs.replace(self.target, base_url=entry.url or self.target.base_url, model=entry.model)
        server: Contained | None = None
        try:
            with Session.of(target, self._timeouts()) as session, self.handle.on_cancel(session.cancel):
                if entry.start:
                    self.handle.status(f"{entry.model}: it starts")
                    server = self._boot(entry, target, session, place)
                else:
                    require_reached(session.send(_nothing()), target.base_url)
                return examine(
                    session,
                    entry.model,
                    self.values.int("seed"),
                    lambda: self._sandbox(place),
                    lambda what: self.handle.status(f"{entry.model}: {what}"),
                )
        except RunError as error:
            self.handle.check_cancelled()
            return Examined(model=entry.model, problem=str(error))
        finally:
            if server is not None:
                server.close()

    def _boot(self, entry: Entry, target: TargetEndpoint, session: Session, place: int) -> Contained:
        locks = self.handle.locks
        server = boot(
            entry,
            target.base_url,
            self.handle.file_path(f"server-{place}.log"),
            lambda: session.get("/v1/models")[0] == 200,
            self.handle.is_cancelled,
            () if locks is None else locks.fds,
        )
        self.held().callback(server.close)
        return server

    def _sandbox(self, place: int) -> Sandbox:
        folder = os.path.dirname(self.handle.file_path("x"))
        sandbox = Sandbox.start(
            folder,
            f"code-{place}",
            limits=SandboxLimits(memory_bytes=1 << 30, duration_s=600.0),
            required=self.values.text("isolation") == "required",
            should_stop=self.handle.is_cancelled,
            hidden=(folder,),
        )
        self.held().callback(sandbox.close)
        return sandbox

    def _restore(self, argv: tuple[str, ...]) -> None:
        problem = restore(argv, self.handle.file_path("restore.log"))
        if problem:
            self.handle.error(f"what served before could not be brought back: {' '.join(argv)[:200]}: {problem}")

    # Baselines

    def _baseline(self, model: str) -> float | None:
        """Rate of an earlier run that passed; None when there is none that can be read."""
        path = os.path.join(self.handle.artifacts.path, _baseline_name(model, self.target.base_url))
        try:
            with open(path, "rb") as file:
                found = msgspec.json.decode(file.read(65536), type=_Baseline)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            self.handle.warn(f"{path}: the baseline of {model} cannot be read and is not used: {error}")
            return None
        if found.model != model:
            self.handle.warn(f"{path}: the baseline is that of {found.model} and is not used for {model}")
            return None
        return found.output_tok_s

    def _save_baseline(self, model: str, output_tok_s: float) -> None:
        data = msgspec.json.encode(_Baseline(model=model, output_tok_s=output_tok_s))
        self.handle.artifacts.write_asset(_baseline_name(model, self.target.base_url), data + b"\n")

    # The end

    def _end(self, rows: list[_Row], tolerance_pct: float) -> Frame:
        verdicts = [row.verdict(tolerance_pct) for row in rows]
        metrics: dict[str, float] = {"planned": float(len(rows))}
        for bar, key in ((Bar.PASS, "passed"), (Bar.FAIL, "failed"), (Bar.ERROR, "unmeasured")):
            metrics[key] = float(sum(verdict.bar is bar for verdict in verdicts))
        for row in rows:
            if row.found is not None and row.found.output_tok_s:
                metrics[f"{slug(row.entry.model).replace('-', '_')}_output_tok_s"] = row.found.output_tok_s
        return self.done(
            _verdict(rows, verdicts),
            metrics=metrics,
            summary=[Stat("Models", f"{metrics['passed']:.0f}/{len(rows)}")],
            table=_table(rows, verdicts),
        )


class _Baseline(msgspec.Struct, kw_only=True):
    model: str
    output_tok_s: float


def _baseline_name(model: str, base_url: str) -> str:
    return f"baseline-{slug(model)}-{slug(base_url)}.json"


def _nothing() -> Ask:
    return Ask(prompt="Answer with the word yes.", max_tokens=4, include_usage=False)


def _verdict(rows: list[_Row], verdicts: list[Result]) -> Verdict:
    by = {bar: [(row, one) for row, one in zip(rows, verdicts, strict=True) if one.bar is bar] for bar in (Bar.FAIL, Bar.ERROR)}
    if by[Bar.FAIL]:
        named = "; ".join(f"{row.entry.model}: {one.detail}" for row, one in by[Bar.FAIL][:_NAMED])
        return Verdict(VerdictKind.FAIL, f"{len(by[Bar.FAIL])} of {len(rows)} models: {named}")
    if by[Bar.ERROR]:
        row, one = by[Bar.ERROR][0]
        return Verdict(
            VerdictKind.INCONCLUSIVE,
            f"{len(by[Bar.ERROR])} of {len(rows)} models could not be judged: {row.entry.model}: {one.detail}",
        )
    return Verdict(VerdictKind.PASS, f"{len(rows)} of {len(rows)} planned models come up and do their work")


def _table(rows: list[_Row], verdicts: list[Result]) -> ResultTable:
    titles = ("Model", "Result", "Identity", "Coherence", "Code", "Tool", "Recall", "tok/s", "Baseline", "Detail")
    lines = []
    for row, verdict in zip(rows, verdicts, strict=True):
        found = row.found or Examined(model=row.entry.model)
        results = [getattr(found, name) for name in (*_JUDGED, "recall")]
        bars = [Cell(str(result.bar), _STYLES[result.bar]) for result in results]
        rates = [Cell("-" if value is None else f"{value:.4g}") for value in (found.output_tok_s, row.baseline_tok_s)]
        lines.append((Cell(row.entry.model), Cell(str(verdict.bar), _STYLES[verdict.bar]), *bars, *rates, Cell(verdict.detail)))
    right = {"tok/s", "Baseline"}
    columns = tuple(Column(title, Align.RIGHT if title in right else Align.LEFT) for title in titles)
    return ResultTable("Models", columns, tuple(lines))
