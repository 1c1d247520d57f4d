"""``kat-equality``: the same questions to one server in several orders.

What a question is answered must not depend on what was asked before it; with greedy sampling every answer must be the same bytes.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from nodeproof.bench.equality.alive import alive
from nodeproof.bench.equality.descriptors import KAT_EQUALITY
from nodeproof.bench.equality.evidence import Evidence
from nodeproof.bench.equality.questions import QUESTION_SPEC, Question, Questions, questions_for
from nodeproof.bench.equality.replies import Comparison, Kind, Reply, compare, reply_of
from nodeproof.bench.equality.tables import named, table_of
from nodeproof.bench.guards import GuardResult, GuardState, guard_metrics
from nodeproof.bench.stepwise import Desk, Stepwise
from nodeproof.model.run import Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Int, ParamSpec

__all__ = ["Equality", "KatEquality", "judge", "orders_of", "outcome_of"]

_SPECS = (
    ParamSpec("orders", "Orders", "How many orders: as drawn, reversed, then rotations", Int(2, 6), 2),
    ParamSpec("sample_cap", "Samples", "So many questions from the beginning of the draw; 0 = all", Int(0, 5000), 0),
    ParamSpec("max_new_tokens", "Answer", "Tokens of an answer at most", Int(32, 4096), 1024),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 300),
    QUESTION_SPEC,
)
_BATCH = 16


class Equality(NamedTuple):
    """What the orders found."""

    results: dict[str, tuple[int, Comparison]]
    """By question: the order in which it first differed (0 = none did), and how."""
    empty: int
    """Replies of the first order that say nothing."""
    orders: int
    live: GuardResult
    """Whether the first order's replies are answers at all."""

    def named(self, kind: Kind) -> list[str]:
        """Questions with this result."""
        return [name for name, (_, found) in self.results.items() if found.kind is kind]


class KatEquality(Stepwise):
    """One run of it."""

    def __init__(self) -> None:
        super().__init__(KAT_EQUALITY, _SPECS)

    def steps(self, desk: Desk) -> Iterator[Frame]:
        """Probe, questions, every order, judgement."""
        desk.probe()
        yield desk.running("probe")
        questions = questions_for(desk)
        yield desk.running("questions")
        count = desk.values.usize("orders")
        answers: list[dict[str, Reply]] = []
        with closing(Evidence.of(desk.handle)) as evidence:
            for number, order in enumerate(orders_of(len(questions.items), count)):
                asked = [questions.items[place] for place in order]
                yield from _in_order(desk, evidence, asked, number, count, answers)
                if number == 0 and alive(answers[0]).state is GuardState.VACUOUS:
                    break  # nothing that comes after could tell the orders apart
        yield _last_frame(desk, questions, answers)


def _in_order(
    desk: Desk, evidence: Evidence, asked: Sequence[Question], number: int, orders: int, answers: list[dict[str, Reply]]
) -> Iterator[Frame]:
    """Ask one after the other; the replies are added to ``answers``."""
    replies: dict[str, Reply] = {}
    answers.append(replies)
    limit = desk.values.usize("max_new_tokens")
    for place, question in enumerate(asked):
        reply = replies[question.name] = reply_of(desk.ask(question.ask(limit)))
        evidence.add(f"order-{number}", question.name, reply)
        done = number * len(asked) + place + 1
        desk.handle.progress(done, orders * len(asked))
        if done % _BATCH == 0:
            yield desk.running("ask", (done, orders * len(asked)))


def orders_of(count: int, orders: int) -> list[list[int]]:
    """So many orders of so many questions: as they are, reversed, then rotations that lie apart."""
    places = list(range(count))
    found = [places, places[::-1]]
    for number in range(2, orders):
        by = max(1, number * count // (number + 1)) % count if count > 1 else 0
        found.append(places[by:] + places[:by])
    return found[:orders]


def outcome_of(answers: Sequence[dict[str, Reply]]) -> Equality:
    """What the replies of all orders mean, set against those of the first."""
    first = answers[0] if answers else {}
    results: dict[str, tuple[int, Comparison]] = {}
    for name, reference in first.items():
        found = [(number, compare(reference, other.get(name, _MISSING))) for number, other in enumerate(answers[1:], 1)]
        diverged = [entry for entry in found if entry[1].kind is Kind.DIVERGED]
        unmeasured = [entry for entry in found if entry[1].kind is Kind.UNMEASURED]
        equal = Comparison(Kind.EQUAL) if found else Comparison(Kind.UNMEASURED, why="asked once")
        results[name] = (diverged or unmeasured or [(0, equal)])[0]
    empty = sum(1 for reply in first.values() if reply.ok and reply.empty)
    return Equality(results, empty, len(answers), alive(first))


_MISSING = Reply("missing", ok=False)


def judge(found: Equality) -> Verdict:
    """One answer that differs is proof; its absence is proof only when every answer came and said something."""
    total = len(found.results)
    diverged, unmeasured = found.named(Kind.DIVERGED), found.named(Kind.UNMEASURED)
    if not total:
        return Verdict(VerdictKind.INCONCLUSIVE, "unproven: there was no question")
    if found.live.state is GuardState.VACUOUS:
        return Verdict(VerdictKind.INCONCLUSIVE, f"vacuous: {found.live.reason}")
    if diverged:
        also = f"; {len(unmeasured)} could not be compared" if unmeasured else ""
        return Verdict(VerdictKind.FAIL, f"{len(diverged)} of {total} answers depend on the order: {named(diverged)}{also}")
    if unmeasured or found.orders < 2:
        return Verdict(
            VerdictKind.INCONCLUSIVE, f"unproven: {len(unmeasured)} of {total} could not be compared: {named(unmeasured)}"
        )
    return Verdict(VerdictKind.PASS, f"{total} of {total} answers are the same bytes in {found.orders} orders")


def _last_frame(desk: Desk, questions: Questions, answers: Sequence[dict[str, Reply]]) -> Frame:
    found = outcome_of(answers)
    diverged, unmeasured = found.named(Kind.DIVERGED), found.named(Kind.UNMEASURED)
    metrics = {
        "orders": float(found.orders),
        "samples": float(len(found.results)),
        "identical": float(len(found.named(Kind.EQUAL))),
        "diverged": float(len(diverged)),
        "unmeasured": float(len(unmeasured)),
        "empty_replies": float(found.empty),
        **guard_metrics([found.live]),
    }
    tiles = (Stat("Identical", f"{metrics['identical']:.0f}", f"of {len(found.results)}"), Stat("Orders", str(found.orders)))
    return desk.completed(judge(found), metrics, summary=tiles, table=_table(found), fingerprint=questions.fingerprint)


def _table(found: Equality) -> ResultTable | None:
    if found.orders < 2:
        return None  # nothing was set against anything
    rows = [
        (name, str(result.kind), str(order), str(result.common_bytes), result.why)
        for name, (order, result) in found.results.items()
        if result.kind is not Kind.EQUAL
    ]
    return table_of("Answers that differ", ("Question", "Result", "Order", "Same bytes", "Why"), rows)
