"""The benchmark ``decode-floor``: how fast one long answer is written, held against a floor (bench.md 5.4).

Everything but the floor is pinned: the prompt, three runs, 1,500 tokens. The rate is the server's where it tells one of every
run, else the client's, and the verdict says which. Where the server drafts tokens, the drafts must have been accepted: without
them the rate is that of another way of decoding.
"""

from collections.abc import Sequence

import numpy as np

from nodeproof.bench.catalogue import DECODE_FLOOR
from nodeproof.bench.guards import GuardResult, GuardState, concerns, guard_metrics
from nodeproof.bench.speed.cells import CellPlan, Shape, SpeedBenchmark, Taken, doubt
from nodeproof.bench.speed.figures import accept_length, energy_metrics, figure_table, gap_metrics, line, median_of
from nodeproof.bench.speed.tasks import CODE
from nodeproof.model.run import Frame, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Choice, Float, Int, ParamSpec, ParamValues

__all__ = ["ACCEPT_FLOOR", "DECODE_PARAMETERS", "DecodeFloor", "drafts"]

DECODE_PARAMETERS = (
    ParamSpec("min_tok_s", "Floor", "Fails below so many tokens a second; 0 = not judged", Float(0.0, 10_000.0), 0.0),
    ParamSpec(
        "speculation",
        "Speculation",
        "auto: accepted drafts are judged where the server tells of any; required: it must; off: they are not judged",
        Choice(("auto", "required", "off")),
        "auto",
    ),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(30, 3600), 300),
)
ACCEPT_FLOOR = 1.5
"""Tokens a decode step below which speculation does not work (bench.md 10)."""
_RUNS = 3
_INPUT_TOKENS = 256
_MAX_TOKENS = 1500
_MIN_TOKENS = 750
_EXTRA = {"temperature": 0, "seed": 0, "reasoning_effort": "none"}


class DecodeFloor(SpeedBenchmark):
    """One run of it."""

    def __init__(self) -> None:
        super().__init__(DECODE_FLOOR, DECODE_PARAMETERS, "Decode rate of one long answer")

    def arrange(self) -> list[CellPlan]:
        """One cell of three answers."""
        prepared = self.asked(_EXTRA, CODE)
        shape = Shape(_INPUT_TOKENS, _MAX_TOKENS, counted=_RUNS, distinct=1, task=CODE)
        return [self.cell("decode", prepared, self.true_length(prepared, shape))]

    def judged(self) -> Frame:
        """The median of the three against the floor."""
        (taken,) = self.taken
        answers, values = taken.answers, self.values
        clock, rates = _rates(taken)
        guards = [_long_enough(taken), _rated(rates), drafts(answers.delivered(1), answers.accepted, values.text("speculation"))]
        lines = [
            line("server_decode_tok_s", answers.server_tok_s, "server"),
            line("client_decode_tok_s", 1e3 / answers.client_tpot_ms, "client"),
            line("client_tpot_ms", answers.client_tpot_ms, "client"),
            line("output_tokens", answers.output, "count" if None not in answers.tokens else "chunks"),
        ]
        verdict, rate = _verdict(values, taken, guards, clock, rates)
        metrics = {"runs": float(len(answers)), **gap_metrics(answers), **guard_metrics(guards)}
        metrics |= energy_metrics(taken.cell.energy, answers.all_tokens)
        metrics |= _measured(taken) if verdict.kind is not VerdictKind.INCONCLUSIVE else _tpot(taken)
        tiles = [] if rate is None else [Stat("Decode", f"{rate:.4g}", f"tok/s, {clock} clock")]
        return self.last_frame(verdict, metrics, table=figure_table("One long answer", lines), summary=tiles)


def drafts(completion: Sequence[int | None], accepted: Sequence[int | None], mode: str) -> GuardResult:
    """Whether drafted tokens were accepted, where that matters: so many that a step brings 1.5 tokens in the mean."""
    lengths = accept_length(completion, accepted)
    told = [length for length in lengths if length is not None]
    counts = {"answers": float(len(lengths)), "told": float(sum(one is not None for one in accepted))}
    if mode == "off" or (mode == "auto" and not any(accepted)):
        return GuardResult("drafts", GuardState.OK, counts)
    if not lengths or any(one is None for one in accepted):
        return GuardResult(
            "drafts", GuardState.UNMEASURED, counts, "the server does not tell how many drafted tokens were accepted"
        )
    if len(told) < len(lengths):
        return GuardResult("drafts", GuardState.UNMEASURED, counts, "the server counts more accepted tokens than it sent")
    mean = sum(told) / len(told)
    counts["accept_len_mean"] = mean
    if mean < ACCEPT_FLOOR or 0 in accepted:
        reason = f"a decode step brought {mean:.3g} tokens in the mean, at least {ACCEPT_FLOOR:g} are drafted decoding"
        return GuardResult("drafts", GuardState.VACUOUS, counts, reason)
    return GuardResult("drafts", GuardState.OK, counts)


def _rates(taken: Taken) -> tuple[str, list[float]]:
    """Whose clock, and the rate of each answer that has one: the server's only if it tells all of them."""
    server = taken.answers.server_tok_s
    if len(server) and np.isfinite(server).all():
        return "server", server.tolist()
    client = 1e3 / taken.answers.client_tpot_ms
    return "client", client[np.isfinite(client)].tolist()


def _long_enough(taken: Taken) -> GuardResult:
    """Three answers, none of them shorter than half of what was asked for."""
    tokens = taken.answers.delivered(_MIN_TOKENS)
    short = [count for count in tokens if count is not None and count < _MIN_TOKENS]
    counts = {"answers": float(len(tokens)), "short_answers": float(len(short))}
    if short:
        reason = f"an answer of {min(short)} tokens: at least {_MIN_TOKENS} of {_MAX_TOKENS} must come"
        return GuardResult("budget", GuardState.VACUOUS, counts, reason)
    if len(tokens) != _RUNS:
        return GuardResult("budget", GuardState.UNMEASURED, counts, f"{len(tokens)} answers, {_RUNS} are compared")
    if None in tokens:
        return GuardResult("budget", GuardState.UNMEASURED, counts, "nobody counted the tokens of an answer")
    return GuardResult("budget", GuardState.OK, counts)


def _rated(rates: Sequence[float]) -> GuardResult:
    counts = {"rates": float(len(rates))}
    if len(rates) == _RUNS:
        return GuardResult("rate", GuardState.OK, counts)
    reason = f"{len(rates)} of {_RUNS} answers have a rate: the others came in one piece, and the server tells no time of its own"
    return GuardResult("rate", GuardState.UNMEASURED, counts, reason)


def _verdict(
    values: ParamValues, taken: Taken, guards: Sequence[GuardResult], clock: str, rates: Sequence[float]
) -> tuple[Verdict, float | None]:
    """The verdict and the rate that it is about."""
    reason = next((one for one in (doubt(taken.cell), *concerns(guards)) if one), "")
    if reason:
        return Verdict(VerdictKind.INCONCLUSIVE, reason), None
    rate, floor = float(np.median(rates)), values.float("min_tok_s")
    text = f"{rate:.4g} tok/s in the median of {len(rates)} ({clock} clock)"
    if not floor:
        return Verdict(VerdictKind.INFO, f"{text}; no floor is set"), rate
    kind = VerdictKind.PASS if rate >= floor else VerdictKind.FAIL
    return Verdict(kind, f"{text}, at least {floor:g} must come"), rate


def _measured(taken: Taken) -> dict[str, float]:
    """Keys of a run that was measured."""
    answers = taken.answers
    metrics = {"output_tokens": float(answers.output.min())} | _tpot(taken)
    server, client = median_of(answers.server_tok_s), median_of(1e3 / answers.client_tpot_ms)
    if server is not None and np.isfinite(answers.server_tok_s).all():
        metrics["server_decode_tok_s"] = server
    if client is not None:
        metrics["client_decode_tok_s"] = client
    lengths = [one for one in accept_length(answers.delivered(1), answers.accepted) if one is not None]
    if lengths and len(lengths) == len(answers):
        metrics["accept_len_mean"] = sum(lengths) / len(lengths)
    return metrics


def _tpot(taken: Taken) -> dict[str, float]:
    value = median_of(taken.answers.client_tpot_ms)
    return {} if value is None else {"client_tpot_ms": value}
