"""A load that lasts, driven through all its verdicts; drift and leaks from points that are known."""

import threading
import time
from pathlib import Path

import msgspec
import pytest

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.soak.checks import Check, drift_checks, leak_checks, verdict_of
from nodeproof.bench.soak.slices import Slice
from nodeproof.bench.stats.trend import Bound
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer
from nodeproof.errors import ParamError
from nodeproof.host.server_sight import ServerProcesses, ServerSight
from nodeproof.model.run import VerdictKind
from nodeproof.runs.params import ParamValues
from support.bench_course import Outcome, run, serving

_MIB = 2**20


def _soak(tmp_path: Path, url: str, **params: str) -> Outcome:
    quick = {"duration_s": "3", "warmup_s": "0.5", "drain_s": "5", "output_tokens": "2", "input_tokens": "20", "concurrency": "4"}
    return run(tmp_path, url, "soak", **{**quick, **params})


def _unless_busy(outcome: Outcome) -> bool:
    """A machine that is too busy to measure on says so, and nothing else."""
    told = "generator was the limit" in outcome.reason or outcome.reason.startswith("vacuous: ")
    return outcome.kind == "inconclusive" and told


@pytest.mark.timeout(60)
def test_a_steady_server_passes(tmp_path: Path) -> None:
    with serving("--ttft-ms", "30", "--tpot-ms", "5") as url:
        outcome = _soak(tmp_path, url, max_latency_growth_pct="60", max_rate_drop_pct="40", max_memory_growth_pct="30")
    if _unless_busy(outcome):
        return
    assert outcome.kind == "pass", outcome.reason
    for words in ("ttft ", "limit 60 %", "rate ", "limit -40 %", "memory ", "descriptors "):
        assert words in outcome.reason
    assert outcome.metrics["requests_failed"] == 0
    assert outcome.metrics["server_looks"] > 16
    assert outcome.metrics["ttft_growth_pct_low"] <= outcome.metrics["ttft_growth_pct"] <= outcome.metrics["ttft_growth_pct_high"]
    assert (outcome.files / "soak-series.json").exists()
    table = outcome.record.frame.table
    assert table is not None
    assert len(table.rows) >= 8


@pytest.mark.timeout(60)
def test_a_server_that_slows_down_fails(tmp_path: Path) -> None:
    class Tiring(Model):
        """Each answer takes a little longer than the one before."""

        def __call__(self, request: Received) -> Script:
            self.ttft_s += 0.0002
            return super().__call__(request)

    with ScriptServer(Tiring(ttft_s=0.02, tpot_s=0.0)) as server:
        outcome = _soak(tmp_path, server.url, leaks="no")
    if _unless_busy(outcome):
        return
    assert outcome.kind == "fail", outcome.reason
    assert outcome.reason.startswith("ttft +")
    assert "limit 10 %" in outcome.reason
    assert outcome.metrics["ttft_growth_pct_low"] > 10
    assert outcome.metrics["rate_drop_pct"] > 5
    assert outcome.record.exit_code == 2


@pytest.mark.timeout(60)
def test_a_server_that_leaks_fails(tmp_path: Path) -> None:
    with serving("--ttft-ms", "30", "--tpot-ms", "5", "--leak-kib", "256", "--leak-files", "1") as url:
        outcome = _soak(tmp_path, url, max_latency_growth_pct="1000", max_rate_drop_pct="100")
    if _unless_busy(outcome):
        return
    assert outcome.kind == "fail", outcome.reason
    assert "memory +" in outcome.reason
    assert "descriptors +" in outcome.reason
    # Some 100 answers a second, 256 KiB and one descriptor each.
    assert outcome.metrics["descriptor_growth"] > 50
    assert outcome.metrics["memory_growth_pct_low"] > 5


@pytest.mark.timeout(60)
def test_too_few_answers_prove_nothing(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.2, tpot_s=0.0)) as server:
        outcome = _soak(tmp_path, server.url, duration_s="1.5", leaks="no")
    assert outcome.kind == "inconclusive"
    assert outcome.reason.startswith("vacuous: ")
    assert "too few for a trend; let it run longer" in outcome.reason


@pytest.mark.timeout(60)
def test_a_server_that_cannot_be_seen_is_never_free_of_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(sight: ServerSight) -> None:
        sight.reason = "no process that this user may see listens on it"

    monkeypatch.setattr(ServerSight, "look", blind)
    with ScriptServer(Model(ttft_s=0.03, tpot_s=0.0)) as server:
        outcome = _soak(tmp_path, server.url, max_latency_growth_pct="100", max_rate_drop_pct="60")
    if _unless_busy(outcome):
        return
    assert outcome.kind == "inconclusive", outcome.reason
    assert outcome.reason == (
        "leaks of the server: unknown, no process that this user may see listens on it (leaks=no judges the rest alone)"
    )


@pytest.mark.timeout(60)
def test_a_server_that_goes_away_fails_at_once(tmp_path: Path) -> None:
    server = ScriptServer(Model(ttft_s=0.02, tpot_s=0.0))
    server.start()

    def end_it() -> None:
        ends_s = time.monotonic() + 30
        while len(server.served) < 60 and time.monotonic() < ends_s:
            time.sleep(0.02)
        server.stop()

    thread = threading.Thread(target=end_it)
    thread.start()
    outcome = _soak(tmp_path, server.url, duration_s="40", leaks="no")
    thread.join()
    assert outcome.kind == "fail", outcome.reason
    assert outcome.reason.startswith(f"{server.url} cannot be reached after ")
    assert "Connection refused" in outcome.reason
    assert outcome.record.frame.elapsed.seconds < 30


@pytest.mark.timeout(60)
def test_failures_come_first(tmp_path: Path) -> None:
    def busy(request: Received) -> Script | None:
        return Script(status=503) if request.number > 20 and request.number % 5 == 0 else None

    with ScriptServer(Rules(Model(ttft_s=0.01, tpot_s=0.0), busy)) as server:
        outcome = _soak(tmp_path, server.url, duration_s="1.5", leaks="no")
    assert outcome.kind == "fail"
    assert "requests failed, limit 0.1 % (" in outcome.reason
    assert "status" in outcome.reason


@pytest.mark.parametrize("arrival", ["ramp", "trace"])
def test_loads_that_change_by_themselves_are_refused(arrival: str) -> None:
    benchmark = next(one for one in DESCRIPTORS if one.id == "soak").build()
    with pytest.raises(ParamError, match="a steady load"):
        benchmark.configure(ParamValues.from_overrides(benchmark.parameters(), [("arrival", arrival)]))


# Checks, from known points


def _slices(ttft_ms: float = 100.0, tpot_ms: float | None = 10.0, rate: float = 50.0, *, grows: float = 0.0) -> list[Slice]:
    return [
        Slice(
            begin_s=10.0 * place,
            end_s=10.0 * place + 10,
            answers=100,
            failed=0,
            requests_per_s=rate / 2,
            output_tok_s=rate * (1 - grows * place / 9),
            ttft_p50_ms=ttft_ms * (1 + grows * place / 9),
            tpot_p50_ms=tpot_ms,
            e2e_p50_ms=500.0,
        )
        for place in range(10)
    ]


def _states(checks: list[Check]) -> dict[str, Bound]:
    return {check.name: check.state for check in checks}


def test_drift_from_known_slices() -> None:
    steady = drift_checks(_slices(), latency_pct=10, rate_pct=5)
    assert _states(steady) == {"ttft": Bound.KEPT, "tpot": Bound.KEPT, "rate": Bound.KEPT}
    assert verdict_of(steady).kind is VerdictKind.PASS
    worse = drift_checks(_slices(grows=0.2), latency_pct=10, rate_pct=5)
    assert _states(worse) == {"ttft": Bound.BROKEN, "tpot": Bound.KEPT, "rate": Bound.BROKEN}
    assert worse[0].text == "ttft +20 % (+20 to +20) from 100 ms, limit 10 %"
    assert worse[2].text == "rate -20 % (-20 to -20) from 50 a second, limit -5 %"
    assert verdict_of(worse).reason == f"{worse[0].text}; {worse[2].text}"


def test_growth_below_the_noise_of_timers_is_none() -> None:
    assert _states(drift_checks(_slices(ttft_ms=1.0, grows=0.9), latency_pct=10, rate_pct=100))["ttft"] is Bound.KEPT


def test_answers_without_a_stream_are_judged_as_a_whole() -> None:
    whole = [msgspec.structs.replace(one, ttft_p50_ms=None, tpot_p50_ms=None) for one in _slices()]
    assert _states(drift_checks(whole, latency_pct=10, rate_pct=5)) == {"e2e": Bound.KEPT, "rate": Bound.KEPT}


def _sights(mib: list[float], files: list[int | None] | None = None, restarts: int = 0) -> list[ServerProcesses]:
    counts = files or [20] * len(mib)
    return [
        ServerProcesses(float(place), int(value * _MIB), count, 3, 9, restarts)
        for place, (value, count) in enumerate(zip(mib, counts, strict=True))
    ]


def test_leaks_from_known_looks() -> None:
    flat = leak_checks(_sights([100.0] * 40), rss_pct=5, open_files=16)
    assert _states(flat) == {"memory": Bound.KEPT, "descriptors": Bound.KEPT}
    leak = leak_checks(_sights([100.0 + place for place in range(40)]), rss_pct=5, open_files=16)
    assert leak[0].state is Bound.BROKEN
    assert leak[0].text == "memory +39 % (+39 to +39) from 100 MiB, limit 5 %"
    files = leak_checks(_sights([100.0] * 40, [20 + place for place in range(40)]), rss_pct=5, open_files=16)
    assert files[1].text == "descriptors +39 (+39 to +39) from 20 descriptors, limit 16 descriptors"
    assert files[1].state is Bound.BROKEN


def test_caches_that_fill_are_no_leak() -> None:
    filling = [100.0 + min(place, 25) * 5 for place in range(60)]
    (memory, _) = leak_checks(_sights(filling), rss_pct=5, open_files=16)
    assert memory.state is Bound.KEPT
    assert memory.text.endswith("; it has settled in the second half")


def test_what_cannot_be_told_of_leaks() -> None:
    few = leak_checks(_sights([100.0] * 10), rss_pct=5, open_files=16)
    assert few[0].state is Bound.UNCLEAR
    assert "16 are needed" in few[0].text
    hidden = leak_checks(_sights([100.0] * 40, [None] * 40), rss_pct=5, open_files=16)
    assert hidden[1].state is Bound.UNCLEAR
    assert verdict_of(hidden).kind is VerdictKind.INCONCLUSIVE
    again = leak_checks(_sights([100.0] * 40, restarts=2), rss_pct=5, open_files=16)
    assert again[2].text == "the server was started anew 2 times while it was measured"
    assert verdict_of(again).kind is VerdictKind.FAIL
    assert verdict_of([]).kind is VerdictKind.INCONCLUSIVE
