"""The benchmark ``soak``: a load that lasts, and whether anything drifts or leaks meanwhile."""

from collections.abc import Iterator
from typing import ClassVar

from nodeproof.bench.address import Address
from nodeproof.bench.course import Course
from nodeproof.bench.load.measure import Cell as LoadCell
from nodeproof.bench.load.measure import Measurement, discover_features
from nodeproof.bench.load.parameters import LOAD_PARAMETERS, LoadSettings
from nodeproof.bench.load.plan import LoadPlan
from nodeproof.bench.reach import EndpointLostError
from nodeproof.bench.soak.checks import Check, drift_checks, leak_checks, verdict_of
from nodeproof.bench.soak.slices import Slice, cut
from nodeproof.bench.stats.trend import MIN_POINTS, Bound
from nodeproof.bench.trials import SOAK
from nodeproof.errors import ParamError
from nodeproof.host.server_sight import ServerProcesses, ServerSight
from nodeproof.model.run import Align, Cell, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Bool, Float, ParamSpec, ParamValues

__all__ = ["SOAK_PARAMETERS", "Soak"]

_TURN_S = 1.0
_SHORTEST_TURN_S = 0.05
_FEWEST_LOOKS = 48
_LOOKS = 4096
_LEFT_OUT = frozenset({"repeats", "requests", "slo_ttft_ms", "slo_tpot_ms", "slo_e2e_ms", "min_attainment_pct", "rate_end"})
_CHANGED = {"duration_s": 1800.0, "warmup_s": 60.0, "max_error_pct": 0.1}
_OWN = (
    ParamSpec(
        "max_latency_growth_pct", "Latency", "Fails when median TTFT or TPOT grows by more over the run", Float(0.0, 1e6), 10.0
    ),
    ParamSpec("max_rate_drop_pct", "Rate", "Fails when the rate of output sinks by more over the run", Float(0.0, 100.0), 5.0),
    ParamSpec("leaks", "Leaks", "Judge memory and descriptors of the server, which must be visible here", Bool(), default=True),
    ParamSpec(
        "max_memory_growth_pct", "Memory", "Fails when the server's memory grows by more and goes on", Float(0.0, 1e6), 5.0
    ),
    ParamSpec("max_descriptor_growth", "Descriptors", "Fails when it opens more than before and goes on", Float(0.0, 1e9), 16.0),
)


def _shared(spec: ParamSpec) -> ParamSpec:
    changed = _CHANGED.get(spec.key)
    return spec if changed is None else ParamSpec(spec.key, spec.label, spec.help, spec.kind, changed)


SOAK_PARAMETERS = (*_OWN, *(_shared(spec) for spec in LOAD_PARAMETERS if spec.key not in _LEFT_OUT))


class Soak(Course):
    """One run of it."""

    IDENTITY = SOAK
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = SOAK_PARAMETERS
    ABOUT = "A load that lasts: drift of latency and rate, leaks of memory and descriptors"

    def check(self, values: ParamValues) -> None:
        """Loads that change by themselves cannot show a drift."""
        if values.text("arrival") in {"ramp", "trace"}:
            raise ParamError("arrival", "arrival: a soak needs a steady load: poisson, constant or gamma")
        _settings(values)

    def course(self) -> Iterator[Frame]:
        """Questions about the endpoint, the load with a look at the server a second, the judgement."""
        settings = _settings(self.values)
        features = discover_features(
            self.handle, self.target, settings.api, settings.timeouts, ignore_eos=self.values.text("ignore_eos")
        )
        yield self.running("probe")
        plan = settings.plan(self.target, features)
        measurement = Measurement(self.handle, self.target, plan, "soak", remeasure=0)
        self.held().callback(measurement.close)
        watch = _Watch(self.target.base_url, local=self.target.is_loopback() and self.values.bool("leaks"))
        lost = ""
        cell: LoadCell | None = None
        began_s = self.elapsed_s()
        turn_s = min(_TURN_S, max(_SHORTEST_TURN_S, (plan.duration_s - plan.warmup_s) / _FEWEST_LOOKS))
        while cell is None and not lost:
            try:
                cell = measurement.step(turn_s)
            except EndpointLostError as error:
                lost = str(error)
            if self.elapsed_s() - began_s >= plan.warmup_s:
                watch.look()
            yield self.running("soak", min(int(self.elapsed_s() - began_s), int(plan.duration_s)), int(plan.duration_s))
        slices = [] if cell is None else cut(measurement.sample_paths, plan)
        self.keep("soak-series.json", {"slices": slices, "server": watch.sights, "server_unseen": watch.reason})
        yield self._end(plan, cell, slices, watch, lost)

    def _end(self, plan: LoadPlan, cell: LoadCell | None, slices: list[Slice], watch: "_Watch", lost: str) -> Frame:
        checks = [] if cell is None else self._checks(slices, watch)
        metrics = {} if cell is None else cell.report.metrics()
        metrics |= _check_metrics(checks)
        metrics["server_looks"] = float(len(watch.sights))
        return self.done(
            Verdict(VerdictKind.FAIL, lost) if cell is None else _verdict(cell, plan, slices, checks, self.values),
            metrics=metrics,
            summary=_tiles(cell, checks),
            table=_table(slices),
        )

    def _checks(self, slices: list[Slice], watch: "_Watch") -> list[Check]:
        values = self.values
        checks = drift_checks(
            slices, latency_pct=values.float("max_latency_growth_pct"), rate_pct=values.float("max_rate_drop_pct")
        )
        if not values.bool("leaks"):
            return checks
        if watch.reason:
            text = f"leaks of the server: unknown, {watch.reason} (leaks=no judges the rest alone)"
            return [*checks, Check("leaks", Bound.UNCLEAR, text)]
        return checks + leak_checks(
            watch.sights,
            rss_pct=values.float("max_memory_growth_pct"),
            open_files=values.float("max_descriptor_growth"),
        )


class _Watch:
    """Looks at the server for as long as the load lasts; of a long run, every second, fourth, eighth look is kept."""

    def __init__(self, base_url: str, *, local: bool) -> None:
        address = Address.of(base_url)
        self.sights: list[ServerProcesses] = []
        self._sight = ServerSight(address.port) if local else None
        self._remote = f"it runs on {address.host}"
        self._every, self._turn = 1, 0

    @property
    def reason(self) -> str:
        """Why there is nothing to judge by; empty when there is."""
        if self._sight is None:
            return self._remote
        return "" if self.sights else self._sight.reason or "it was not looked at"

    def look(self) -> None:
        """Look, if it is time."""
        self._turn += 1
        if self._sight is None or self._turn % self._every:
            return
        seen = self._sight.look()
        if seen is not None:
            self.sights.append(seen)
        if len(self.sights) >= _LOOKS:
            self.sights = self.sights[::2]
            self._every *= 2


def _settings(values: ParamValues) -> LoadSettings:
    known = {spec.key: spec.default for spec in LOAD_PARAMETERS}
    return LoadSettings(ParamValues({**known, **{key: value for key, value in values.items() if key in known}}))


def _verdict(cell: LoadCell, plan: LoadPlan, slices: list[Slice], checks: list[Check], values: ParamValues) -> Verdict:
    """First what makes all of it worthless, then failures, then the limits."""
    counts = cell.report.counts
    failed_pct = counts["requests_failed"] / max(1, counts["requests"]) * 100
    limit_pct = values.float("max_error_pct")
    if failed_pct > limit_pct and not cell.report.problems:
        outcomes = ", ".join(f"{count} {name}" for name, count in cell.report.outcomes.items())
        text = f"{failed_pct:.3g} % of {counts['requests']} requests failed, limit {limit_pct:g} % ({outcomes})"
        return Verdict(VerdictKind.FAIL, text)
    worthless = _worthless(cell, plan, slices)
    if worthless:
        return Verdict(VerdictKind.INCONCLUSIVE, worthless)
    verdict = verdict_of(checks)
    if cell.validity != "invalid":
        return verdict
    if verdict.kind is VerdictKind.FAIL:
        return Verdict(VerdictKind.FAIL, f"{verdict.reason}; the box itself was not fit meanwhile")
    return Verdict(VerdictKind.INCONCLUSIVE, "the box was not fit while it was measured")


def _worthless(cell: LoadCell, plan: LoadPlan, slices: list[Slice]) -> str:
    """Why the samples prove nothing; empty when they do."""
    found = cell.report
    if found.problems:
        return found.problems[0]
    if len(slices) < MIN_POINTS:
        length_s = plan.duration_s - plan.warmup_s
        return f"vacuous: {found.counts['requests_ok']} answers in {length_s:g} s are too few for a trend; let it run longer"
    return f"the generator was the limit: {'; '.join(found.limited)}" if found.limited else ""


def _check_metrics(checks: list[Check]) -> dict[str, float]:
    keys = {
        "ttft": "ttft_growth_pct",
        "tpot": "tpot_growth_pct",
        "e2e": "e2e_growth_pct",
        "rate": "rate_drop_pct",
        "memory": "memory_growth_pct",
        "descriptors": "descriptor_growth",
    }
    metrics: dict[str, float] = {}
    for check in checks:
        if check.trend is not None:
            key = keys[check.name]
            metrics |= {key: check.trend.change, f"{key}_low": check.trend.low, f"{key}_high": check.trend.high}
    return metrics


def _tiles(cell: LoadCell | None, checks: list[Check]) -> list[Stat]:
    tiles = [] if cell is None else [Stat("Answers", str(cell.report.counts["requests_ok"]))]
    return [*tiles, *(Stat(check.name.capitalize(), str(check.state)) for check in checks)]


def _table(slices: list[Slice]) -> ResultTable:
    titles = ("From s", "Answers", "Failed", "Requests/s", "Output tok/s", "TTFT p50 ms", "TPOT p50 ms", "E2E p50 ms")
    rows = []
    for one in slices:
        numbers = (one.requests_per_s, one.output_tok_s, one.ttft_p50_ms, one.tpot_p50_ms, one.e2e_p50_ms)
        texts = (f"{one.begin_s:.0f}", str(one.answers), str(one.failed), *map(_text, numbers))
        rows.append(tuple(Cell(text) for text in texts))
    return ResultTable("Course", tuple(Column(title, Align.RIGHT) for title in titles), tuple(rows))


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
