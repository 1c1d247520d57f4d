"""Answers of servers from the field, as the benchmarks of speed see them: in samples, and in whole runs."""

from pathlib import Path

import numpy as np
import pytest

from nodeproof.bench.load.samples import Identity, SampleWriter
from nodeproof.bench.stats.rows import Answers, read_answers
from nodeproof.bench.testing import End, Model, Received, Rules, Script, ScriptServer, Step
from nodeproof.model.run import RunStatus, VerdictKind
from support.bench_runs import run_benchmark
from support.endpoint import Case, cases, read

pytestmark = pytest.mark.timeout(60)

_CASES = cases()
_BY_NAME = {case.name: case for case in _CASES}


def _answers(tmp_path: Path, case: Case) -> Answers:
    path = str(tmp_path / "s")
    writer = SampleWriter(path, epoch_s=100.0, worker=0)
    writer.add(Identity(0), read(case.wire()))
    writer.close()
    return read_answers([path], (-1.0, 1.0))


@pytest.mark.parametrize("case", _CASES, ids=[case.name for case in _CASES])
def test_what_a_case_is_worth_in_a_sample(tmp_path: Path, case: Case) -> None:
    answers = _answers(tmp_path, case)
    right = case.right
    assert (len(answers), answers.failed) == ((1, 0) if right["success"] else (0, 1))
    if not right["success"]:
        return
    assert answers.output.tolist() == [right["tokens"]]
    if right["ttft"] is None:
        assert np.isnan(answers.ttft_ms).all()
    else:
        assert answers.ttft_ms[0] == pytest.approx(right["ttft"] * 1e3, abs=1.0)


def test_the_time_a_token_is_not_the_time_a_chunk(tmp_path: Path) -> None:
    # Seven tokens in chunks of four and three, 150 ms apart: 25 ms a token, not 150.
    answers = _answers(tmp_path, _BY_NAME["60-multi-token-chunks-sse"])
    assert answers.client_tpot_ms.tolist() == pytest.approx([25.0])
    assert answers.tokens == [7]


def test_a_usage_that_never_came_is_not_the_budget(tmp_path: Path) -> None:
    answers = _answers(tmp_path, _BY_NAME["41-usage-missing-sse"])
    assert answers.tokens == [None]
    assert answers.output.tolist() == [7.0]
    assert answers.delivered(6) == [7]
    assert answers.delivered(100) == [None]
    assert answers.prompts[0].prompt_tokens is None


def test_the_role_is_no_token_and_a_whole_body_has_no_first_one(tmp_path: Path) -> None:
    early = _answers(tmp_path, _BY_NAME["68-role-chunk-early-sse"])
    assert early.ttft_ms[0] == pytest.approx(200.0)
    whole = _answers(tmp_path, _BY_NAME["71-stream-ignored-json-sse"])
    assert np.isnan(whole.client_tpot_ms).all()


def _serving(name: str) -> Rules:
    """A model that answers what is measured as the case does, ten times as fast."""
    case = _BY_NAME[name]

    def rule(request: Received) -> Script | None:
        if b"Count upwards" not in request.body or request.json()["max_tokens"] != 16:
            return None
        steps = [Step(write.at_s / 10, write.data) for write in case.writes]
        end = End.CLEAN if case.clean else End.ABORT
        return Script(steps=steps, status=case.status, content_type=case.content_type, headers=case.headers, end=end)

    return Rules(Model(ttft_s=0.0, tpot_s=0.0), rule)


_PARAMS = {"runs": "2", "warmup": "1", "osl": "16", "request_timeout_s": "10"}


@pytest.mark.parametrize("name", ["41-usage-missing-sse", "60-multi-token-chunks-sse"])
def test_a_run_counts_the_seven_tokens_that_came(tmp_path: Path, name: str) -> None:
    with ScriptServer(_serving(name)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS)
    assert record.verdict.kind is VerdictKind.INFO, record.verdict.reason
    assert record.frame.metrics["output_tokens"] == 7
    assert record.frame.metrics["client_ttft_ms"] >= 20
    table = record.frame.table
    assert table is not None
    counted = {row[0].text: row[-1].text for row in table.rows}["output_tokens"]
    assert counted == ("chunks" if name.startswith("41") else "count")


@pytest.mark.parametrize("name", ["53-error-mid-stream-sse", "56-truncated-abort-sse"])
def test_an_answer_that_broke_off_ends_the_run(tmp_path: Path, name: str) -> None:
    with ScriptServer(_serving(name)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "quick-speed", _PARAMS)
    assert record.status is RunStatus.FAILED
    assert record.verdict.reason.startswith("3 of 3 requests failed: request 0: ")
