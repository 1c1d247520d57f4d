"""``ttft-warm`` and ``ttft-cold``: per length, against a reference that moves only when it is told to."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeproof.bench.speed.reference import Reference, ReferenceStore
from nodeproof.bench.speed.ttft import TTFT_PARAMETERS, TtftWarm, rises
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer
from nodeproof.bench.testing.model import document
from nodeproof.errors import ParamError
from nodeproof.model.hardware import Validity
from nodeproof.model.run import RunRecord, RunStatus, VerdictKind
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.params import ParamValues
from support.bench_runs import run_benchmark

pytestmark = pytest.mark.timeout(60)

# Limits that a busy machine keeps: what is tested is the rule, with steps far beyond them.
_PARAMS = {
    "prompt_lengths": "48",
    "repeats": "64",
    "median_limit_pct": "100",
    "p90_limit_pct": "100",
    "request_timeout_s": "10",
}
_FEW = {**_PARAMS, "repeats": "12"}


def _warm(tmp_path: Path, server: ScriptServer, params: Mapping[str, str]) -> RunRecord:
    return run_benchmark(tmp_path, server.url, "ttft-warm", params)[0]


def _store(tmp_path: Path, server: ScriptServer, benchmark: str = "ttft-warm") -> ReferenceStore:
    return ReferenceStore(ArtifactStore(str(tmp_path), benchmark), TargetEndpoint.new(server.url, "m"))


def _reference(server: ScriptServer, **metrics: float) -> Reference:
    return Reference(
        benchmark_id="ttft-warm", instrument="2026-12-01", recorded_at=1.0, target=server.url, model="m", metrics=metrics
    )


class _NoCache(Model):
    """Tells that nothing was cached."""

    def _cached(self, words: list[str]) -> int:
        return 0 * len(words)


class _AllCached(Model):
    """Tells that everything was."""

    def _cached(self, words: list[str]) -> int:
        return len(words) + 4


def test_a_reference_is_pinned_kept_and_missed(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.004, tpot_s=0.0, prefix_cache=True)) as server:
        store = _store(tmp_path, server)
        first = _warm(tmp_path, server, _PARAMS)
        assert first.verdict.kind is VerdictKind.INFO
        assert first.verdict.reason.startswith("no reference is pinned")
        assert not Path(store.path).exists()
        pinned = _warm(tmp_path, server, {**_PARAMS, "update_baseline": "yes"})
        assert pinned.verdict.reason.endswith("this run is the reference from now on")
        found = store.read().reference
        assert found is not None
        assert found.metrics == {key: value for key, value in pinned.frame.metrics.items() if key.startswith("isl")}
        store.pin(_reference(server, isl48_median_ms=900.0, isl48_p90_ms=900.0), None)
        kept = Path(store.path).read_bytes()
        passed = _warm(tmp_path, server, _PARAMS)
        # A pass does not move it, and neither does a failure, whatever is asked for.
        assert Path(store.path).read_bytes() == kept
        store.pin(_reference(server, isl48_median_ms=0.5, isl48_p90_ms=900.0), None)
        kept = Path(store.path).read_bytes()
        failed = _warm(tmp_path, server, {**_PARAMS, "update_baseline": "yes"})
        assert Path(store.path).read_bytes() == kept
    assert passed.verdict.kind is VerdictKind.PASS, passed.verdict.reason
    assert failed.verdict.kind is VerdictKind.FAIL
    assert failed.verdict.reason.startswith("isl48_median_ms ")
    assert failed.verdict.reason.endswith("limit 100 %)")
    assert any(warning.startswith("this run was not pinned: it is fail") for warning in failed.warnings)
    metrics = passed.frame.metrics
    assert (metrics["samples"], metrics["isl48_samples"], metrics["isl48_prompt_tokens"]) == (64, 64, 48)
    assert metrics["isl48_median_ms"] == metrics["median_ms"] >= 4
    assert metrics["isl48_p90_ms"] == metrics["p90_ms"]
    assert metrics["isl48_max_cached_tokens"] == 44


def test_a_reference_that_is_told_to_moves_and_says_how_far(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        store = _store(tmp_path, server)
        store.pin(_reference(server, isl48_median_ms=1000.0, isl48_p90_ms=1000.0), None)
        store.pin(_reference(server, isl48_median_ms=500.0, isl48_p90_ms=500.0), store.read().reference)
        record = _warm(tmp_path, server, {**_PARAMS, "update_baseline": "yes"})
        found = store.read().reference
    assert record.verdict.kind is VerdictKind.PASS
    assert found is not None
    now_ms = found.metrics["isl48_median_ms"]
    assert now_ms == record.frame.metrics["isl48_median_ms"]
    assert [one.metrics["isl48_median_ms"] for one in found.earlier] == [1000.0, 500.0]
    moved = f"isl48_median_ms {(now_ms / 500 - 1) * 100:+.2f} % (since the first {(now_ms / 1000 - 1) * 100:+.2f} %)"
    assert f"the reference was moved: {moved}" in record.warnings


def test_a_key_that_others_may_read_vouches_for_nothing(tmp_path: Path) -> None:
    with ScriptServer(Model()) as server:
        store = _store(tmp_path, server)
        store.pin(_reference(server, isl48_median_ms=5.0), None)
        (tmp_path / "identity" / "node.key").chmod(0o644)
        again = _store(tmp_path, server).read()
    assert again.reference is None
    assert "may be read or changed by others" in again.problem


def test_a_regression_at_one_length_hides_behind_no_other(tmp_path: Path) -> None:
    params = {**_FEW, "prompt_lengths": "32,48"}
    with ScriptServer(Model(ttft_s=0.010, tpot_s=0.0, prefix_cache=True)) as server:
        fast = _reference(server, isl32_median_ms=900.0, isl32_p90_ms=900.0, isl48_median_ms=1.0, isl48_p90_ms=1.0)
        _store(tmp_path, server).pin(fast, None)
        record = _warm(tmp_path, server, params)
    assert record.verdict.kind is VerdictKind.FAIL
    assert "isl48_median_ms" in record.verdict.reason
    assert "isl32" not in record.verdict.reason


def test_a_p90_without_its_samples_is_not_judged_and_nothing_is_passed(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        _store(tmp_path, server).pin(_reference(server, isl48_median_ms=900.0, isl48_p90_ms=900.0), None)
        record = _warm(tmp_path, server, _FEW)
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason == "isl48_p90_ms of this run has fewer than 64 samples; raise repeats"
    assert "isl48_p90_ms" not in record.frame.metrics


@pytest.mark.parametrize(
    ("benchmark", "model", "params", "kind", "reason"),
    [
        ("ttft-warm-gate", _NoCache(ttft_s=0.0, tpot_s=0.0, prefix_cache=True), {}, VerdictKind.INCONCLUSIVE,
         "isl48: cache vacuous: 12 prompts were to come from the prefix cache and did not: nothing here is warm"),
        ("ttft-warm", Model(ttft_s=0.0, tpot_s=0.0), {}, VerdictKind.INCONCLUSIVE,
         "isl48: cache unmeasured: the server does not say how much of 12 prompts (of 12) was cached"),
        ("ttft-warm", Model(ttft_s=0.0, tpot_s=0.0), {"cache_control": "observed"}, VerdictKind.INFO, "no reference is pinned"),
        ("ttft-cold-gate", Model(ttft_s=0.0, tpot_s=0.0), {}, VerdictKind.INFO, "no reference is pinned"),
        ("ttft-cold", _AllCached(ttft_s=0.0, tpot_s=0.0, prefix_cache=True), {}, VerdictKind.INCONCLUSIVE,
         "isl48: cache vacuous: 12 prompts were to be new to the server and came from its prefix cache"),
        ("ttft-cold", Model(ttft_s=0.0, tpot_s=0.0), {"repeats": "5"}, VerdictKind.INCONCLUSIVE,
         "isl48: too few samples for a median"),
    ],
)  # fmt: skip
def test_what_the_cache_must_show(
    tmp_path: Path, benchmark: str, model: Model, params: Mapping[str, str], kind: VerdictKind, reason: str
) -> None:
    with ScriptServer(model) as server:
        record, _ = run_benchmark(tmp_path, server.url, benchmark, {**_FEW, **params})
    assert record.verdict.kind is kind
    assert record.verdict.reason.startswith(reason)


def test_cold_prompts_are_asked_once_and_warm_ones_again_and_again(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        run_benchmark(tmp_path, server.url, "ttft-cold", _FEW)
        cold = [one.request.body for one in server.served if one.request.json().get("max_tokens") == 8]
        server.served.clear()
        run_benchmark(tmp_path, server.url, "ttft-warm", _FEW)
        warm = [one.request.body for one in server.served if one.request.json().get("max_tokens") == 8]
    measured = [body for body in cold if b"-00" in body]
    assert len(measured) == len(set(measured)) == 13
    assert max(warm.count(body) for body in set(warm)) == 13


def test_prompts_of_a_cell_that_is_measured_again_are_new_once_more(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "ttft-cold", _FEW, box=[Validity.INVALID])
        asked = [one.request for one in server.served if one.request.json().get("max_tokens") == 8]
    cold = [request.body for request in asked if b"-00" in request.body]
    assert record.verdict.kind is VerdictKind.INFO, record.verdict.reason
    assert "isl48 is measured again: throttled 1.7 %" in record.warnings
    assert len(cold) == len(set(cold)) == 26


def test_a_request_that_fails_ends_the_run(tmp_path: Path) -> None:
    def cut(request: Received) -> Script | None:
        return document({"error": {"message": "full"}}, status=500) if b"000000.0" in request.body else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True), cut)) as server:
        record = _warm(tmp_path, server, _FEW)
    assert record.status is RunStatus.FAILED
    assert record.verdict.reason.startswith("isl48: 13 of 13 requests failed")


def test_a_reference_that_was_changed_is_named_and_not_believed(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        store = _store(tmp_path, server)
        store.pin(_reference(server, isl48_median_ms=5.0), None)
        assert store.read().reference == _reference(server, isl48_median_ms=5.0)
        path = Path(store.path)
        path.write_bytes(path.read_bytes().replace(b"5.0", b"9.0"))
        record = _warm(tmp_path, server, {**_FEW, "update_baseline": "yes"})
        for damage in (b"", b"{", b"[1]", b'{"reference":{},"signature":"x"}', b"\xff"):
            path.write_bytes(damage)
            assert "damaged" in store.read().problem, damage
        path.unlink()
        path.mkdir()
        assert "Is a directory" in store.read().problem
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason == f"{path} is not what this node wrote; remove it and pin a reference anew"


def test_a_reference_of_another_endpoint_or_instrument_is_none(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        store = _store(tmp_path, server)
        other = ReferenceStore(ArtifactStore(str(tmp_path), "ttft-warm"), TargetEndpoint.new(server.url, "other"))
        assert other.path != store.path
        store.pin(_reference(server, isl48_median_ms=5.0), None)
        Path(store.path).rename(other.path)
        assert "is of m at" in other.read().problem
        old = Reference(
            benchmark_id="ttft-warm", instrument="2020-01-01", recorded_at=1.0, target=server.url, model="m", metrics={}
        )
        store.pin(old, None)
        assert _warm(tmp_path, server, _FEW).verdict.reason.startswith(
            "the reference was taken with the instrument of 2020-01-01"
        )
        store.pin(_reference(server, isl32_median_ms=5.0), None)
        record = _warm(tmp_path, server, {**_FEW, "update_baseline": "yes"})
    assert record.verdict.reason.startswith("the reference does not hold these lengths")
    found = store.read().reference
    assert found is not None
    assert list(found.earlier[0].metrics) == ["isl32_median_ms"]


def test_what_moved_a_reference_before_is_not_forgotten(tmp_path: Path) -> None:
    with ScriptServer(Model()) as server:
        store = _store(tmp_path, server)
        for step in range(60):
            store.pin(_reference(server, isl48_median_ms=100.0 + step), store.read().reference)
        found = store.read().reference
    assert found is not None
    assert len(found.earlier) == 50
    assert found.earlier[0].metrics == {"isl48_median_ms": 100.0}
    assert found.earlier[-1].metrics == {"isl48_median_ms": 158.0}


@pytest.mark.parametrize(
    ("now_ms", "then_ms", "rose"),
    [
        (103.1, 100.0, True),
        (103.0, 100.0, False),
        (90.0, 100.0, False),
        (11.9, 10.0, False),
        (12.1, 10.0, True),
        (5.0, 0.0, False),
    ],
)
def test_a_rise_is_more_than_the_limit_and_more_than_noise(now_ms: float, then_ms: float, *, rose: bool) -> None:
    assert rises(now_ms, then_ms, 3.0)[0] is rose


def test_a_length_twice_is_refused() -> None:
    with pytest.raises(ParamError, match="each length can be measured once"):
        TtftWarm().configure(ParamValues.from_overrides(TTFT_PARAMETERS, [("prompt_lengths", "48,48")]))
