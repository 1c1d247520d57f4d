"""What of the answers of the field is scored or compared: those that came whole, and no others."""

import json

import pytest

from nodeproof.bench.bfcl.answers import answer_of
from nodeproof.bench.equality.replies import reply_of
from support.endpoint import Case, cases, read


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_only_answers_that_came_whole_count(case: Case) -> None:
    exchange = read(case.wire())
    answer, reply = answer_of("s", "multiple", exchange), reply_of(exchange)
    whole = case.right["success"] is not False
    assert (answer.measured, reply.ok) == (whole, whole)
    if whole:
        assert reply.text == answer.text == case.right["text"]
        assert (reply.empty, answer.empty) == (False, False)


def test_tool_calls_alone_are_an_answer_and_so_is_thinking_alone() -> None:
    by_name = {case.name[:2]: case for case in cases()}
    calls = answer_of("s", "multiple", read(by_name["52"].wire()))
    assert [(name, json.loads(arguments)) for name, arguments in calls.calls] == [("get_weather", {"city": "Paris"})]
    thought = answer_of("s", "multiple", read(by_name["46"].wire()))
    assert (thought.outcome, thought.calls, bool(thought.reasoning)) == ("length", (), True)
    refused = answer_of("s", "multiple", read(by_name["73"].wire()))
    assert (refused.measured, refused.retry_after_s) == (False, 1.0)
