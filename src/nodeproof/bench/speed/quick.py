"""The benchmark ``quick-speed``: one prompt, asked a few times one after the other (bench.md 5.1)."""

from collections.abc import Sequence

import numpy as np

from nodeproof.bench.catalogue import QUICK_SPEED
from nodeproof.bench.guards import GuardResult, GuardState, any_content, concerns, guard_metrics
from nodeproof.bench.speed.cells import CellPlan, Shape, SpeedBenchmark, Taken, doubt
from nodeproof.bench.speed.figures import Line, figure_table, line
from nodeproof.bench.speed.tasks import COUNT
from nodeproof.model.run import Frame, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Int, ParamSpec, ParamValues

__all__ = ["QUICK_PARAMETERS", "QuickSpeed"]

QUICK_PARAMETERS = (
    ParamSpec("isl", "Input", "Tokens of the prompt", Int(16, 131072), 60),
    ParamSpec("osl", "Output", "Tokens of an answer at most; a model may stop before", Int(2, 8192), 128),
    ParamSpec("runs", "Runs", "Answers that count", Int(1, 100), 5),
    ParamSpec("warmup", "Warm-up", "Answers before them", Int(0, 10), 1),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 300),
)


class QuickSpeed(SpeedBenchmark):
    """One run of it."""

    def __init__(self) -> None:
        super().__init__(QUICK_SPEED, QUICK_PARAMETERS, "Speed of single answers")

    def arrange(self) -> list[CellPlan]:
        """One cell; the same bytes for the warm-up and all that counts."""
        values = self.values
        prepared = self.asked({"temperature": 0}, COUNT)
        shape = Shape(
            values.int("isl"), values.int("osl"), counted=values.int("runs"), warmup=values.int("warmup"), distinct=1, task=COUNT
        )
        if not shape.warmup:
            self.handle.warn("without a warm-up the first answer may be one of a cold cache, the others are of a warm one")
        return [self.cell("quick", prepared, self.true_length(prepared, shape))]

    def judged(self) -> Frame:
        """Numbers, and never a judgement on them."""
        (taken,) = self.taken
        lines = _lines(taken)
        guards = [any_content(taken.answers.delivered(1)), _two_tokens(taken)]
        metrics = {one.key: one.figure.value for one in lines if one.figure.value is not None}
        metrics |= {"runs": float(len(taken.answers)), **guard_metrics(guards)}
        table = figure_table("Single answers", lines)
        return self.last_frame(_verdict(taken, guards), metrics, table=table, summary=_tiles(metrics, self.values))


def _two_tokens(taken: Taken) -> GuardResult:
    """A rate is between two tokens: at least one answer has them."""
    several = int((taken.answers.output >= 2).sum())
    counts = {"answers": float(len(taken.answers)), "answers_of_two": float(several)}
    if several:
        return GuardResult("rate", GuardState.OK, counts)
    return GuardResult("rate", GuardState.VACUOUS, counts, f"no answer of {len(taken.answers)} has two tokens: there is no rate")


def _lines(taken: Taken) -> list[Line]:
    answers = taken.answers
    output, e2e_ms = answers.output, answers.e2e_ms
    prompt = np.array([np.nan if one.prompt_tokens is None else one.prompt_tokens for one in answers.prompts], dtype=np.float64)
    return [
        line("server_decode_tok_s", answers.server_tok_s, "server"),
        line("client_decode_tok_s", 1e3 / answers.client_tpot_ms, "client"),
        line("client_e2e_tok_s", np.where(output > 0, output / (e2e_ms / 1e3), np.nan), "client"),
        line("server_ttft_ms", answers.server_ttft_ms, "server"),
        line("client_ttft_ms", answers.ttft_ms, "client"),
        line("server_tpot_ms", 1e3 / answers.server_tok_s, "server"),
        line("client_tpot_ms", answers.client_tpot_ms, "client"),
        line("e2e_ms", e2e_ms, "client"),
        line("prompt_tokens", prompt, "count"),
        line("output_tokens", output, "count" if None not in answers.tokens else "chunks"),
    ]


def _tiles(metrics: dict[str, float], values: ParamValues) -> tuple[Stat, ...]:
    """The server's own clock where it has one; each tile says which it is."""
    tiles = []
    for label, name, unit in (("Decode", "decode_tok_s", "tok/s"), ("TTFT", "ttft_ms", "ms"), ("TPOT", "tpot_ms", "ms")):
        clock = next((clock for clock in ("server", "client") if f"{clock}_{name}" in metrics), "")
        if clock:
            tiles.append(Stat(label, f"{metrics[f'{clock}_{name}']:.4g}", f"{unit}, {clock} clock"))
    if "e2e_ms" in metrics:
        tiles.append(Stat("Whole answer", f"{metrics['e2e_ms']:.4g}", "ms, client clock"))
    if "output_tokens" in metrics:
        tiles.append(Stat("Output", f"{metrics['output_tokens']:.4g} of {values.int('osl')}", "tokens"))
    return tuple(tiles)


def _verdict(taken: Taken, guards: Sequence[GuardResult]) -> Verdict:
    doubts = [doubt(taken.cell), *concerns(guards)]
    reason = next((one for one in doubts if one), "")
    if reason:
        return Verdict(VerdictKind.INCONCLUSIVE, reason)
    return Verdict(VerdictKind.INFO, f"{len(taken.answers)} answers; this benchmark judges nothing")
