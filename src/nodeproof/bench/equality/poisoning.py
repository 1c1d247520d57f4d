"""``state-poisoning``: whether what a server keeps between requests (prefix cache, state snapshots) spoils answers over time.

One conversation, four turns, replayed: every round sends the same bytes, with the answers of the first round as history, so
that each turn can be set against the first round's alone. A turn that ends otherwise, or has less than half or more than twice
the tokens, has collapsed; any other difference is jitter, which a healthy server may show. A replay counts only when the server
says that it took the beginning of the prompt from its cache.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from typing import NamedTuple

from nodeproof.bench.coherence import accepts
from nodeproof.bench.equality.conversation import TURNS, Path, Turn, ask_turn, tool_paths
from nodeproof.bench.equality.descriptors import STATE_POISONING
from nodeproof.bench.equality.evidence import Evidence
from nodeproof.bench.equality.replies import Kind, Reply, compare, reply_of
from nodeproof.bench.equality.tables import named, table_of
from nodeproof.bench.equality.toolcalls import ToolLeg, same_calls
from nodeproof.bench.stepwise import Desk, Stepwise
from nodeproof.model.run import Frame, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Choice, Int, ParamSpec

__all__ = ["Round", "RoundClass", "StatePoisoning", "TurnClass", "judge", "turn_class"]

_REQUIRED, _ANY = "required", "any"
_SPECS = (
    ParamSpec("rounds", "Rounds", "How often the conversation is held", Int(3, 30), 12),
    ParamSpec("max_tokens", "Answer", "Tokens of an answer at most", Int(32, 4096), 1024),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 300),
    ParamSpec(
        "cache", "Cache", f"{_REQUIRED}: replays must be seen to use the server's cache; {_ANY}: one that does not tell will do",
        Choice((_REQUIRED, _ANY)), _REQUIRED,
    ),
    ParamSpec("tool_leg", "Tool calls", "Whether a tool call is tried along several ways, too", Choice(("yes", "no")), "yes"),
)  # fmt: skip
_LOW, _HIGH = 0.5, 2.0


class TurnClass(StrEnum):
    """One turn of a replay against the same turn of the first round."""

    INVARIANT = "invariant"
    JITTERED = "jittered"
    UNMEASURED = "unmeasured"
    COLLAPSED = "collapsed"


RoundClass = TurnClass
"""A round is what its worst turn is."""
_GRAVITY = (TurnClass.COLLAPSED, TurnClass.UNMEASURED, TurnClass.JITTERED, TurnClass.INVARIANT)


class Round(NamedTuple):
    """One replay."""

    number: int
    turns: tuple[TurnClass, ...]
    cached_tokens: int | None
    """Of its first turn's prompt; None = the server does not tell."""
    why: str = ""

    @property
    def kind(self) -> RoundClass:
        """The gravest of its turns."""
        return next(kind for kind in _GRAVITY if kind in self.turns)


def turn_class(first: Reply, again: Reply) -> tuple[TurnClass, str]:
    """What a replayed turn is, and why."""
    for reply in (first, again):
        if not reply.ok:
            return TurnClass.UNMEASURED, f"{reply.outcome} {reply.detail}".strip()
    if not first.tokens and not again.tokens:
        return TurnClass.UNMEASURED, "no tokens on either side"
    if first.finish != again.finish:
        return TurnClass.COLLAPSED, f"it ends with {again.finish}, not with {first.finish}"
    ratio = again.tokens / first.tokens if first.tokens else float("inf")
    if not _LOW <= ratio <= _HIGH:
        return TurnClass.COLLAPSED, f"{again.tokens} tokens, not {first.tokens}"
    if compare(first, again).kind is Kind.EQUAL:
        return TurnClass.INVARIANT, ""
    return TurnClass.JITTERED, "other bytes"


class StatePoisoning(Stepwise):
    """One run of it."""

    def __init__(self) -> None:
        super().__init__(STATE_POISONING, _SPECS)

    def steps(self, desk: Desk) -> Iterator[Frame]:
        """The first round, replays, tool calls, judgement."""
        desk.probe()
        yield desk.running("probe")
        count = desk.values.usize("rounds")
        with closing(Evidence.of(desk.handle)) as evidence:
            first = list[Reply]()
            yield from _hold(desk, evidence, 0, None, first)
            missed = [turn.label for turn, reply in zip(TURNS, first, strict=True) if not _holds(turn, reply)]
            rounds: list[Round] = []
            if not missed:
                for number in range(1, count):
                    again = list[Reply]()
                    yield from _hold(desk, evidence, number, first, again)
                    rounds.append(_round(number, first, again))
            leg = ToolLeg.left_out()
            if desk.values.text("tool_leg") == "yes" and not missed:
                yield desk.running("tools")
                leg = _tools(desk, evidence)
        yield _last_frame(desk, first, missed, rounds, leg)


def _holds(turn: Turn, reply: Reply) -> bool:
    return reply.ok and (accepts(turn.anchors, reply.text) or accepts(turn.anchors, reply.reasoning))


def _hold(desk: Desk, evidence: Evidence, number: int, first: Sequence[Reply] | None, replies: list[Reply]) -> Iterator[Frame]:
    """Hold the conversation once; history is what the first round answered."""
    limit, rounds = desk.values.usize("max_tokens"), desk.values.usize("rounds")
    for place in range(len(TURNS)):
        history = [reply.text for reply in (first if first is not None else replies)[:place]]
        replies.append(reply_of(desk.ask(ask_turn(history, limit))))
        evidence.add(f"round-{number}", TURNS[place].label, replies[-1])
        desk.handle.progress(number * len(TURNS) + place + 1, rounds * len(TURNS))
        if first is None and not replies[-1].ok:
            replies += [Reply("not asked", ok=False)] * (len(TURNS) - place - 1)
            return
    yield desk.running("replay", (number + 1, rounds))


def _round(number: int, first: Sequence[Reply], again: Sequence[Reply]) -> Round:
    found = [turn_class(one, two) for one, two in zip(first, again, strict=True)]
    whys = [f"{turn.label}: {why}" for turn, (_, why) in zip(TURNS, found, strict=True) if why]
    return Round(number, tuple(kind for kind, _ in found), again[0].cached_tokens, "; ".join(whys))


def _tools(desk: Desk, evidence: Evidence) -> ToolLeg:
    """Ask for the same call after each way to it."""
    limit, calls = desk.values.usize("max_tokens"), list[tuple[str, Reply]]()
    for path in tool_paths():
        reply = _along(desk, path, limit)
        evidence.add("tools", path.name, reply)
        calls.append((path.name, reply))
        if len(calls) == 1 and not (reply.ok and reply.calls):
            break
    return same_calls(calls)


def _along(desk: Desk, path: Path, limit: int) -> Reply:
    for before in path.before(limit):
        desk.ask(before)
    return reply_of(desk.ask(path.target(limit)))


def judge(missed: Sequence[str], rounds: Sequence[Round], leg: ToolLeg, *, wanted: int, cache_required: bool) -> Verdict:
    """A collapse is proof; its absence only when every round came, the cache was used, and the first answers made sense."""
    collapsed = [one for one in rounds if one.kind is TurnClass.COLLAPSED]
    if collapsed:
        text = (
            f"{len(collapsed)} of {len(rounds)} replays collapsed; the first is round {collapsed[0].number}: {collapsed[0].why}"
        )
        return Verdict(VerdictKind.FAIL, text)
    if leg.diverged:
        return Verdict(
            VerdictKind.FAIL, f"the same tool call differs by what was asked before it: {named(leg.diverged)} ({leg.why})"
        )
    why = _unproven(missed, rounds, leg, wanted=wanted, cache_required=cache_required)
    if why:
        return Verdict(VerdictKind.INCONCLUSIVE, why)
    jittered = sum(1 for one in rounds if one.kind is TurnClass.JITTERED)
    tools = f"; {leg.paths} ways to a tool call agree" if leg.paths else f"; tool calls were not tried: {leg.why}"
    cache = "" if all(one.cached_tokens for one in rounds) else "; whether its cache was used the server does not tell"
    return Verdict(VerdictKind.PASS, f"none of {len(rounds)} replays collapsed, {jittered} jittered{cache}{tools}")


def _unproven(missed: Sequence[str], rounds: Sequence[Round], leg: ToolLeg, *, wanted: int, cache_required: bool) -> str:
    """Why a run without a fault proves nothing; empty when it does."""
    bad = [one for one in rounds if one.kind is TurnClass.UNMEASURED]
    cold = [one.number for one in rounds if one.cached_tokens == 0]
    silent = cache_required and any(one.cached_tokens is None for one in rounds)
    lost = f"{bad[0].number}: {bad[0].why}" if bad else ""
    reasons = (
        (missed, f"unproven: the first round makes no sense ({', '.join(missed)}): there is nothing to set replays against"),
        (len(rounds) < wanted - 1, f"unproven: {len(rounds)} of {wanted - 1} replays were held"),
        (bad, f"unproven: {len(bad)} of {len(rounds)} replays are unmeasured, the first is round {lost}"),
        (leg.unmeasured, f"unproven: {named(leg.unmeasured)}: no tool call came ({leg.why})"),
        (cold, f"vacuous: {len(cold)} of {len(rounds)} replays took nothing from the cache: rounds {cold}"),
        (
            silent,
            "unproven: the server does not tell of cached tokens, so its cache may not have been used; cache=any does without",
        ),
    )
    return next((text for holds, text in reasons if holds), "")


def _last_frame(desk: Desk, first: Sequence[Reply], missed: Sequence[str], rounds: Sequence[Round], leg: ToolLeg) -> Frame:
    kinds = Counter(one.kind for one in rounds)
    wanted = desk.values.usize("rounds")
    metrics = {"rounds": float(len(rounds) + bool(first)), "anchors_missed": float(len(missed))}
    metrics |= {str(kind): float(kinds[kind]) for kind in TurnClass}
    metrics["uncached_rounds"] = float(sum(1 for one in rounds if one.cached_tokens == 0))
    metrics["tool_paths"] = float(leg.paths)
    metrics["tool_diverged"] = float(len(leg.diverged))
    metrics["sum_wall_s"] = desk.elapsed_s
    if rounds and all(one.cached_tokens is not None for one in rounds):
        metrics["min_cached_prompt_tokens"] = float(min(one.cached_tokens or 0 for one in rounds))
    required = desk.values.text("cache") == _REQUIRED
    rows = [
        (str(one.number), str(one.kind), "-" if one.cached_tokens is None else str(one.cached_tokens), one.why) for one in rounds
    ]
    return desk.completed(
        judge(missed, rounds, leg, wanted=wanted, cache_required=required),
        metrics,
        summary=(Stat("Collapsed", str(kinds[TurnClass.COLLAPSED]), f"of {len(rounds)}"), Stat("Tool ways", str(leg.paths))),
        table=table_of("Replays", ("Round", "Result", "Cached tokens", "Why"), rows),
    )
