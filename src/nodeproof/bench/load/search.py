"""The benchmark ``goodput-search``: the highest rate at which an endpoint keeps its SLO.

The rate is doubled until the SLO is missed, then the gap is halved until it is narrower than the tolerance. Every probe is an
open loop, measured from the intended starts: a server that falls behind is seen by its queue, and cannot hide it by slowing the
generator down. A probe in which the generator was the limit decides nothing, and ends the search as inconclusive.
"""

import time

from nodeproof import __version__
from nodeproof.bench.catalogue import GOODPUT_SEARCH
from nodeproof.bench.features import Features
from nodeproof.bench.load.benchmark import needed_target
from nodeproof.bench.load.measure import Cell, Measurement, discover_features
from nodeproof.bench.load.parameters import LOAD_PARAMETERS, LoadSettings
from nodeproof.errors import ParamError, RunError
from nodeproof.model.run import Align, Column, Elapsed, Frame, ResultTable, RunStatus, Stat, Verdict, VerdictKind
from nodeproof.model.run import Cell as TableCell
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import Float, Int, ParamSpec, ParamValues

__all__ = ["SEARCH_PARAMETERS", "GoodputSearch"]

_TURN_S = 1.0
_LEFT_OUT = frozenset({"mode", "concurrency", "rate", "rate_end", "repeats", "requests", "max_error_pct", "min_attainment_pct"})
_CHANGED = {"duration_s": 15.0, "warmup_s": 2.0, "drain_s": 10.0}
_OWN = (
    ParamSpec("rate_low", "Lowest rate", "Requests a second to begin with", Float(0.001, 1e6), 1.0),
    ParamSpec("rate_high", "Highest rate", "Requests a second that are never exceeded", Float(0.001, 1e6), 1000.0),
    ParamSpec("tolerance_pct", "Tolerance", "The answer is that exact", Float(0.5, 50.0), 3.0),
    ParamSpec("attainment_pct", "Attainment", "Share of requests that must keep the SLO", Float(1.0, 100.0), 95.0),
    ParamSpec("min_rate", "Required rate", "Fails below so many requests a second; 0 = not judged", Float(0.0, 1e6), 0.0),
    ParamSpec("max_probes", "Probes", "At most so many measurements", Int(2, 100), 24),
)


def _shared(spec: ParamSpec) -> ParamSpec:
    changed = _CHANGED.get(spec.key)
    return spec if changed is None else ParamSpec(spec.key, spec.label, spec.help, spec.kind, changed)


SEARCH_PARAMETERS = (*_OWN, *(_shared(spec) for spec in LOAD_PARAMETERS if spec.key not in _LEFT_OUT))


class GoodputSearch:
    """One run of it."""

    def __init__(self) -> None:
        self._handle: PluginHandle | None = None
        self._values: ParamValues | None = None
        self._features: Features | None = None
        self._measurement: Measurement | None = None
        self._probes: list[tuple[float, Cell, bool]] = []
        self._rate = 0.0
        self._kept = 0.0
        """Highest rate that kept the SLO."""
        self._missed = 0.0
        """Lowest rate that missed it; 0 = none yet."""
        self._started_s = time.monotonic()

    def descriptor(self) -> Descriptor:
        """Of ``goodput-search``."""
        return GOODPUT_SEARCH

    def metadata(self) -> PluginMetadata:
        """Ours."""
        return PluginMetadata("Highest rate that keeps an SLO", __version__, license="Apache-2.0", official=True)

    def parameters(self) -> tuple[ParamSpec, ...]:
        """Those of the search, and those of ``load`` that make sense here."""
        return SEARCH_PARAMETERS

    def load(self, handle: PluginHandle) -> None:
        """Take the endpoint over."""
        needed_target(handle)
        self._handle = handle

    def configure(self, values: ParamValues) -> None:
        """Check that there is an SLO, and that the rates go together."""
        settings = self._settings(values, values.float("rate_low"))
        if not settings.slo.stated:
            raise ParamError("slo_ttft_ms", "there is no SLO to keep; give slo_ttft_ms, slo_tpot_ms or slo_e2e_ms")
        if values.float("rate_low") >= values.float("rate_high"):
            raise ParamError("rate_low", "rate_low must lie below rate_high")
        if values.text("arrival") not in {"poisson", "constant", "gamma"}:
            raise ParamError("arrival", "a search needs arrivals at one rate: poisson, constant or gamma")
        self._values = values
        self._features, self._measurement, self._probes = None, None, []
        self._rate, self._kept, self._missed = values.float("rate_low"), 0.0, 0.0
        self._started_s = time.monotonic()

    def next(self) -> Frame:
        """First the questions about the endpoint, then probe after probe."""
        handle, values = self._handle, self._values
        if handle is None or values is None:
            raise RunError("goodput-search: next() before load() and configure()")
        target = needed_target(handle)
        settings = self._settings(values, self._rate)
        if self._features is None:
            self._features = discover_features(
                handle, target, settings.api, settings.timeouts, ignore_eos=values.text("ignore_eos")
            )
            return Frame.running("probe", self._elapsed_s())
        if self._measurement is None:
            plan = settings.plan(target, self._features)
            self._measurement = Measurement(handle, target, plan, f"probe{len(self._probes)}")
        cell = self._measurement.step(_TURN_S)
        if cell is not None:
            self._measurement = None
            reason = self._unusable(cell)
            if reason:
                return self._frame(Verdict(VerdictKind.INCONCLUSIVE, f"{self._rate:.4g} requests/s: {reason}"))
            self._note(handle, cell, values)
            if self._found(values):
                return self._frame(self._verdict(values))
        return Frame.running("search", self._elapsed_s(), progress=(len(self._probes), values.usize("max_probes")))

    def cleanup(self) -> None:
        """End the workers."""
        if self._measurement is not None:
            self._measurement.close()

    @staticmethod
    def _settings(values: ParamValues, rate: float) -> LoadSettings:
        """The load of one probe."""
        known = {spec.key: spec.default for spec in LOAD_PARAMETERS}
        own = {key: value for key, value in values.items() if key in known}
        return LoadSettings(ParamValues({**known, **own, "mode": "open", "rate": rate, "concurrency": 0}))

    @staticmethod
    def _unusable(cell: Cell) -> str:
        if cell.report.problems:
            return cell.report.problems[0]
        if cell.report.limited:
            return f"the generator was the limit: {'; '.join(cell.report.limited)}"
        return "the box was not fit while it was measured" if cell.validity == "invalid" else ""

    def _note(self, handle: PluginHandle, cell: Cell, values: ParamValues) -> None:
        """Take what a probe says, and choose the next rate."""
        attained = cell.report.figures.get("slo_attainment_pct")
        share = attained.value if attained is not None and attained.value is not None else 0.0
        kept = share >= values.float("attainment_pct")
        self._probes.append((self._rate, cell, kept))
        handle.info(f"{self._rate:.4g} requests/s: {share:.2f} % keep the SLO")
        if kept:
            self._kept = max(self._kept, self._rate)
        else:
            self._missed = min(self._missed or self._rate, self._rate)
        high = values.float("rate_high")
        self._rate = min(high, self._kept * 2) if not self._missed else (self._kept + self._missed) / 2

    def _found(self, values: ParamValues) -> bool:
        if len(self._probes) >= values.usize("max_probes"):
            return True
        if not self._missed:
            return self._kept >= values.float("rate_high")
        if not self._kept:
            return self._missed <= values.float("rate_low")
        return (self._missed - self._kept) / self._kept * 100 <= values.float("tolerance_pct")

    def _verdict(self, values: ParamValues) -> Verdict:
        if not self._kept:
            text = f"even {values.float('rate_low'):g} requests/s miss the SLO: it cannot be met, or begin lower"
            return Verdict(VerdictKind.FAIL, text)
        span = f"between {self._kept:.4g} and {self._missed:.4g}" if self._missed else f"at least {self._kept:.4g}"
        exact = not self._missed or (self._missed - self._kept) / self._kept * 100 <= values.float("tolerance_pct")
        if not exact:
            return Verdict(VerdictKind.INCONCLUSIVE, f"{span} requests/s after {len(self._probes)} probes, wider than asked for")
        floor = values.float("min_rate")
        if floor:
            kind = VerdictKind.PASS if self._kept >= floor else VerdictKind.FAIL
            return Verdict(kind, f"{span} requests/s keep the SLO, at least {floor:g} must")
        return Verdict(VerdictKind.INFO, f"{span} requests/s keep the SLO")

    def _frame(self, verdict: Verdict) -> Frame:
        """The last frame: what was found, and every probe."""
        metrics = {"probes": float(len(self._probes)), "max_rate_per_s": self._kept}
        if self._missed:
            metrics["first_missed_rate_per_s"] = self._missed
        best = next((cell for rate, cell, kept in self._probes if kept and rate == self._kept), None)
        if best is None:
            del metrics["max_rate_per_s"]
        else:
            metrics |= {f"best_{key}": value for key, value in best.report.metrics().items()}
        return Frame(
            status=RunStatus.COMPLETED,
            phase="done",
            elapsed=Elapsed.of(self._elapsed_s()),
            summary=(Stat("Highest rate", f"{self._kept:.4g}", "requests/s"), Stat("Probes", str(len(self._probes)))),
            table=self._table(),
            verdict=verdict,
            metrics=metrics,
        )

    def _table(self) -> ResultTable:
        titles = ("Rate 1/s", "Keep the SLO %", "TTFT p50 ms", "TTFT p99 ms", "Output tok/s", "Failed")
        keys = ("slo_attainment_pct", "ttft_scheduled_p50_ms", "ttft_scheduled_p99_ms", "output_tok_s")
        rows = []
        for rate, cell, _ in sorted(self._probes, key=lambda probe: probe[0]):
            figures = cell.report.figures
            values = [figures[key].value if key in figures else None for key in keys]
            texts = [f"{rate:.4g}", *("-" if value is None else f"{value:.4g}" for value in values)]
            rows.append(tuple(TableCell(text) for text in (*texts, str(cell.report.counts["requests_failed"]))))
        return ResultTable("Probes", tuple(Column(title, Align.RIGHT) for title in titles), tuple(rows))

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s
