"""The benchmark ``mlperf-agentic``: recorded sessions, each turn predicted from what was recorded before it."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from nodeproof.bench.agentic.trajectories import KINDS, Trajectories, Turn, commands_of, intents_of, iou, read_trajectories
from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.course import Course
from nodeproof.bench.exchange import Exchange
from nodeproof.bench.guards import any_content
from nodeproof.bench.reach import require_reached
from nodeproof.bench.trials import MLPERF_AGENTIC
from nodeproof.errors import ParamError, RunError
from nodeproof.model.run import Align, Cell, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import Float, Int, ParamSpec, ParamValues, Text

__all__ = ["REPLAY_PARAMETERS", "Replay"]

_NONE = "none"
_SAMPLING: dict[str, object] = {
    "temperature": 1.0,
    "top_k": 20,
    "top_p": 0.95,
    "repetition_penalty": 1.0,
    "presence_penalty": 1.5,
    "seed": 42,
}
"""Of the instrument: fixed, and never a parameter."""
_MAX_TOKENS = 8192
_BATCHES = 8
REPLAY_PARAMETERS = (
    ParamSpec("dataset", "Data", "File of recorded sessions, JSON lines; none comes with this program", Text(), _NONE),
    ParamSpec("turns", "Turns", "So many turns of the file, both kinds in turn; 0 = all", Int(0, 1_000_000), 0),
    ParamSpec("concurrency", "At once", "Requests at once", Int(1, 256), 4),
    ParamSpec("min_score_pct", "Score", "Fails below so many percent; 0 = not judged", Float(0.0, 100.0), 0.0),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of an answer", Float(10.0, 3600.0), 900.0),
)  # fmt: skip


class _Scored(NamedTuple):
    """One turn."""

    turn: Turn
    exchange: Exchange
    score: float
    """0 for a request that failed: it stays in the denominator."""


class Replay(Course):
    """One run of it."""

    IDENTITY = MLPERF_AGENTIC
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = REPLAY_PARAMETERS
    ABOUT = "How far a model acts as recorded agents did"

    def load(self, handle: PluginHandle) -> None:
        """Take the endpoint over."""
        super().load(handle)
        self._data: Trajectories | None = None

    def check(self, values: ParamValues) -> None:
        """There is nothing to do without data. Raises ParamError, RunError."""
        path = values.text("dataset")
        if path == _NONE:
            raise ParamError(
                "dataset", "dataset: no recorded sessions come with this program; give a file of yours, dataset=FILE"
            )
        self._data = read_trajectories(path).draw(values.int("turns"))

    def course(self) -> Iterator[Frame]:
        """Batches of turns, then the scores."""
        values = self.values
        if self._data is None:
            raise RunError("mlperf-agentic: next() before configure()")
        data, limit_s = self._data, values.float("request_timeout_s")
        self.handle.ran("dataset", sha256=data.file_sha256, path=values.text("dataset"))
        session = self.session(Timeouts(10.0, limit_s, limit_s, limit_s))
        scored: list[_Scored] = []
        size = max(1, -(-len(data.turns) // _BATCHES), values.int("concurrency"))
        for start in range(0, len(data.turns), size):
            yield self.running("replay", start, len(data.turns))
            turns = data.turns[start : start + size]
            exchanges = session.send_all([_ask(turn) for turn in turns], concurrency=values.int("concurrency"))
            for turn, exchange in zip(turns, exchanges, strict=True):
                require_reached(exchange, self.target.base_url)
                scored.append(_Scored(turn, exchange, _score(turn, exchange)))
        yield self._end(scored, data)

    def _end(self, scored: list[_Scored], data: Trajectories) -> Frame:
        self.keep("turns.json", [_row(one) for one in scored])
        metrics = {
            "turns": float(len(scored)),
            "sessions": float(data.sessions),
            "failed": float(sum(not one.exchange.ok for one in scored)),
            "empty_replies": float(sum(one.exchange.ok and not _says(one.exchange) for one in scored)),
            "completion_tokens": float(sum(one.exchange.tokens for one in scored)),
        }
        for kind, key in zip(KINDS, ("workflow_intent_match_pct", "coding_command_iou_pct"), strict=True):
            scores = [one.score for one in scored if one.turn.kind == kind]
            if scores:
                metrics[key] = sum(scores) / len(scores) * 100
        metrics["score_pct"] = sum(one.score for one in scored) / len(scored) * 100
        return self.done(
            self._verdict(scored, metrics),
            metrics=metrics,
            summary=[Stat("Score", f"{metrics['score_pct']:.2f}", "%"), Stat("Turns", str(len(scored)))],
            table=_table(metrics, scored),
            dataset=data.fingerprint,
        )

    def _verdict(self, scored: list[_Scored], metrics: dict[str, float]) -> Verdict:
        failed = int(metrics["failed"])
        if failed == len(scored):
            first = scored[0].exchange
            return Verdict(VerdictKind.INCONCLUSIVE, f"no turn of {failed} was answered: {first.outcome}: {first.detail}")
        said = any_content([int(_says(one.exchange)) for one in scored if one.exchange.ok])
        if not said.ok:
            return Verdict(VerdictKind.INCONCLUSIVE, f"vacuous: {said.reason}")
        shares = f"{len(scored)} turns, {failed} of them unanswered (counted as 0)"
        text = f"{metrics['score_pct']:.2f} % of what was recorded, over {shares}"
        floor = self.values.float("min_score_pct")
        if not floor:
            return Verdict(VerdictKind.INFO, text)
        if failed and metrics["score_pct"] < floor <= metrics["score_pct"] + failed / len(scored) * 100:
            return Verdict(
                VerdictKind.INCONCLUSIVE, f"{text}: whether at least {floor:g} % are reached depends on the unanswered ones"
            )
        kind = VerdictKind.PASS if metrics["score_pct"] >= floor else VerdictKind.FAIL
        return Verdict(kind, f"{text}; at least {floor:g} % must be")


def _ask(turn: Turn) -> Ask:
    extra = {**_SAMPLING, **({"tools": list(turn.tools), "tool_choice": "auto"} if turn.tools else {})}
    return Ask(messages=turn.before, max_tokens=_MAX_TOKENS, extra=extra)


def _score(turn: Turn, exchange: Exchange) -> float:
    if not exchange.ok:
        return 0.0
    if turn.kind == "coding":
        return iou(commands_of(exchange.tool_calls), turn.wanted)
    named = intents_of(exchange.tool_calls)
    if named:
        return float(named == turn.wanted)
    words = exchange.text.split()
    return float(len(turn.wanted) == 1 and words[:1] == list(turn.wanted))


def _says(exchange: Exchange) -> bool:
    return bool(exchange.text.strip() or exchange.tool_calls)


def _row(one: _Scored) -> dict[str, object]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in one.exchange.tool_calls]
    said = {"outcome": str(one.exchange.outcome), "text": one.exchange.text[:4000], "tool_calls": calls}
    turn = one.turn
    return {
        "session": turn.session,
        "place": turn.place,
        "kind": turn.kind,
        "score": one.score,
        "wanted": dict(turn.wanted),
        **said,
    }


def _table(metrics: dict[str, float], scored: list[_Scored]) -> ResultTable:
    rows = []
    for kind, key in zip(KINDS, ("workflow_intent_match_pct", "coding_command_iou_pct"), strict=True):
        count = sum(one.turn.kind == kind for one in scored)
        if count:
            rows.append((Cell(kind), Cell(str(count)), Cell(f"{metrics[key]:.2f}")))
    return ResultTable("Scores", (Column("Kind"), Column("Turns", Align.RIGHT), Column("Score %", Align.RIGHT)), tuple(rows))
