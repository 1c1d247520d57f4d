"""Equality of answers, driven through pass, fail, inconclusive and vacuous against a server that answers what a test says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.equality.canaries import foreign, probes
from nodeproof.bench.equality.contamination import FindingClass, Observed, classify
from nodeproof.bench.equality.kat import orders_of, outcome_of
from nodeproof.bench.equality.poisoning import TurnClass, turn_class
from nodeproof.bench.equality.questions import made_up
from nodeproof.bench.equality.replies import Kind, Reply, common_prefix, compare
from nodeproof.bench.equality.scheduler import CellVerdict, judge_cell
from nodeproof.bench.equality.tables import MAX_ROWS, named, table_of
from nodeproof.bench.equality.toolcalls import same_calls
from nodeproof.bench.testing import End, Script, ScriptServer, Step, chat_chunk
from nodeproof.errors import ParamError, RunError
from nodeproof.model.run import RunStatus
from nodeproof.runs.conformance import Subject, failures
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.params import ParamValues
from support.answering import BY_ID, Answering, Ran, Said, last_text, run_benchmark, status


def _reply(text: str = "a b c", **more: Any) -> Reply:
    return Reply("stop", ok=True, text=text, tokens=len(text.split()), counted=True, finish="stop", **more)


_LOST = Reply("truncated", ok=False, detail="cut")


def _cut() -> Script:
    """An answer whose connection ends in the middle."""
    return Script(steps=[Step(0.0, chat_chunk({"content": "beg"}))], end=End.ABORT)


# Replies


def test_replies_are_compared_byte_for_byte_with_their_end_and_their_count() -> None:
    assert compare(_reply(), _reply()).kind is Kind.EQUAL
    other = compare(_reply("a b c"), _reply("a b d"))
    assert (other.kind, other.common_bytes) == (Kind.DIVERGED, 5)  # one separator, then "a b "
    assert (
        compare(_reply(), Reply("length", ok=True, text="a b c", tokens=3, counted=True, finish="length")).kind is Kind.DIVERGED
    )
    counts = compare(_reply(), Reply("stop", ok=True, text="a b c", tokens=4, counted=True, finish="stop"))
    assert (counts.kind, counts.why) == (Kind.DIVERGED, "3 tokens against 4")
    chunks = Reply("stop", ok=True, text="a b c", tokens=1, finish="stop")
    assert compare(_reply(), chunks).kind is Kind.EQUAL  # chunks are no tokens
    assert compare(_reply(), _LOST).why == "the other: truncated"
    assert compare(_LOST, _reply()).kind is Kind.UNMEASURED


def test_what_moves_from_one_field_to_another_is_a_difference() -> None:
    assert (
        compare(_reply("x"), Reply("stop", ok=True, reasoning="x", tokens=1, counted=True, finish="stop")).kind is Kind.DIVERGED
    )
    one = Reply("tool_calls", ok=True, calls=(("f", "{}"),))
    assert compare(one, Reply("tool_calls", ok=True, calls=(("f", "{ }"),))).kind is Kind.DIVERGED


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_common_prefix_is_the_longest(one: bytes, two: bytes) -> None:
    size = common_prefix(one, two)
    assert one[:size] == two[:size]
    assert one[: size + 1] != two[: size + 1] or size == min(len(one), len(two))


def test_tables_and_lists_of_names_are_bounded() -> None:
    assert named([str(n) for n in range(9)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 1 more"
    table = table_of("T", ("A",), [(str(n),) for n in range(MAX_ROWS + 1)])
    assert table is not None
    assert (table.title, len(table.rows)) == (f"T (first {MAX_ROWS} of {MAX_ROWS + 1})", MAX_ROWS)


# Orders


def test_orders_are_as_drawn_reversed_and_rotated() -> None:
    assert orders_of(6, 4) == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [4, 5, 0, 1, 2, 3], [4, 5, 0, 1, 2, 3]]
    assert orders_of(12, 4)[2:] == [[8, 9, 10, 11, *range(8)], [9, 10, 11, *range(9)]]
    assert orders_of(1, 3) == [[0], [0], [0]]
    assert orders_of(2, 3)[2] == [1, 0]


def test_a_question_that_is_missing_in_an_order_is_unmeasured() -> None:
    found = outcome_of([{"q": _reply(), "r": _reply()}, {"q": _reply()}])
    assert found.named(Kind.UNMEASURED) == ["r"]


_KAT: dict[str, Any] = {"questions": "synthetic", "sample_cap": 6, "max_new_tokens": 32}


def _kat(tmp_path: Path, answer: Callable[[dict[str, Any]], Said | Script], **params: Any) -> Ran:
    with ScriptServer(Answering(answer)) as server:
        return run_benchmark(tmp_path, server, "kat-equality-gate", **{**_KAT, **params})


def test_kat_passes_when_every_order_is_answered_alike(tmp_path: Path) -> None:
    ran = _kat(tmp_path, lambda body: Said(f"about {last_text(body)}"), orders=3)
    assert ran.verdict == ("pass", "6 of 6 answers are the same bytes in 3 orders")
    assert ran.metrics == {
        "orders": 3.0, "samples": 6.0, "identical": 6.0, "diverged": 0.0, "unmeasured": 0.0, "empty_replies": 0.0,
        "guard_liveness_vacuous": 0.0, "guard_liveness_unmeasured": 0.0,
    }  # fmt: skip
    lines = ran.lines("replies.jsonl")
    names = [item.name for item in made_up(6)]
    assert [line["name"] for line in lines if line["leg"] == "order-1"] == names[::-1]
    assert ran.record.benchmark_id == "kat-equality"
    assert (ran.record.frame.dataset_fingerprint or "").startswith("synthetic-20261201;draw-sha256:")


def test_kat_fails_on_one_answer_that_depends_on_what_came_before(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(body: dict[str, Any]) -> Said:
        text = last_text(body)
        seen.append(text)
        stale = seen[-2].split(".")[0] if text.startswith("Task 3.") and len(seen) > 6 else ""
        return Said(f"about {text} {stale}")

    ran = _kat(tmp_path, answer)
    assert ran.verdict == ("fail", "1 of 6 answers depend on the order: made-up-2")
    assert ran.record.exit_code == 2
    table = ran.record.frame.table
    assert table is not None
    same = 1 + len(f"about {made_up(3)[2].messages[0]['content']} ")  # a separator stands before the text
    assert [[cell.text for cell in row] for row in table.rows] == [["made-up-2", "diverged", "1", str(same), "the bytes differ"]]


def test_kat_is_inconclusive_when_an_answer_did_not_come(tmp_path: Path) -> None:
    ran = _kat(tmp_path, lambda body: _cut() if last_text(body).startswith("Task 2.") else Said(f"fine, {last_text(body)}"))
    assert ran.verdict == ("inconclusive", "unproven: 1 of 6 could not be compared: made-up-1")
    assert ran.record.exit_code == 3
    assert (ran.record.status, ran.metrics["unmeasured"]) == (RunStatus.COMPLETED, 1.0)


def test_kat_is_vacuous_when_nothing_is_said_and_asks_no_second_order(tmp_path: Path) -> None:
    ran = _kat(tmp_path, lambda _: Said(""))
    assert ran.verdict == ("inconclusive", "vacuous: 6 of 6 answers are blank or below 1 tokens: equal silence proves nothing")
    assert {line["leg"] for line in ran.lines("replies.jsonl")} == {"order-0"}
    assert ran.record.frame.table is None
    assert (ran.metrics["identical"], ran.metrics["unmeasured"], ran.metrics["empty_replies"]) == (0.0, 6.0, 6.0)


def test_kat_is_vacuous_when_every_question_has_one_answer(tmp_path: Path) -> None:
    ran = _kat(tmp_path, lambda _: Said("I am sorry."))
    assert ran.verdict == (
        "inconclusive",
        "vacuous: 6 different questions have one and the same answer: equality of it proves nothing",
    )
    assert ran.metrics["guard_liveness_vacuous"] == 1.0


def test_nobody_there_ends_the_run_at_once(tmp_path: Path) -> None:
    ran = run_benchmark(tmp_path, "http://127.0.0.1:9", "kat-equality", **_KAT)
    assert (ran.record.status, ran.record.exit_code) == (RunStatus.FAILED, 1)
    assert "http://127.0.0.1:9 cannot be reached" in ran.record.verdict.reason
    assert "start the server, or mend --url" in ran.record.verdict.reason


@pytest.mark.parametrize(
    ("code", "remedy"), [(401, "give a key that it takes (--api-key-env, --api-key-file)"), (404, "see --url, --model")]
)
def test_a_server_that_refuses_ends_the_run_at_once(tmp_path: Path, code: int, remedy: str) -> None:
    class Refusing(Answering):
        def __call__(self, request: Any) -> Script:
            return status(code) if request.method == "POST" else super().__call__(request)

    with ScriptServer(Refusing(lambda _: Said("never"))) as server:
        ran = run_benchmark(tmp_path, server, "kat-equality", **_KAT)
        assert len(server.served) == 2
    assert ran.record.status is RunStatus.FAILED
    assert ran.record.verdict.reason.endswith(remedy)


def test_a_server_that_answers_nothing_ends_the_run_before_the_last_question(tmp_path: Path) -> None:
    ran = _kat(tmp_path, lambda _: status(500), sample_cap=64)
    assert ran.record.status is RunStatus.FAILED
    assert "none of 32 requests was answered (the last: status, " in ran.record.verdict.reason
    assert len(ran.lines("replies.jsonl")) == 31


def test_a_server_that_goes_away_ends_the_run(tmp_path: Path) -> None:
    server = ScriptServer(Answering(lambda body: Said(f"fine, {last_text(body)}")))
    server.start()
    stops = iter([False, True])

    def stopped() -> bool:
        if len(server.served) > 8 and next(stops, False):
            server.stop()
        return False

    try:
        ran = run_benchmark(
            tmp_path, server, "kat-equality", questions="synthetic", sample_cap=64, orders=6, should_cancel=stopped
        )
    finally:
        server.stop()
    assert ran.record.status is RunStatus.FAILED
    assert "is gone: the last 16 requests got no connection" in ran.record.verdict.reason


def test_a_cancel_ends_a_request_under_way(tmp_path: Path) -> None:
    hang = Script(steps=[], end=End.HANG)
    with ScriptServer(Answering(lambda _: hang)) as server:
        ran = run_benchmark(tmp_path, server, "kat-equality", should_cancel=lambda: len(server.served) > 2, **_KAT)
    assert (ran.record.status, ran.record.exit_code) == (RunStatus.CANCELLED, 130)


def test_a_server_that_refuses_stream_options_is_asked_without(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Said | Script:
        return status(400) if "stream_options" in body else Said(f"fine, {last_text(body)}")

    class Strict(Answering):
        def __call__(self, request: Any) -> Script:
            return status(400) if b"stream_options" in request.body else super().__call__(request)

    with ScriptServer(Strict(answer)) as server:
        ran = run_benchmark(tmp_path, server, "kat-equality", **_KAT)
    assert ran.verdict[0] == "pass"
    assert "endpoint: it refuses stream_options; tokens are counted by chunks" in ran.record.warnings


@pytest.mark.timeout(120)
def test_benchmarks_of_answers_keep_the_contract_of_the_executor() -> None:
    quick = {"concurrencies": "2", "probes": "2", "max_tokens": "64", "min_completion_tokens": "4"}
    with ScriptServer(Answering(_echo)) as server:
        target = TargetEndpoint.new(server.url, "m")
        subject = Subject(BY_ID["contamination"], overrides=quick, target=target, within_s=20.0, cancel_grace_s=2.0)
        assert failures(subject) == {}


def test_what_is_called_out_of_order_says_so() -> None:
    benchmark = BY_ID["kat-equality"].build()
    with pytest.raises(RunError, match=r"kat-equality: configure\(\) before load\(\)"):
        benchmark.configure(ParamValues.defaults(benchmark.parameters()))
    with pytest.raises(RunError, match=r"kat-equality: next\(\) before load\(\) and configure\(\)"):
        benchmark.next()
    benchmark.cleanup()


def test_an_endpoint_that_lists_no_models_is_asked_all_the_same(tmp_path: Path) -> None:
    class Bare(Answering):
        def __call__(self, request: Any) -> Script:
            return status(404) if request.method == "GET" else super().__call__(request)

    with ScriptServer(Bare(lambda body: Said(f"fine, {last_text(body)}"))) as server:
        ran = run_benchmark(tmp_path, server, "kat-equality", **_KAT)
    assert ran.verdict[0] == "pass"
    assert "endpoint: its list of models cannot be read: status 404" in ran.record.warnings


# Contamination


def test_code_words_share_no_part_and_come_of_their_seed() -> None:
    several = probes(64, 7)
    parts = [part for probe in several for part in probe.canary.split("-")]
    assert len(set(parts)) == len(parts) == 192
    assert {len(part) for part in parts} == {7}
    assert several[:5] == probes(5, 7)
    assert several[0] != probes(1, 8)[0]


def test_a_part_of_another_code_word_is_foreign_and_the_own_is_not() -> None:
    one, two = probes(2, 1)
    part = two.canary.split("-")[1]
    assert foreign(one, (one, two), f"{one.canary}\nIt says {part.upper()}!") == f"{part} of probe-1"
    assert foreign(one, (one, two), f"{one.canary} x{part}") == ""


def _contamination(tmp_path: Path, answer: Callable[[dict[str, Any]], Said | Script], **params: Any) -> Ran:
    values: dict[str, Any] = {"concurrencies": "2,4", "max_tokens": 64, "min_completion_tokens": 4, "probes": 3, **params}
    with ScriptServer(Answering(answer)) as server:
        return run_benchmark(tmp_path, server, "cross-contamination", **values)


def _canary(body: dict[str, Any]) -> str:
    found = re.search(r"[a-z]{7}-[a-z]{7}-[a-z]{7}$", last_text(body))
    assert found is not None
    return found[0]


def _echo(body: dict[str, Any]) -> Said:
    return Said(f"{_canary(body)}\nTides rise. Bread bakes. Bridges span.\n{_canary(body)}")


def test_contamination_passes_when_everybody_gets_its_own(tmp_path: Path) -> None:
    ran = _contamination(tmp_path, _echo)
    # rung 2: two batches of 2; rung 4: one of 4; afterwards 3
    assert ran.verdict == ("pass", "11 of 11 replies are the same as alone, and none holds another's code word")
    assert ran.metrics["compared"] == ran.metrics["identical"] == 11.0
    assert ran.metrics["echoed"] == 3.0
    legs = [line["leg"] for line in ran.lines("replies.jsonl")]
    assert {leg: legs.count(leg) for leg in legs} == {"prime": 3, "alone": 3, "control": 3, "c2": 4, "c4": 4, "after": 3}


class _Together:
    """Answers as ``leak`` says once four questions came at once, and from then on if ``stays``."""

    def __init__(self, leak: Callable[[dict[str, Any]], Said | Script], *, count: int, stays: bool = False) -> None:
        self._leak, self._count, self._stays, self._asked = leak, count, stays, 0

    def __call__(self, body: dict[str, Any]) -> Said | Script:
        self._asked += 1
        spoilt = self._asked >= self._count if self._stays else self._asked == self._count
        return self._leak(body) if spoilt else _echo(body)


def test_contamination_fails_on_another_s_code_word(tmp_path: Path) -> None:
    other = probes(3, 1)[2].canary

    def leak(body: dict[str, Any]) -> Said:
        foreign_word = other if _canary(body) != other else probes(3, 1)[0].canary
        return Said(f"{_canary(body)}\nTides rise. Bread bakes.\n{foreign_word}")

    ran = _contamination(tmp_path, _Together(leak, count=15))
    assert ran.verdict[0] == "fail"
    assert re.match(r"1 contaminated: probe-\d \(c4\)$", ran.verdict[1])
    assert ran.metrics["contaminated"] == 1.0


def test_contamination_fails_on_what_stays(tmp_path: Path) -> None:
    ran = _contamination(tmp_path, _Together(lambda body: Said(f"{_canary(body)} is all I say now"), count=18, stays=True))
    assert ran.verdict == ("fail", "3 persistent: probe-0 (after), probe-1 (after), probe-2 (after)")


def test_contamination_fails_where_one_alone_is_not_the_same_twice(tmp_path: Path) -> None:
    ran = _contamination(tmp_path, _Together(lambda body: Said(f"{_canary(body)} other words this time"), count=7))
    assert ran.verdict == ("fail", "1 alone unstable: probe-0 (alone)")
    assert ran.metrics["compared"] == 6.0  # its replies under load are left out


def test_contamination_is_inconclusive_when_a_reply_is_missing_or_short(tmp_path: Path) -> None:
    ran = _contamination(tmp_path / "a", _Together(lambda _: _cut(), count=12))
    assert ran.verdict[0] == "inconclusive"
    assert re.match(r"unproven: 1 of 11 replies are unmeasured; probe-\d \(c2\): truncated", ran.verdict[1])
    short = _contamination(tmp_path / "b", lambda body: Said(_canary(body)))
    assert short.verdict == (
        "inconclusive", "unproven: nothing was compared; probe-0 (alone): 1 tokens, fewer than 4",
    )  # fmt: skip


def test_contamination_is_vacuous_when_no_code_word_comes_back(tmp_path: Path) -> None:
    ran = _contamination(tmp_path, lambda body: Said(f"I would rather talk about something else: {_canary(body)[:7]}"))
    assert ran.verdict[0] == "inconclusive"
    assert ran.verdict[1].startswith("vacuous: 11 replies are the same, but none holds its own code word")


def test_a_shortest_answer_that_cannot_be_is_refused() -> None:
    with pytest.raises(ParamError, match="min_completion_tokens: must be below max_tokens"):
        _check("contamination", max_tokens=32, min_completion_tokens=32)


def _check(name: str, **params: Any) -> None:
    benchmark: Any = BY_ID[name].build()
    benchmark.check(ParamValues.from_overrides(benchmark.parameters(), [(key, str(value)) for key, value in params.items()]))


def test_a_leak_in_a_failed_reply_is_still_a_leak() -> None:
    one, two = probes(2, 1)
    alone = [Observed("alone", one, _reply()), Observed("alone", two, _reply())]
    cut = Reply("truncated", ok=False, text=f"x {two.canary}")
    findings = classify((one, two), alone, alone, [Observed("c2", one, cut)], 1)
    assert [finding.kind for finding in findings] == [FindingClass.CONTAMINATED]


# Scheduler


def _scheduler(tmp_path: Path, answer: Callable[[dict[str, Any]], Said | Script], **params: Any) -> Ran:
    values: dict[str, Any] = {"questions": "synthetic", "sample_cap": 4, "concurrencies": "1,4", **params}
    with ScriptServer(Answering(answer)) as server:
        return run_benchmark(tmp_path, server, "scheduler-equivalence", **values)


def _plain(body: dict[str, Any]) -> Said:
    return Said(f"about {last_text(body)}")


def test_scheduler_passes_and_says_when_there_was_no_control(tmp_path: Path) -> None:
    ran = _scheduler(tmp_path / "a", _plain)
    assert ran.verdict == ("pass", "8 of 8 answers in 2 cells are the reference's, byte for byte")
    assert (ran.metrics["cells_pass"], ran.metrics["samples"], ran.metrics["identical"]) == (2.0, 4.0, 8.0)
    bare = _scheduler(tmp_path / "b", _plain, control="no", concurrencies="4")
    assert bare.verdict == ("pass", "4 of 4 answers in 1 cells are the reference's, byte for byte (without a control)")


def test_scheduler_compares_another_server_and_keeps_the_key_from_it(tmp_path: Path) -> None:
    with ScriptServer(Answering(lambda body: Said(f"otherwise {last_text(body)}"))) as other:
        ran = _scheduler(tmp_path, _plain, other_url=other.url, concurrencies="2")
        assert {served.request.headers.get("authorization") for served in other.served} == {None}
    assert ran.verdict == ("fail", "other c2: 4 differ: made-up-0, made-up-1, made-up-2, made-up-3")
    assert (ran.metrics["cells_fail"], ran.metrics["cells_pass"]) == (1.0, 1.0)


def test_scheduler_cannot_tell_where_the_control_differs(tmp_path: Path) -> None:
    count = iter(range(1000))
    ran = _scheduler(tmp_path, lambda body: Said(f"{last_text(body)} {next(count)}"))
    assert ran.verdict[0] == "inconclusive"
    assert ran.verdict[1].startswith("here c1, here c4: unattributable, the control differs from the reference in 4: made-up-0")
    assert ran.metrics["cells_unattributable"] == 2.0


def test_scheduler_is_vacuous_when_nothing_is_said(tmp_path: Path) -> None:
    ran = _scheduler(tmp_path, lambda _: Said(""), concurrencies="4")
    assert ran.verdict == (
        "inconclusive",
        "here c4: vacuous, 4 of 4 answers are blank or below 1 tokens: equal silence proves nothing",
    )


def test_a_cell_names_what_its_unmeasured_answers_died_of() -> None:
    names = ["a", "b", "c"]
    good = [_reply("a b c"), _reply("d e f"), _reply("g h i")]
    cell = judge_cell("x", names, good, good, [good[0], _LOST, Reply("status", ok=False)])
    assert (cell.verdict, cell.why) == (CellVerdict.UNPROVEN, "1 status, 1 truncated")
    assert judge_cell("x", names, [_LOST, *good[1:]], None, good).why == "1 no reference"
    assert judge_cell("x", [], [], None, []).verdict is CellVerdict.UNPROVEN


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ParamError, match="other_url: 'ftp://x': expected an address"):
        _check("scheduler-equivalence", other_url="ftp://x")


# State


@pytest.mark.parametrize(
    ("again", "kind"),
    [
        (_reply("one two three four"), TurnClass.INVARIANT),
        (_reply("one two three five"), TurnClass.JITTERED),
        (_reply("one two"), TurnClass.JITTERED),
        (_reply("one"), TurnClass.COLLAPSED),
        (_reply("a b c d e f g h"), TurnClass.JITTERED),
        (_reply("a b c d e f g h i"), TurnClass.COLLAPSED),
        (Reply("length", ok=True, text="one two three four", tokens=4, finish="length"), TurnClass.COLLAPSED),
        (_LOST, TurnClass.UNMEASURED),
    ],
)
def test_turns_collapse_at_half_and_twice_the_tokens(again: Reply, kind: TurnClass) -> None:
    assert turn_class(_reply("one two three four"), again)[0] is kind


def test_nothing_said_on_either_side_is_unmeasured() -> None:
    silent = Reply("stop", ok=True, finish="stop")
    assert turn_class(silent, silent) == (TurnClass.UNMEASURED, "no tokens on either side")
    assert turn_class(silent, _reply())[0] is TurnClass.COLLAPSED


_TURNS = {
    "Three facts": "Noted.",
    "Which colour": "The lighthouse is green.",
    "How long": "The bridge is 40 metres long.",
    "What is the ferry": "It is called Miranda; the lighthouse and the bridge remain.",
}


class _Town:
    """Answers the conversation; ``spoil`` may answer instead, told the number of the question."""

    def __init__(
        self, spoil: Callable[[int, dict[str, Any]], Said | Script | None] | None = None, cached: int | None = 300
    ) -> None:
        self._spoil, self._cached, self._asked = spoil, cached, 0

    def __call__(self, body: dict[str, Any]) -> Said | Script:
        self._asked += 1
        spoilt = self._spoil(self._asked, body) if self._spoil is not None else None
        if spoilt is not None:
            return spoilt
        if "tools" in body:
            return Said(calls=(("book_ferry", '{"ferry": "Miranda", "seats": 3}'),), cached=self._cached)
        text = next((answer for begin, answer in _TURNS.items() if last_text(body).startswith(begin)), "Hm.")
        return Said(text, cached=None if self._cached is None else 0 if self._asked == 1 else self._cached)


def _town(tmp_path: Path, town: _Town, **params: Any) -> Ran:
    with ScriptServer(Answering(town)) as server:
        return run_benchmark(tmp_path, server, "ssm-state-poisoning-gate", **{"rounds": 3, "max_tokens": 64, **params})


def test_state_passes_when_replays_come_from_the_cache_and_agree(tmp_path: Path) -> None:
    ran = _town(tmp_path, _Town())
    assert ran.verdict == ("pass", "none of 2 replays collapsed, 0 jittered; 5 ways to a tool call agree")
    assert (ran.metrics["rounds"], ran.metrics["invariant"], ran.metrics["tool_paths"]) == (3.0, 2.0, 5.0)
    assert ran.metrics["min_cached_prompt_tokens"] == 300.0
    assert ran.metrics["sum_wall_s"] > 0


def test_replays_send_the_first_round_s_answers(tmp_path: Path) -> None:
    behaviour = Answering(_Town(lambda asked, _: Said("The lighthouse is a green one.", cached=300) if asked == 6 else None))
    with ScriptServer(behaviour) as server:
        ran = run_benchmark(tmp_path, server, "state-poisoning", rounds=3, tool_leg="no")
    assert ran.metrics["jittered"] == 1.0
    first, second, third = (behaviour.bodies[n : n + 4] for n in (0, 4, 8))
    assert first == second == third
    assert ran.verdict == ("pass", "none of 2 replays collapsed, 1 jittered; tool calls were not tried: they were left out")


def test_state_fails_on_a_collapse(tmp_path: Path) -> None:
    ran = _town(tmp_path, _Town(lambda asked, _: Said("The", finish="length", cached=300) if asked == 11 else None))
    assert ran.verdict == (
        "fail", "1 of 2 replays collapsed; the first is round 2: length: it ends with length, not with stop",
    )  # fmt: skip
    assert ran.metrics["collapsed"] == 1.0


def test_state_fails_on_a_tool_call_that_changes(tmp_path: Path) -> None:
    def spoil(_: int, body: dict[str, Any]) -> Said | None:
        return Said(calls=(("book_ferry", '{"seats":4,"ferry":"Miranda"}'),)) if spoilt(body) else None

    targets: list[int] = []

    def spoilt(body: dict[str, Any]) -> bool:
        if "tools" in body and len(body["messages"]) == 2:
            targets.append(1)
        return len(targets) == 6  # alone, again twice, after another, after a longer, after two: the last

    ran = _town(tmp_path, _Town(spoil))
    assert ran.verdict[0] == "fail"
    assert ran.verdict[1].startswith("the same tool call differs by what was asked before it: after")
    assert '(book_ferry({"seats":4,"ferry":"Miranda"}), not book_ferry(' in ran.verdict[1]


def test_blanks_and_order_of_arguments_are_no_difference() -> None:
    calls = [Reply("tool_calls", ok=True, calls=(("f", text),)) for text in ('{"a":1,"b":2}', '{ "b": 2, "a": 1 }')]
    assert same_calls([("x", calls[0]), ("y", calls[1])]).diverged == ()
    assert same_calls([("x", calls[0]), ("y", _LOST)]).unmeasured == ("y",)


@pytest.mark.parametrize(
    ("town", "params", "reason"),
    [
        (_Town(cached=0), {}, "vacuous: 2 of 2 replays took nothing from the cache: rounds [1, 2]"),
        (_Town(cached=None), {}, "unproven: the server does not tell of cached tokens"),
        (_Town(lambda asked, _: Said("Hm.") if asked == 3 else None), {}, "unproven: the first round makes no sense (length)"),
        (
            _Town(lambda asked, _: _cut() if asked == 7 else None),
            {},
            "unproven: 1 of 2 replays are unmeasured, the first is round 1",
        ),
        (
            _Town(lambda asked, _: _cut() if asked == 2 else None),
            {},
            "unproven: the first round makes no sense (colour, length, name)",
        ),
    ],
)
def test_state_is_inconclusive(tmp_path: Path, town: _Town, params: dict[str, Any], reason: str) -> None:
    ran = _town(tmp_path, town, **params)
    assert ran.verdict[0] == "inconclusive"
    assert ran.verdict[1].startswith(reason)


def test_a_server_that_does_not_tell_of_its_cache_will_do_when_asked_for(tmp_path: Path) -> None:
    ran = _town(tmp_path, _Town(cached=None), cache="any")
    assert ran.verdict[0] == "pass"
    assert "whether its cache was used the server does not tell" in ran.verdict[1]


def test_a_model_without_tool_calls_is_said_to_be_one(tmp_path: Path) -> None:
    refusing = _Town(lambda _, body: status(400) if "tools" in body else None)
    ran = _town(tmp_path, refusing)
    assert ran.verdict[0] == "pass"
    assert "tool calls were not tried: the server answers status" in ran.verdict[1]
    assert ran.metrics["tool_paths"] == 0.0
