"""``decode-floor``: three long answers, whose clock they were taken with, and whether drafts were accepted."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeproof.bench.guards import GuardState
from nodeproof.bench.speed.decode_floor import drafts
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer
from nodeproof.bench.testing.model import document
from nodeproof.model.run import RunStatus, VerdictKind
from support.bench_runs import run_benchmark

pytestmark = pytest.mark.timeout(60)

_TPOT_S = 0.0001
"""Of a server that tells 10,000 tokens a second of itself, whatever the machine of the test makes of it."""


@pytest.mark.parametrize(
    ("model", "params", "kind", "reason"),
    [
        ({"times": True}, {"min_tok_s": "9000"}, VerdictKind.PASS,
         "1e+04 tok/s in the median of 3 (server clock), at least 9000 must come"),
        ({"times": True, "accepted_share": 0.5}, {"min_tok_s": "10000", "speculation": "off"}, VerdictKind.PASS, "1e+04 tok/s"),
        ({}, {"min_tok_s": "10000"}, VerdictKind.FAIL, ""),
        ({"times": True}, {}, VerdictKind.INFO, "1e+04 tok/s in the median of 3 (server clock); no floor is set"),
        ({"times": True, "tokens": 700}, {"min_tok_s": "1"}, VerdictKind.INCONCLUSIVE,
         "budget vacuous: an answer of 700 tokens: at least 750 of 1500 must come"),
        ({"times": True}, {"min_tok_s": "1", "speculation": "required"}, VerdictKind.INCONCLUSIVE,
         "drafts unmeasured: the server does not tell how many drafted tokens were accepted"),
        ({"times": True, "accepted_share": 0.1}, {"min_tok_s": "1"}, VerdictKind.INCONCLUSIVE,
         "drafts vacuous: a decode step brought 1.11 tokens in the mean, at least 1.5 are drafted decoding"),
        ({"tokens_per_chunk": 1500}, {"min_tok_s": "1"}, VerdictKind.INCONCLUSIVE,
         "rate unmeasured: 0 of 3 answers have a rate"),
    ],
)  # fmt: skip
def test_verdicts(tmp_path: Path, model: Mapping[str, object], params: Mapping[str, str], kind: VerdictKind, reason: str) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=_TPOT_S, **model)) as server:  # type: ignore[arg-type]  # as the case says
        record, _ = run_benchmark(tmp_path, server.url, "decode-floor", params)
    assert record.status is RunStatus.COMPLETED, record.verdict.reason
    assert (record.verdict.kind, record.verdict.reason[: len(reason)]) == (kind, reason)
    metrics = record.frame.metrics
    assert metrics["runs"] == 3
    if kind is VerdictKind.INCONCLUSIVE:
        assert not {"server_decode_tok_s", "client_decode_tok_s", "output_tokens", "accept_len_mean"} & metrics.keys()
    else:
        assert metrics["output_tokens"] == 1500
        assert metrics["arrival_gap_count"] > 0
        assert ("server_decode_tok_s" in metrics) is ("times" in model)
        assert metrics["client_decode_tok_s"] <= 10_001
    if "accepted_share" in model and kind is VerdictKind.PASS:
        assert metrics["accept_len_mean"] == 2.0


def test_what_is_asked_is_pinned_and_a_field_that_is_refused_is_left_out(tmp_path: Path) -> None:
    def strict(request: Received) -> Script | None:
        return document({"error": {"message": "unknown field"}}, status=422) if b"reasoning_effort" in request.body else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, times=True), strict)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "decode-floor", {})
        long = [one.request for one in server.served if one.request.json().get("max_tokens") == 1500]
    assert len(long) == 3
    assert len({one.body for one in long}) == 1
    body = long[0].json()
    assert (body["temperature"], body["seed"], body["stream_options"]) == (0, 0, {"include_usage": True})
    assert "endpoint: it refuses the field reasoning_effort; requests are sent without it" in record.warnings
    assert record.verdict.kind is VerdictKind.INFO
    assert "(client clock)" in record.verdict.reason  # a decode time of nothing is no rate


def test_a_request_that_fails_ends_the_run(tmp_path: Path) -> None:
    def busy(request: Received) -> Script | None:
        return document({"error": {"message": "no"}}, status=500) if request.json().get("max_tokens") == 1500 else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0), busy)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "decode-floor", {})
    assert (record.status, record.exit_code) == (RunStatus.FAILED, 1)
    assert record.verdict.reason.startswith("3 of 3 requests failed: request 0: ")


@pytest.mark.parametrize(
    ("completion", "accepted", "mode", "state"),
    [
        ([100, 100], [50, 50], "auto", GuardState.OK),
        ([100, 100], [None, None], "auto", GuardState.OK),
        ([100, 100], [0, 0], "auto", GuardState.OK),
        ([100, 100], [0, 0], "required", GuardState.VACUOUS),
        ([100, 100], [50, 0], "auto", GuardState.VACUOUS),
        ([100, 100], [33, 33], "auto", GuardState.VACUOUS),
        ([100, 100], [34, 34], "auto", GuardState.OK),
        ([100, 100], [50, None], "auto", GuardState.UNMEASURED),
        ([100, 100], [50, 100], "auto", GuardState.UNMEASURED),
        ([100, None], [50, 50], "required", GuardState.UNMEASURED),
        ([], [], "required", GuardState.UNMEASURED),
        ([100], [100], "off", GuardState.OK),
    ],
)
def test_drafts(completion: list[int | None], accepted: list[int | None], mode: str, state: GuardState) -> None:
    assert drafts(completion, accepted, mode).state is state
