"""``quick-speed`` against servers whose times are known."""

import itertools
from pathlib import Path

import pytest

from nodeproof.bench.load.measure import Cell
from nodeproof.bench.load.plan import LoadPlan, PromptPlan, Where
from nodeproof.bench.load.samples import Identity, SampleWriter
from nodeproof.bench.speed.cells import doubt
from nodeproof.bench.speed.quick import QuickSpeed
from nodeproof.bench.stats.recompute import recompute
from nodeproof.bench.stats.report import report
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer
from nodeproof.bench.testing.model import document
from nodeproof.errors import RunError
from nodeproof.model.hardware import Validity
from nodeproof.model.run import RunStatus, VerdictKind
from nodeproof.runs.params import ParamValues
from support.bench_runs import LoggedHandle, run_benchmark
from support.endpoint import finished_exchange

pytestmark = pytest.mark.timeout(60)

_PARAMS = {"isl": "60", "osl": "6", "runs": "3", "warmup": "1", "request_timeout_s": "10"}
_MEASURED = b"Count upwards from 1"


def test_means_on_the_server_s_clock_and_on_ours(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.02, tpot_s=0.004, times=True)) as server:
        record, place = run_benchmark(tmp_path, server.url, "quick-speed-bench", _PARAMS)
        asked = [one for one in server.served if _MEASURED in one.request.body and one.request.json()["max_tokens"] == 6]
    assert record.benchmark_id == "quick-speed"
    assert (record.status, record.verdict.kind) == (RunStatus.COMPLETED, VerdictKind.INFO), record.verdict.reason
    metrics = record.frame.metrics
    assert (metrics["runs"], metrics["prompt_tokens"], metrics["output_tokens"]) == (3, 60, 6)
    # 20 ms to the first token, five times 4 ms after it: 250 tokens a second while it decodes.
    assert metrics["server_ttft_ms"] == pytest.approx(20)
    assert metrics["server_decode_tok_s"] == pytest.approx(250)
    assert metrics["server_tpot_ms"] == pytest.approx(4)
    assert metrics["client_ttft_ms"] >= 20
    assert metrics["e2e_ms"] >= 40
    assert metrics["client_e2e_tok_s"] <= 6 / 0.040
    # The same bytes for the warm-up and every run, with the usage asked for, one after the other.
    assert len(asked) == 4
    assert len({one.request.body for one in asked}) == 1
    body = asked[0].request.json()
    assert (body["temperature"], body["stream"], body["stream_options"]) == (0, True, {"include_usage": True})
    assert all(before.ended_s <= after.request.at_s for before, after in itertools.pairwise(asked))
    assert [stat.unit for stat in record.frame.summary][:2] == ["tok/s, server clock", "ms, server clock"]
    (cell,) = recompute(str(place / "files"))
    assert (cell.report.counts["requests_ok"], cell.report.counts["warmup_requests"]) == (3, 1)
    assert [one.name for one in record.provenance] == ["prompts"]


def test_a_server_without_times_of_its_own_gets_the_client_s_and_they_are_called_so(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.02, tpot_s=0.004)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS)
    metrics = record.frame.metrics
    assert not [key for key in metrics if key.startswith("server_")]
    # 4 ms a token: no more, but for a first token that a busy machine read late.
    assert 0 < metrics["client_decode_tok_s"] <= 300
    assert record.frame.summary[0].unit == "tok/s, client clock"


def test_without_two_tokens_there_is_no_rate(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, tokens=1)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "quick-speed", {**_PARAMS, "warmup": "0"})
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason == "rate vacuous: no answer of 3 has two tokens: there is no rate"
    assert not [key for key in record.frame.metrics if "decode" in key]
    assert record.frame.metrics["guard_rate_vacuous"] == 1
    assert any("cold cache" in warning for warning in record.warnings)


def test_one_request_that_fails_ends_the_run(tmp_path: Path) -> None:
    def busy(request: Received) -> Script | None:
        if _MEASURED not in request.body or request.json()["max_tokens"] == 1:
            return None
        return document({"error": {"message": "busy"}}, status=503)

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0), busy)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS)
    assert (record.status, record.exit_code) == (RunStatus.FAILED, 1)
    assert record.verdict.reason.startswith("4 of 4 requests failed: request 0: status 503: ")


def test_a_run_whose_generator_was_the_limit_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeproof.bench.stats.report._LAG_S", -1.0)
    with ScriptServer(Model(ttft_s=0.1, tpot_s=0.0)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS)
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason.startswith("the generator was the limit: the loop of a worker was ")


def test_samples_that_were_damaged_prove_nothing(tmp_path: Path) -> None:
    writer = SampleWriter(str(tmp_path / "s"), epoch_s=1000.0, worker=0)
    writer.add(Identity(0), finished_exchange(1000.0))
    writer.close()
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-3])
    found = report([str(tmp_path / "s")], LoadPlan(where=Where(base_url="", model=""), prompts=PromptPlan()))
    assert "was not written to its end" in doubt(Cell(name="c", report=found, validity="valid"))


def test_nothing_can_be_asked_before_there_is_anything_to_ask(tmp_path: Path) -> None:
    benchmark = QuickSpeed()
    with pytest.raises(RunError, match=r"quick-speed: next\(\) before configure\(\)"):
        benchmark.next()
    benchmark.configure(ParamValues.defaults(benchmark.parameters()))
    with pytest.raises(RunError, match=r"quick-speed: next\(\) before load\(\)"):
        benchmark.next()
    with pytest.raises(RunError, match="needs an endpoint"):
        benchmark.load(LoggedHandle(str(tmp_path)))
    benchmark.cleanup()


def test_an_endpoint_that_is_not_there_ends_it_at_once(tmp_path: Path) -> None:
    record, _ = run_benchmark(tmp_path, "http://127.0.0.1:9", "quick-speed", _PARAMS)
    assert (record.status, record.exit_code) == (RunStatus.FAILED, 1)
    reason = record.verdict.reason
    assert reason.startswith("http://127.0.0.1:9 does not answer a short question (connect): no connection")
    assert reason.endswith("is the server up, and is this its address?")


def test_a_cell_is_measured_again_when_the_box_was_not_fit_and_believed_only_if_it_then_was(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0)) as server:
        once, place = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS, box=[Validity.INVALID])
        twice, _ = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS, box=[Validity.INVALID, Validity.INVALID])
    assert once.verdict.kind is VerdictKind.INFO
    assert "quick is measured again: throttled 1.7 %" in once.warnings
    assert [(cell.name, cell.superseded) for cell in recompute(str(place / "files"))] == [("quick", True), ("quick-try1", False)]
    assert (twice.verdict.kind, twice.exit_code) == (VerdictKind.INCONCLUSIVE, 3)
    assert twice.verdict.reason == "the box was not fit while it was measured"
