"""``bfcl-subset``, ``bfcl-subset-echolp`` and ``bfcl-full``: draw, ask, check, count."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from nodeproof.bench.ask import Ask
from nodeproof.bench.bfcl.answers import AnswerBook, answer_of, journal_key
from nodeproof.bench.bfcl.children import last_line, last_words, run_child
from nodeproof.bench.bfcl.dataset import Drawn, Row, read_draw
from nodeproof.bench.bfcl.descriptors import BFCL_FULL, BFCL_SUBSET, BFCL_SUBSET_ECHOLP
from nodeproof.bench.bfcl.environment import GOLDEN_ENVIRONMENT, INSIDE, Ready, provide
from nodeproof.bench.bfcl.frames import Outcomes, last_frame
from nodeproof.bench.bfcl.subsets import ECHOLP, FULL, GOLDEN, SUBSETS, WHOLE, Draw, Shard, drawn_counts
from nodeproof.bench.exchange import Exchange
from nodeproof.bench.stepwise import Desk, Stepwise
from nodeproof.errors import ParamError, RunError
from nodeproof.model.run import Frame
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.params import Choice, Float, Int, ParamSpec, ParamValues, Text

__all__ = ["BfclBenchmark", "BfclFull", "BfclSubset", "BfclSubsetEcholp"]

_INHERIT = "inherit"
_SCORE_S = 3600.0
_BATCH = 32
_LONGEST_PAUSE_S = 60.0


def _specs(draw: Draw) -> tuple[ParamSpec, ...]:
    return (
        ParamSpec("non_live_pct", "Non-live", "Percent of each subset that is drawn", Float(0.01, 100.0), draw.non_live_pct),
        ParamSpec("live_pct", "Live", "The same of the live ones", Float(0.01, 100.0), draw.live_pct),
        ParamSpec("hallucination_pct", "Hallucination", "The same of irrelevance", Float(0.01, 100.0), draw.hallucination_pct),
        ParamSpec("subset_floor", "Floor", "A subset of no more rows is drawn whole; 0 = none is", Int(0, 10000), draw.floor),
        ParamSpec("max_new_tokens", "Answer", "Tokens of an answer at most", Int(16, 32768), 1024),
        ParamSpec("temperature", "Temperature", "Of the sampling", Float(0.0, 2.0), 0.0),
        ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 600),
        ParamSpec("concurrency", "Concurrency", "Requests at once", Int(1, 256), 8),
        ParamSpec("retries", "Retries", "How often what brought no answer is asked again", Int(0, 10), 1),
        ParamSpec(
            "shard", "Shard", f"i/n: the i-th of n parts, from 0; parts are added on counts; {_INHERIT} = the whole",
            Text(), _INHERIT,
        ),
        ParamSpec(
            "resume", "Resume", "auto: take over the answers of a run of the same questions that was stopped within a day",
            Choice(("auto", "no")), "auto",
        ),
        ParamSpec(
            "max_unmeasured_pct", "Unmeasured", "Inconclusive when more of the draw brought no answer", Float(0.0, 100.0), 0.5
        ),
        ParamSpec("min_overall", "Least overall", "Fails below this accuracy in percent; 0 = not judged", Float(0.0, 100.0), 0.0),
        ParamSpec("min_normalized", "Least normalized", "The same of the normalized score", Float(0.0, 100.0), 0.0),
    )  # fmt: skip


class BfclBenchmark(Stepwise):
    """One run of one variant."""

    def __init__(self, descriptor: Descriptor, draw: Draw) -> None:
        super().__init__(descriptor, _specs(draw))

    def check(self, values: ParamValues) -> None:
        """The shard must be one."""
        _shard(values)

    def steps(self, desk: Desk) -> Iterator[Frame]:
        """Probe, environment, draw, questions, check, judgement."""
        desk.probe()
        yield desk.running("probe")
        ready = provide(desk.handle, GOLDEN_ENVIRONMENT)
        yield desk.running("environment")
        drawn = _drawn(desk, ready)
        with closing(AnswerBook.of(desk.handle, _key(desk, ready, drawn))) as book:
            names = [row.sample_id for row in drawn.rows]
            book.resume(desk.handle, names, take_over=desk.values.text("resume") == "auto")
            for number in range(1 + desk.values.usize("retries")):
                left = [row for row in drawn.rows if row.sample_id not in book.answers]
                if number and left:
                    _pause(desk, book)
                yield from _ask_all(desk, book, left, len(drawn.rows))
            book.check()
            yield desk.running("check", (len(book.answers), len(drawn.rows)))
            hits, unmatched = _hits(desk, ready, book)
            outcomes = Outcomes(drawn, _shard(desk.values), book.answers, book.failures, hits, unmatched, book.resumed)
            frame = last_frame(desk, outcomes, f"file-sha256:{ready.dataset_sha256};draw-sha256:{drawn.sha256}")
            if outcomes.settled(frame):
                book.forget()
        yield frame


def _shard(values: ParamValues) -> Shard:
    """The part that is asked. Raises ParamError."""
    text = values.text("shard")
    if text.lower() == _INHERIT:
        return WHOLE
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise ParamError("shard", f"shard: {error}") from None


def _drawn(desk: Desk, ready: Ready) -> Drawn:
    values = desk.values
    draw = Draw(
        values.float("non_live_pct"), values.float("live_pct"), values.float("hallucination_pct"), values.usize("subset_floor")
    )
    drawn = read_draw(ready.dataset_path, draw, _shard(values))
    published = sum(drawn_counts({name: rows for name, (rows, _) in SUBSETS.items()}, draw).values())
    if drawn.whole != published:
        desk.handle.warn(f"bfcl: the draw has {drawn.whole} samples, of the published data {published}: scores do not compare")
    return drawn


def _key(desk: Desk, ready: Ready, drawn: Drawn) -> str:
    values = desk.values
    return journal_key(
        desk.target.base_url,
        desk.target.model,
        ready.dataset_sha256,
        drawn.sha256,
        values.float("temperature"),
        values.usize("max_new_tokens"),
    )


def _ask_all(desk: Desk, book: AnswerBook, rows: Sequence[Row], total: int) -> Iterator[Frame]:
    """Ask for ``rows``; every answer is kept as it comes."""
    concurrency = desk.values.usize("concurrency")
    step = _BATCH * concurrency
    for begin in range(0, len(rows), step):
        batch = rows[begin : begin + step]

        def kept(place: int, exchange: Exchange, batch: Sequence[Row] = batch) -> None:
            row = batch[place]
            book.add(answer_of(row.sample_id, row.subset, exchange))
            desk.handle.progress(len(book.answers), total)

        desk.ask_all([_ask(desk, row) for row in batch], concurrency, kept)
        book.check()
        yield desk.running("ask", (len(book.answers), total))


def _ask(desk: Desk, row: Row) -> Ask:
    extra: dict[str, object] = {"temperature": desk.values.float("temperature")}
    if row.tools:
        extra |= {"tools": row.tools, "tool_choice": row.tool_choice}
    return Ask(messages=row.messages, max_tokens=desk.values.usize("max_new_tokens"), extra=extra)


def _pause(desk: Desk, book: AnswerBook) -> None:
    """Wait as long as the server asked for. Raises RunCancelled."""
    asked = [answer.retry_after_s for answer in book.failures.values() if answer.retry_after_s is not None]
    wait_s = min(_LONGEST_PAUSE_S, max(asked, default=0.0))
    if wait_s > 0:
        desk.handle.status(f"the server asks to wait {wait_s:g} s before what it refused is asked again")
        desk.handle.wait(wait_s)
        desk.handle.check_cancelled()


class _Score(msgspec.Struct):
    """A line of the checker."""

    sample_id: str
    subset: str
    hit: bool
    why: str = ""


class _Told(msgspec.Struct):
    """What it says at its end."""

    unmatched_responses: int


def _hits(desk: Desk, ready: Ready, book: AnswerBook) -> tuple[dict[str, bool], int]:
    """Whether each answer is right, and how many answers have no question. Raises RunError; the answers are kept."""
    if not book.answers:
        return {}, 0
    out = desk.handle.file_path("scores.jsonl")
    argv = [ready.python, "-I", INSIDE, "score", ready.dataset_path, book.answers_path, out]
    desk.handle.status(f"checking {len(book.answers)} answers")
    done = run_child(desk.handle, argv, "check", limit_s=_SCORE_S, more={"BFCL_PROJECT_ROOT": ready.path})
    try:
        told = msgspec.json.decode(last_line(desk.handle, "check"), type=_Told)
        with open(out, "rb") as file:
            scores = [msgspec.json.decode(line, type=_Score) for line in file.read().splitlines()]
    except (OSError, msgspec.MsgspecError):
        scores, told = [], _Told(0)
    found = {score.sample_id: score.hit for score in scores}
    if not done.succeeded or set(found) != set(book.answers) or len(scores) != len(found):
        text = (
            f"the checker judged {len(found)} of {len(book.answers)} answers ({done.reason}: {last_words(desk.handle, 'check')})"
        )
        raise RunError(f"{text}; the answers are kept, the next run of the same takes them over and checks them again")
    return found, told.unmatched_responses


class BfclSubset(BfclBenchmark):
    """The golden draw."""

    def __init__(self) -> None:
        super().__init__(BFCL_SUBSET, GOLDEN)


class BfclSubsetEcholp(BfclBenchmark):
    """The draw with more of the live subsets."""

    def __init__(self) -> None:
        super().__init__(BFCL_SUBSET_ECHOLP, ECHOLP)


class BfclFull(BfclBenchmark):
    """All of it."""

    def __init__(self) -> None:
        super().__init__(BFCL_FULL, FULL)
