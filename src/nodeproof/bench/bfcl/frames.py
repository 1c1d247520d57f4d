"""The last frame of a run of BFCL: counts, scores out of counts, and what they prove."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodeproof.bench.bfcl.answers import Answer
from nodeproof.bench.bfcl.dataset import Drawn
from nodeproof.bench.bfcl.scores import Scores, Tally, bounds, scores_of, tally_metrics
from nodeproof.bench.bfcl.subsets import HALLUCINATION, SUBSETS, Shard
from nodeproof.bench.stepwise import Desk
from nodeproof.model.run import Align, Cell, CellStyle, Column, Frame, ResultTable, Stat, Verdict, VerdictKind

__all__ = ["Floors", "Outcomes", "judge", "last_frame"]


class Floors(NamedTuple):
    """What a run is held against, in percent; 0 = not judged."""

    overall: float = 0.0
    normalized: float = 0.0
    max_unmeasured: float = 0.5
    """More of the draw without an answer prove nothing."""


class Outcomes(NamedTuple):
    """What came of a run."""

    drawn: Drawn
    shard: Shard
    answers: Mapping[str, Answer]
    failures: Mapping[str, Answer]
    hits: Mapping[str, bool]
    """Whether each answer is right."""
    unmatched: int
    resumed: int

    @property
    def tallies(self) -> dict[str, Tally]:
        """Hits and answers by subset; a subset of which no answer came stands there with none."""
        totals = Counter(row.subset for row in self.drawn.rows if row.sample_id in self.hits)
        hits = Counter(row.subset for row in self.drawn.rows if self.hits.get(row.sample_id))
        return {subset: Tally(hits[subset], totals[subset]) for subset in sorted({row.subset for row in self.drawn.rows})}

    @property
    def missing(self) -> dict[str, int]:
        """Samples without an answer by subset."""
        return dict(Counter(row.subset for row in self.drawn.rows if row.sample_id not in self.hits))

    @property
    def empty(self) -> int:
        """Answers that say nothing."""
        return sum(1 for answer in self.answers.values() if answer.empty)

    @property
    def called(self) -> int:
        """Answers with a tool call."""
        return sum(1 for answer in self.answers.values() if answer.calls)

    @property
    def vacuous(self) -> str:
        """Why the answers could not have told anything; empty when they could."""
        wanted = [answer for answer in self.answers.values() if SUBSETS.get(answer.subset, (0, ""))[1] != HALLUCINATION]
        if wanted and not self.called:
            return (
                f"vacuous: none of {len(wanted)} questions that need a tool call was answered with one; see that the server is "
                "started with tool calls switched on for this model"
            )
        if self.answers and self.empty == len(self.answers):
            return f"vacuous: all {self.empty} answers are empty"
        return ""

    def settled(self, frame: Frame) -> bool:
        """Whether nothing of the run is worth resuming: it came to a verdict, or its answers tell nothing."""
        inconclusive = frame.verdict is None or frame.verdict.kind is VerdictKind.INCONCLUSIVE
        return not inconclusive or bool(self.vacuous) or not self.missing


def judge(outcomes: Outcomes, floors: Floors) -> Verdict:
    """First what makes the scores worthless, then what was asked for.

    Answers that are missing count as wrong for a pass, and as right for a fail.
    """
    drawn, missing = len(outcomes.drawn.rows), sum(outcomes.missing.values())
    causes = ", ".join(f"{count} {name}" for name, count in _causes(outcomes.failures.values()).most_common())
    if missing == drawn:
        return Verdict(VerdictKind.INCONCLUSIVE, f"unproven: none of {drawn} questions was answered: {causes}")
    if outcomes.vacuous:
        return Verdict(VerdictKind.INCONCLUSIVE, outcomes.vacuous)
    if missing / drawn * 100 > floors.max_unmeasured:
        share = f"{missing / drawn * 100:.2f} %, limit {floors.max_unmeasured:g} %"
        text = f"unproven: {missing} of {drawn} questions were not answered ({share})"
        return Verdict(VerdictKind.INCONCLUSIVE, f"{text}: {causes}; run it again, and only these are asked")
    scores = scores_of(outcomes.tallies)
    said = f"overall {_text(scores.overall)} %, normalized {_text(scores.normalized)} %"
    if not outcomes.shard.whole:
        index, count = outcomes.shard
        return Verdict(VerdictKind.INFO, f"shard {index} of {count}: {said} of {drawn - missing}; judged when all are added")
    if not (floors.overall or floors.normalized):
        return Verdict(VerdictKind.INFO, f"{said} of {drawn - missing} answers; no limit was stated")
    return _against(bounds(outcomes.tallies, outcomes.missing), floors, said, missing)


def _against(pair: tuple[Scores, Scores], floors: Floors, said: str, missing: int) -> Verdict:
    worst, best = pair
    wanted = [
        (name, floor, low or 0.0, high or 0.0)
        for name, floor, low, high in (
            ("overall", floors.overall, worst.overall, best.overall),
            ("normalized", floors.normalized, worst.normalized, best.normalized),
        )
        if floor
    ]
    limits = ", ".join(f"{name} at least {floor:g} %" for name, floor, _, _ in wanted)
    if any(high < floor for _, floor, _, high in wanted):
        return Verdict(VerdictKind.FAIL, f"{said}; limits: {limits}")
    if any(low < floor for _, floor, low, _ in wanted):
        between = ", ".join(f"{name} {low:.2f} to {high:.2f} %" for name, _, low, high in wanted)
        text = f"unproven: {missing} missing answers decide ({between}; limits: {limits}); run it again, and only these are asked"
        return Verdict(VerdictKind.INCONCLUSIVE, text)
    return Verdict(VerdictKind.PASS, f"{said}; limits: {limits}")


def last_frame(desk: Desk, outcomes: Outcomes, fingerprint: str) -> Frame:
    """The terminal frame."""
    values = desk.values
    floors = Floors(values.float("min_overall"), values.float("min_normalized"), values.float("max_unmeasured_pct"))
    scores = scores_of(outcomes.tallies)
    missing = sum(outcomes.missing.values())
    metrics = {
        **({} if outcomes.vacuous else scores.metrics()),
        **tally_metrics(outcomes.tallies),
        "samples": float(len(outcomes.hits)),
        "drawn": float(len(outcomes.drawn.rows)),
        "transport_errors": float(missing),
        "empty_replies": float(outcomes.empty),
        "tool_call_replies": float(outcomes.called),
        "unmatched_responses": float(outcomes.unmatched),
        "resumed_answers": float(outcomes.resumed),
        "shard.index": float(outcomes.shard.part),
        "shard.count": float(outcomes.shard.parts),
    }
    tiles = (
        Stat("Overall", "-" if outcomes.vacuous else _text(scores.overall), "%"),
        Stat("Normalized", "-" if outcomes.vacuous else _text(scores.normalized), "%"),
        Stat("Answers", str(len(outcomes.hits)), f"of {len(outcomes.drawn.rows)}"),
        Stat("Unmeasured", str(missing), "", CellStyle.BAD if missing else CellStyle.GOOD),
    )
    return desk.completed(judge(outcomes, floors), metrics, summary=tiles, table=_table(outcomes), fingerprint=fingerprint)


def _causes(failures: Iterable[Answer]) -> "Counter[str]":
    return Counter(failure.outcome for failure in failures)


def _table(outcomes: Outcomes) -> ResultTable:
    right = Align.RIGHT
    columns = (Column("Subset"), Column("Category"), Column("Right", right), Column("Answers", right), Column("Percent", right))
    missing = outcomes.missing
    rows = []
    for subset, tally in outcomes.tallies.items():
        lacking = f" (+{missing[subset]} unmeasured)" if missing.get(subset) else ""
        percent = f"{tally.hits / tally.n * 100:.2f}" if tally.n else "-"
        count = Cell(f"{tally.n}{lacking}", CellStyle.WARN if lacking else CellStyle.NEUTRAL)
        rows.append((Cell(subset), Cell(SUBSETS.get(subset, (0, "-"))[1]), Cell(str(tally.hits)), count, Cell(percent)))
    return ResultTable("Subsets", columns, tuple(rows))


def _text(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"
