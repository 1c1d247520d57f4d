"""Load runs under the executor, against servers whose times are known; figures from samples alone."""

import hashlib
import json
import math
import os
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.load.arrivals import arrivals
from nodeproof.bench.load.data import read_conversations, trace_times
from nodeproof.bench.load.parameters import LOAD_PARAMETERS, LoadSettings, lengths_of
from nodeproof.bench.load.plan import Arrival, Lengths, LoadPlan, PromptPlan, Slo, Where
from nodeproof.bench.load.prompts import Questions
from nodeproof.bench.load.samples import ROW, Identity, SampleWriter, changed_rows, read_blocks
from nodeproof.bench.stats.recompute import recompute
from nodeproof.bench.stats.report import report
from nodeproof.bench.testing import Model, ScriptServer
from nodeproof.errors import ParamError, ParseError, RecordError, RunError, WriteError
from nodeproof.model.run import RunRecord, RunStatus, VerdictKind
from nodeproof.runs.endpoint import Secret, TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.headless import HeadlessOptions, RunReporter, run_blocking
from nodeproof.runs.params import ParamValues
from nodeproof.runs.store import RunStore

_BY_ID = {descriptor.id: descriptor for descriptor in DESCRIPTORS}
_QUICK = {"duration_s": "2.5", "warmup_s": "0.5", "drain_s": "5", "output_tokens": "8", "input_tokens": "40"}


def _run(tmp_path: Path, url: str, benchmark: str, params: Mapping[str, str]) -> tuple[RunRecord, Path]:
    store = RunStore(str(tmp_path / "runs"))
    executor = BenchmarkExecutor(home=str(tmp_path), store=store)
    target = TargetEndpoint.new(url, "m", key=Secret("sk-planted"))
    outcome = run_blocking(
        executor, _BY_ID[benchmark], params, RunReporter(), options=HeadlessOptions(target=target, poll_s=0.05)
    )
    return outcome.record, Path(outcome.saved_to)


@pytest.mark.timeout(60)
def test_a_closed_loop_with_everything_recomputed_from_its_samples(tmp_path: Path) -> None:
    model = Model(ttft_s=0.04, tpot_s=0.01, prefix_cache=True, role_at_s=0.005)
    with ScriptServer(model) as server:
        record, place = _run(tmp_path, server.url, "load", {**_QUICK, "concurrency": "4", "repeats": "2", "slo_ttft_ms": "5000"})
        truth = [served for served in server.served if b"max_tokens" in served.request.body and len(served.writes) == 10]
    assert record.status is RunStatus.COMPLETED, record.verdict.reason
    metrics = record.frame.metrics
    assert metrics["requests_failed"] == 0
    assert metrics["tokens_counted_by_server"] == 1
    assert metrics["slo_attainment_pct"] == 100
    assert metrics["aa_output_tok_difference_pct"] >= 0
    # The server waits 40 ms before the first token and has 10 ms from token to token: an answer cannot be quicker.
    assert metrics["ttft_p50_ms"] >= 40
    assert metrics["e2e_p50_ms"] >= 110
    assert metrics["concurrency_mean"] <= 4.01
    assert len(truth) > 20
    # All of it again, from the files alone.
    cells = recompute(str(place / "files"))
    assert [cell.name for cell in cells] == ["cell0", "cell1"]
    again = [cell.report.metrics() for cell in cells]
    for key in set(again[0]) & set(again[1]):
        assert metrics[key] == pytest.approx((again[0][key] + again[1][key]) / 2), key
    assert all(cell.report.problems == [] for cell in cells)
    # Lengths are true: the server counts what was asked for.
    blocks = [block for block in read_blocks(str(place / "files" / "cell0-samples-0.npsb")) if block.kind == "requests"]
    rows = np.concatenate([block.samples().rows for block in blocks])
    assert set(rows["prompt_tokens"].tolist()) == {40}
    assert set(rows["completion_tokens"].tolist()) == {8}
    assert bool((rows["first_role_s"] < rows["first_token_s"]).all())
    # The key is nowhere in what is kept.
    for path in place.rglob("*"):
        if path.is_file():
            assert b"sk-planted" not in path.read_bytes(), path
    features = json.loads((place / "files" / "features.json").read_bytes())
    assert (features["models"], features["include_usage"], features["ignore_eos"]) == (["m"], True, "honoured")
    assert features["tokens"] == {"words_per_token": 1.0, "overhead": 5, "source": "usage"}


@pytest.mark.timeout(60)
def test_an_open_loop_measures_from_the_intended_start(tmp_path: Path) -> None:
    """One slot of 100 ms at 20 requests a second: the queue grows, and the latency from the schedule with it."""
    params = {**_QUICK, "mode": "open", "rate": "20", "arrival": "constant", "warmup_s": "0", "duration_s": "2", "workers": "2"}
    with ScriptServer(Model(ttft_s=0.1, tpot_s=0.0, slots=1)) as server:
        record, place = _run(tmp_path, server.url, "load", {**params, "slo_ttft_ms": "300", "min_attainment_pct": "90"})
    metrics = record.frame.metrics
    assert metrics["requests"] == 40
    assert (metrics["ttft_scheduled_mean_ms"]) > 800
    assert record.verdict.kind is VerdictKind.FAIL or metrics["client_limited"]
    assert metrics["slo_attainment_pct"] < 30
    rows = np.concatenate(
        [
            block.samples().rows
            for worker in (0, 1)
            for block in read_blocks(str(place / "files" / f"cell0-samples-{worker}.npsb"))
            if block.kind == "requests"
        ]
    )
    assert sorted(rows["number"].tolist()) == list(range(40))
    order = np.argsort(rows["number"])
    assert rows["scheduled_s"][order] == pytest.approx(np.arange(40) / 20, abs=1e-6)
    assert set(rows["worker"].tolist()) == {0, 1}


@pytest.mark.timeout(120)
def test_a_known_knee_is_found(tmp_path: Path) -> None:
    """Four slots of 100 ms serve 40 requests a second and not one more."""
    params = {
        "slo_ttft_ms": "250",
        "arrival": "constant",
        "rate_low": "16",
        "duration_s": "5",
        "warmup_s": "1",
        "drain_s": "2",
        "output_tokens": "1",
        "input_tokens": "30",
        "tolerance_pct": "4",
        "attainment_pct": "90",
    }
    with ScriptServer(Model(ttft_s=0.1, tpot_s=0.0, slots=4)) as server:
        record, _ = _run(tmp_path, server.url, "goodput-search", params)
    if record.verdict.kind is VerdictKind.INCONCLUSIVE and "generator was the limit" in record.verdict.reason:
        return  # a machine that is too busy says so, and nothing else
    assert record.verdict.kind is VerdictKind.INFO, record.verdict.reason
    assert 38 <= record.frame.metrics["max_rate_per_s"] <= 42
    assert record.frame.metrics["first_missed_rate_per_s"] <= record.frame.metrics["max_rate_per_s"] * 1.04


@pytest.mark.timeout(60)
def test_nothing_answers(tmp_path: Path) -> None:
    """A closed port ends the run before any load, with place and remedy."""
    record, place = _run(tmp_path, "http://127.0.0.1:9", "load", {**_QUICK, "duration_s": "1"})
    assert (record.status, record.exit_code) == (RunStatus.FAILED, 1)
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason == (
        "http://127.0.0.1:9 cannot be reached: no connection: 127.0.0.1: Connection refused; "
        "start the server there, or give its address with --url"
    )
    assert list((place / "files").glob("*-samples-*")) == []


@pytest.mark.timeout(60)
def test_a_name_that_is_none(tmp_path: Path) -> None:
    record, _ = _run(tmp_path, "http://no-such-host.invalid:8000", "goodput-search", {"slo_ttft_ms": "9"})
    assert record.status is RunStatus.FAILED
    assert record.verdict.reason.startswith(
        "http://no-such-host.invalid:8000 cannot be reached: no-such-host.invalid cannot be resolved"
    )


@pytest.mark.timeout(60)
def test_a_server_that_goes_away_ends_the_load(tmp_path: Path) -> None:
    """Not thousands of refused requests: the run ends, and what was measured until then is kept."""
    server = ScriptServer(Model(ttft_s=0.02, tpot_s=0.0))
    server.start()

    def end_it() -> None:
        ends_s = time.monotonic() + 30
        while len(server.served) < 60 and time.monotonic() < ends_s:
            time.sleep(0.02)
        server.stop()

    thread = threading.Thread(target=end_it)
    thread.start()
    record, place = _run(tmp_path, server.url, "load", {**_QUICK, "duration_s": "50", "output_tokens": "2"})
    thread.join()
    assert record.status is RunStatus.FAILED
    assert record.verdict.reason.startswith(f"{server.url} cannot be reached after ")
    assert record.verdict.reason.endswith("see what became of the server")
    assert record.frame.elapsed.seconds < 30
    (cell,) = recompute(str(place / "files"))
    assert cell.report.outcomes.get("connect", 0) <= 16
    assert sum(cell.report.outcomes.values()) + cell.report.counts["warmup_requests"] >= 30


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"mode": "closed", "rate": "5"}, "a closed loop has no rate"),
        ({"mode": "closed", "concurrency": "0"}, "at least one request at once"),
        ({"mode": "open"}, "needs a rate above 0"),
        ({"mode": "open", "rate": "5", "arrival": "ramp"}, "a ramp needs a rate at its end"),
        ({"mode": "open", "rate": "5", "rate_end": "9"}, "a ramp needs a rate at its end"),
        ({"mode": "open", "rate": "5", "arrival": "trace"}, "needs data=FILE"),
        ({"burstiness": "2"}, "only arrival=gamma"),
        ({"warmup_s": "30"}, "leaves nothing of 30 s"),
        ({"min_attainment_pct": "9"}, "there is no SLO to attain"),
        ({"prefix_tokens": "256"}, "shorter than the input"),
        ({"stream": "no", "slo_ttft_ms": "9"}, "no TTFT"),
        ({"stream": "no", "slo_tpot_ms": "9"}, "no TPOT"),
        ({"input_tokens": "many"}, "is no length"),
        ({"input_tokens": "uniform:9-3"}, "the smaller one first"),
        ({"output_tokens": "normal:nan,3"}, "is no length"),
        ({"nothing": "1"}, "no parameter 'nothing'"),
    ],
)
def test_parameters_that_contradict_each_other(params: Mapping[str, str], problem: str) -> None:
    with pytest.raises(ParamError, match=problem):
        LoadSettings(ParamValues.from_overrides(LOAD_PARAMETERS, params.items()))


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({}, "there is no SLO to keep"),
        ({"slo_ttft_ms": "9", "rate_low": "9", "rate_high": "9"}, "below rate_high"),
        ({"slo_ttft_ms": "9", "arrival": "ramp"}, "a ramp needs|arrivals at one rate"),
    ],
)
def test_searches_that_cannot_end(params: Mapping[str, str], problem: str) -> None:
    benchmark = _BY_ID["goodput-search"].build()
    with pytest.raises(ParamError, match=problem):
        benchmark.configure(ParamValues.from_overrides(benchmark.parameters(), params.items()))


def test_lengths() -> None:
    assert lengths_of("x", "512") == Lengths("fixed", 512.0)
    assert lengths_of("x", "uniform:100-200") == Lengths("uniform", 100.0, 200.0)
    assert lengths_of("x", "lognormal:512,0.5") == Lengths("lognormal", 512.0, 0.5)


# Arrivals


def test_arrivals_have_the_rate_that_was_asked_for() -> None:
    rate = 50.0
    for kind in ("constant", "poisson", "gamma"):
        times = list(arrivals(Arrival(kind=kind, rate=rate, burstiness=0.5), 1, 400.0))
        assert len(times) == pytest.approx(rate * 400, rel=0.03), kind
        assert times == sorted(times)
        assert times == list(arrivals(Arrival(kind=kind, rate=rate, burstiness=0.5), 1, 400.0))
    gaps = np.diff(list(arrivals(Arrival(kind="gamma", rate=rate, burstiness=0.25), 1, 400.0)))
    assert gaps.std() / gaps.mean() == pytest.approx(2.0, rel=0.1)  # a gamma gap of shape k varies by 1/sqrt(k)


def test_a_ramp_and_a_trace() -> None:
    times = list(arrivals(Arrival(kind="ramp", rate=0.001, rate_end=20.0), 0, 10.0))
    assert len(times) == pytest.approx(100, abs=1)
    assert sum(at_s < 5 for at_s in times) == pytest.approx(25, abs=1)
    falling = list(arrivals(Arrival(kind="ramp", rate=20.0, rate_end=0.001), 0, 10.0))
    assert sum(at_s < 5 for at_s in falling) == pytest.approx(75, abs=1)
    assert list(arrivals(Arrival(kind="trace", rate=2.0), 0, 9.0, [0.0, 4.0, 20.0])) == [0.0, 2.0]
    with pytest.raises(RunError, match="expected one of"):
        arrivals(Arrival(kind="never"), 0, 1.0)


# Data


def test_files_with_conversations(tmp_path: Path) -> None:
    share = [
        {
            "id": "a",
            "conversations": [
                {"from": "system", "value": "be brief"},
                {"from": "human", "value": "one"},
                {"from": "gpt", "value": "1"},
                {"from": "human", "value": "two"},
                {"from": "gpt"},
                7,
            ],
        },
        {"conversations": []},
    ]
    path = tmp_path / "share.json"
    path.write_text(json.dumps(share), encoding="utf-8")
    (conversation,) = read_conversations(str(path))
    assert [asked.text for asked in conversation.questions] == ["one", "two"]
    assert conversation.before == ({"role": "system", "content": "be brief"},)
    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(
        b'\xef\xbb\xbf{"prompt": "p", "output_tokens": 7}\n\n'
        b'{"messages": [{"role": "user", "content": "q"}], "max_tokens": 9}\n'
        b'{"timestamp": 1500, "input_length": 1100, "output_length": 3, "hash_ids": [5, 6]}\n'
    )
    prompt, messages, trace = read_conversations(str(lines))
    assert prompt.questions[0][:2] == ("p", 7)
    assert messages.questions[0][:2] == ("q", 9)
    assert (trace.at_s, trace.questions[0].blocks, trace.questions[0].input_tokens) == (1.5, (5, 6), 1100)
    plan = LoadPlan(where=Where(base_url="", model=""), prompts=PromptPlan(data="x"), seed=3)
    questions = Questions(plan, [trace, prompt])
    assert len(questions.question(0).text.split()) == 1100
    assert questions.question(0).text.split()[:512] == questions.question(2).text.split()[:512]
    assert (questions.question(1).text, questions.question(1).max_tokens) == ("p", 7)
    with pytest.raises(RunError, match="go back"):
        trace_times([trace, prompt])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "holds no question"),
        (b"[", "a JSON list"),
        (b'{"prompt": "a"}\nnonsense\n', "line 2: found 'nonsense'"),
        (b'{"other": 1}\n', "line 1"),
        (b"[1]", "found '1'"),
    ],
)
def test_files_that_hold_none(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises((RunError, ParseError), match=problem):
        read_conversations(str(path))
    with pytest.raises(RunError, match="No such file"):
        read_conversations(str(tmp_path / "none"))


def test_a_device_or_pipe_is_no_file_of_conversations(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path / "pipe")):
        with pytest.raises(RunError, match=f"{path} is no plain file"):
            read_conversations(path)


def test_prompts_share_what_they_are_to_share_and_nothing_else() -> None:
    prompts = PromptPlan(inputs=Lengths("fixed", 100), prefix_tokens=60, prefix_groups=2, nonce="n-")
    plan = LoadPlan(where=Where(base_url="", model=""), prompts=prompts)
    questions = Questions(plan, [])
    texts = [questions.question(number).text.split() for number in range(4)]
    assert texts[0][:60] == texts[2][:60] != texts[1][:60]
    assert texts[0][60:] != texts[2][60:]
    assert {len(text) for text in texts} == {101}
    assert questions.question(3).text == Questions(plan, []).question(3).text


# Samples


def _exchange(number: int, *, gap_s: float = 0.01, chunks: int = 5) -> Exchange:
    exchange = Exchange(1000.0 + number)
    exchange.started_s = exchange.connected_s = exchange.sent_s = 1000.001 + number
    exchange.first_byte_s = exchange.first_token_s = exchange.first_content_s = 1000.101 + number
    exchange.chunks_s.extend(exchange.first_token_s + gap_s * place for place in range(chunks))
    exchange.end_s = exchange.chunks_s[-1]
    exchange.outcome, exchange.streamed, exchange.status = Outcome.LENGTH, True, 200
    exchange.usage.completion_tokens, exchange.usage.prompt_tokens = chunks, 7
    return exchange


def _samples(path: Path, count: int) -> LoadPlan:
    writer = SampleWriter(str(path), epoch_s=1000.0, worker=0)
    for number in range(count):
        exchange = _exchange(number)
        if number % 10 == 9:
            exchange.outcome, exchange.detail = Outcome.STATUS, "status 503: busy"
        writer.add(Identity(number, number), exchange)
    writer.close()
    where = Where(base_url="", model="")
    return LoadPlan(where=where, prompts=PromptPlan(), duration_s=float(count), slo=Slo(ttft_ms=150), concurrency=1)


def test_figures_of_known_samples(tmp_path: Path) -> None:
    path = tmp_path / "a-samples-0.npsb"
    found = report([str(path)], _samples(path, 2000))
    figures, counts = found.figures, found.counts
    assert counts == {"requests": 2000, "requests_ok": 1800, "requests_failed": 200, "warmup_requests": 0}
    assert found.outcomes == {"length": 1800, "status": 200}
    for key, value in (
        ("ttft_p50_ms", 100.0),
        ("ttft_p99_ms", 100.0),
        ("ttft_scheduled_p50_ms", 101.0),
        ("queue_p50_ms", 1.0),
        ("tpot_p50_ms", 10.0),
        ("itl_p50_ms", 10.0),
        ("itl_p99_ms", 10.0),
        ("e2e_p99_ms", 140.0),
    ):
        assert figures[key].value == pytest.approx(value, abs=0.002), key
    assert figures["requests_per_s"].value == pytest.approx(0.9)
    assert figures["output_tok_s"].value == pytest.approx(4.5)
    assert figures["concurrency_mean"].value == pytest.approx(0.9 * 0.14)
    assert figures["slo_attainment_pct"].value == pytest.approx(90.0)
    assert figures["goodput_per_s"].value == pytest.approx(0.9)
    low, high = figures["slo_attainment_pct"].low, figures["slo_attainment_pct"].high
    assert low is not None
    assert high is not None
    assert 88 < low < 90 < high < 92
    assert found.notes[0] == "request 9: status 503: busy"
    assert found.tokens_by == "usage"
    assert (found.clocks["ttft"], found.clocks["server_ttft"]) == ("client", "server")


def test_a_changed_sample_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a-samples-0.npsb"
    plan = _samples(path, 700)
    (tmp_path / "a-plan.json").write_bytes(msgspec.json.encode(plan))
    assert recompute(str(tmp_path))[0].report.problems == []
    raw = path.read_bytes()
    line_end = raw.index(b"\n", 6)
    head = json.loads(raw[6:line_end])
    body = bytearray(zlib.decompress(raw[line_end + 1 : line_end + 1 + head["bytes"]]))
    offset = ROW.itemsize * 17 + ROW.fields["first_token_s"][1]  # type: ignore[index]  # a structure has fields
    body[offset : offset + 8] = np.float64(0.001).tobytes()
    packed = zlib.compress(bytes(body), 1)
    changed = raw[:6] + json.dumps({**head, "bytes": len(packed)}).encode() + b"\n" + packed + raw[line_end + 1 + head["bytes"] :]
    path.write_bytes(changed)
    problems = recompute(str(tmp_path))[0].report.problems
    assert problems == [f"{path}: block 0 is not what was written", "changed: request 17"]
    # Also when whoever did it made the block's own sum right.
    honest = {**head, "bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}
    path.write_bytes(raw[:6] + json.dumps(honest).encode() + b"\n" + packed + raw[line_end + 1 + head["bytes"] :])
    assert recompute(str(tmp_path))[0].report.problems == [f"{path}: block 0: request 17 is not what was written"]


def test_samples_of_a_writer_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a-samples-0.npsb"
    plan = _samples(path, 1200)
    raw = path.read_bytes()
    for cut in (len(raw) - 5, len(raw) - 3000):
        path.write_bytes(raw[:cut])
        found = report([str(path)], plan)
        assert found.counts["requests"] == 1024
        assert found.problems == [f"{path}: block 2 was not written to its end; its 176 rows are left out"]
    path.write_bytes(raw + b"rubbish\n")
    assert "no block" in report([str(path)], plan).problems[0]
    path.write_bytes(b"other")
    with pytest.raises(ParseError, match="begins with NPSB2"):
        report([str(path)], plan)
    with pytest.raises(RecordError, match="holds no samples"):
        recompute(str(tmp_path))
    with pytest.raises(RecordError, match="holds no samples"):
        recompute(str(tmp_path / "none"))


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    writer = SampleWriter(str(tmp_path / "s"), epoch_s=0.0, worker=0)
    writer._file.close()
    full = os.open("/dev/full", os.O_WRONLY)
    writer._file = os.fdopen(full, "wb", buffering=0)
    writer.add(Identity(1), _exchange(1))
    with pytest.raises(WriteError, match="No space left"):
        writer.close()


def test_a_request_that_never_began_has_no_times(tmp_path: Path) -> None:
    writer = SampleWriter(str(tmp_path / "s"), epoch_s=1000.0, worker=3, cell=2)
    exchange = Exchange(1001.5)
    exchange.fail(Outcome.CONNECT, "no connection")
    writer.add(Identity(4, 4, 1, 10, 20), exchange)
    writer.close()
    (block,) = read_blocks(str(tmp_path / "s"))
    row = block.samples().rows[0]
    assert (row["number"], row["turn"], row["cell"], row["worker"], row["chunks"]) == (4, 1, 2, 3, 0)
    assert row["scheduled_s"] == 1.5
    assert math.isnan(row["first_token_s"])
    assert row["prompt_tokens"] == -1
    assert changed_rows(block) == []
