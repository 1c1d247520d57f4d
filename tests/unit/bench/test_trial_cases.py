"""Answers of the field in the benchmarks that try an endpoint out: what failed is never a wrong answer, and never a right one."""

import json
from pathlib import Path

import pytest

from nodeproof.bench.media.asker import Seen, Worth
from nodeproof.bench.media.items import number_item
from nodeproof.bench.testing import End, Model, Received, Rules, Script, ScriptServer, Step
from support.bench_course import run
from support.endpoint import Case, cases, read

_CASES = cases()
_FAILED = {case.name for case in _CASES if not case.right["success"]}


def test_which_answers_are_none() -> None:
    assert {name.partition("-")[0] for name in _FAILED} == {"53", "56", "73", "85"}


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_what_is_seen_in_an_answer_of_the_field(case: Case) -> None:
    """None of them holds the number that was shown: whole ones are wrong, the others tell nothing."""
    seen = Seen(read(case.wire()), number_item(1))
    assert seen.worth is (Worth.ERROR if case.name in _FAILED else Worth.FAIL)
    assert not seen.worth.measured or case.name not in _FAILED
    assert seen.detail


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "name", ["40-baseline-sse", "52-tool-calls-only-sse", "53-error-mid-stream-sse", "56-truncated-abort-sse"]
)
def test_recorded_turns_answered_by_the_field(tmp_path: Path, name: str) -> None:
    """The calls of case 52 are those that were recorded; an error within a stream leaves the turn unanswered."""
    case = next(one for one in _CASES if one.name == name)
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    messages = [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    data = tmp_path / "sessions.jsonl"
    data.write_text(json.dumps({"id": "a", "kind": "workflow", "messages": messages}), encoding="utf-8")

    def rule(_: Received) -> Script:
        steps = [Step(write.at_s / 20, write.data) for write in case.writes]
        return Script(steps=steps, content_type=case.content_type, end=End.CLEAN if case.clean else End.ABORT)

    with ScriptServer(Rules(Model(), rule)) as server:
        outcome = run(tmp_path, server.url, "mlperf-agentic", dataset=str(data))
    assert outcome.metrics["failed"] == (name in _FAILED)
    assert outcome.metrics["score_pct"] == (100 if name.startswith("52") else 0)
    if name in _FAILED:
        assert outcome.kind == "inconclusive"
        assert outcome.reason.startswith("no turn of 1 was answered: ")
    else:
        assert outcome.kind == "info"
