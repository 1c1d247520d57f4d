"""``scheduler-equivalence``: whether answers depend on how many requests a server works on at once, or on how it was set up.

The reference is one request at a time. A second pass of it is the control: where that differs, a difference under load could
come from anything. A cell is one concurrency on the endpoint itself (``here``), or on another server of the same model that
runs with other settings (``other``), such as another router, or speculative decoding on and off.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from typing import NamedTuple

from nodeproof.bench.address import Address
from nodeproof.bench.equality.alive import alive, same_again
from nodeproof.bench.equality.descriptors import SCHEDULER_EQUIVALENCE
from nodeproof.bench.equality.evidence import Evidence
from nodeproof.bench.equality.questions import QUESTION_SPEC, Questions, questions_for
from nodeproof.bench.equality.replies import Kind, Reply, compare, reply_of
from nodeproof.bench.equality.tables import named, table_of
from nodeproof.bench.guards import GuardResult, GuardState, guard_metrics
from nodeproof.bench.stepwise import Desk, Stepwise
from nodeproof.errors import ParamError, UsageError
from nodeproof.model.run import Frame, Stat, Verdict, VerdictKind
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.params import Bool, Int, IntList, ParamSpec, ParamValues, Text

__all__ = ["CellResult", "CellVerdict", "SchedulerEquivalence", "judge", "judge_cell"]

_NONE = "none"
_SPECS = (
    ParamSpec("sample_cap", "Samples", "So many questions from the beginning of the draw; 0 = all", Int(0, 5000), 64),
    ParamSpec("concurrencies", "Concurrencies", "Requests at once, a cell each", IntList(1, 256), (1, 4, 16)),
    ParamSpec("control", "Control", "Whether the reference is asked twice first", Bool(), True),
    ParamSpec("max_new_tokens", "Answer", "Tokens of an answer at most", Int(32, 4096), 1024),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 300),
    ParamSpec(
        "other_url", "Other server",
        f"Address of another server of the same model with other settings, asked without the key; {_NONE} = there is none",
        Text(), _NONE,
    ),
    QUESTION_SPEC,
)  # fmt: skip
_BATCH = 16


class CellVerdict(StrEnum):
    """What a cell proves."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNPROVEN = "unproven"
    """Not every answer came."""
    VACUOUS = "vacuous"
    """The answers say nothing."""
    UNATTRIBUTABLE = "unattributable"
    """The server does not even agree with itself."""


class CellResult(NamedTuple):
    """One cell."""

    name: str
    verdict: CellVerdict
    samples: int
    identical: int
    diverged: tuple[str, ...]
    unmeasured: int
    why: str = ""


class SchedulerEquivalence(Stepwise):
    """One run of it."""

    def __init__(self) -> None:
        super().__init__(SCHEDULER_EQUIVALENCE, _SPECS)

    def check(self, values: ParamValues) -> None:
        """The other server's address must be one."""
        other = values.text("other_url")
        if other != _NONE:
            try:
                Address.of(other)
            except UsageError as error:
                raise ParamError("other_url", f"other_url: {error}") from None

    def steps(self, desk: Desk) -> Iterator[Frame]:
        """Reference, control, cells, judgement."""
        desk.probe()
        yield desk.running("probe")
        questions = questions_for(desk)
        yield desk.running("questions")
        with closing(Evidence.of(desk.handle)) as evidence:
            reference: list[Reply] = []
            yield from _pass(desk, desk, evidence, questions, "reference", 1, reference)
            control: list[Reply] = []
            if desk.values.bool("control"):
                yield from _pass(desk, desk, evidence, questions, "control", 1, control)
            cells: list[CellResult] = []
            with closing(_lanes(desk)) as lanes:
                for lane, asked in lanes:
                    for concurrency in desk.values.int_list("concurrencies"):
                        name, replies = f"{lane} c{concurrency}", list[Reply]()
                        yield from _pass(desk, asked, evidence, questions, name, concurrency, replies)
                        names = [item.name for item in questions.items]
                        cells.append(judge_cell(name, names, reference, control or None, replies))
            names = [item.name for item in questions.items]
            guards = [alive(zip(names, reference, strict=True)), *([same_again(reference, control)] if control else [])]
        yield _last_frame(desk, questions, cells, guards)


def _lanes(desk: Desk) -> Generator[tuple[str, Desk], None, None]:
    """The servers that are compared with the reference. The other one's key is not known, and ours is not given away."""
    yield "here", desk
    other = desk.values.text("other_url")
    if other != _NONE:
        with closing(desk.beside(TargetEndpoint.new(other, desk.target.model, ca_file=desk.target.ca_file))) as second:
            second.probe()
            yield "other", second


def _pass(
    desk: Desk, asked: Desk, evidence: Evidence, questions: Questions, name: str, concurrency: int, replies: list[Reply]
) -> Iterator[Frame]:
    """Ask all questions, so many at once; the replies are added in their order."""
    limit, total = desk.values.usize("max_new_tokens"), len(questions.items)
    step = max(_BATCH, 4 * concurrency)
    for begin in range(0, total, step):
        items = questions.items[begin : begin + step]
        for item, exchange in zip(items, asked.ask_all([item.ask(limit) for item in items], concurrency), strict=True):
            replies.append(reply_of(exchange))
            evidence.add(name, item.name, replies[-1])
        desk.handle.progress(len(replies), total)
        yield desk.running(name, (len(replies), total))


def judge_cell(
    name: str, questions: Sequence[str], reference: Sequence[Reply], control: Sequence[Reply] | None, replies: Sequence[Reply]
) -> CellResult:
    """What one cell proves, the first that holds: no samples, all empty, unmeasured, control diverged, diverged, pass."""
    found = [compare(one, other) for one, other in zip(reference, replies, strict=True)]
    diverged = tuple(question for question, result in zip(questions, found, strict=True) if result.kind is Kind.DIVERGED)
    unmeasured = [reply for reply, result in zip(replies, found, strict=True) if result.kind is Kind.UNMEASURED]
    unstable = [] if control is None else [n for n, (a, b) in enumerate(zip(reference, control, strict=True)) if _differ(a, b)]
    identical = len(found) - len(diverged) - len(unmeasured)

    def result(verdict: CellVerdict, why: str = "") -> CellResult:
        return CellResult(name, verdict, len(found), identical, diverged, len(unmeasured), why)

    if not found:
        return result(CellVerdict.UNPROVEN, "there was no question")
    live = alive(zip(questions, reference, strict=True))
    if live.state is GuardState.VACUOUS:
        return result(CellVerdict.VACUOUS, live.reason)
    if unstable:
        names = named([questions[place] for place in unstable])
        return result(CellVerdict.UNATTRIBUTABLE, f"the control differs from the reference in {len(unstable)}: {names}")
    if diverged:
        return result(CellVerdict.FAIL, f"{len(diverged)} differ: {named(diverged)}")
    if unmeasured:
        causes = Counter(reply.outcome if not reply.ok else "no reference" for reply in unmeasured)
        return result(CellVerdict.UNPROVEN, ", ".join(f"{count} {cause}" for cause, count in sorted(causes.items())))
    return result(CellVerdict.PASS)


def _differ(one: Reply, two: Reply) -> bool:
    return compare(one, two).kind is Kind.DIVERGED


def judge(cells: Sequence[CellResult], *, controlled: bool) -> Verdict:
    """The worst cell counts: one that failed, then one that proves nothing."""
    failed = [cell for cell in cells if cell.verdict is CellVerdict.FAIL]
    if failed:
        return Verdict(VerdictKind.FAIL, "; ".join(f"{cell.name}: {cell.why}" for cell in failed))
    open_ = [cell for cell in cells if cell.verdict is not CellVerdict.PASS]
    if open_ or not cells:
        alike: dict[str, list[str]] = {}
        for cell in open_:
            alike.setdefault(f"{cell.verdict}, {cell.why}", []).append(cell.name)
        reason = "; ".join(f"{', '.join(names)}: {what}" for what, names in alike.items())
        return Verdict(VerdictKind.INCONCLUSIVE, reason or "unproven: there was no cell")
    control = "" if controlled else " (without a control)"
    total = sum(cell.samples for cell in cells)
    return Verdict(
        VerdictKind.PASS, f"{total} of {total} answers in {len(cells)} cells are the reference's, byte for byte{control}"
    )


def _last_frame(desk: Desk, questions: Questions, cells: Sequence[CellResult], guards: Sequence[GuardResult]) -> Frame:
    metrics = {
        "cells": float(len(cells)),
        "samples": float(len(questions.items)),
        "identical": float(sum(cell.identical for cell in cells)),
        "diverged": float(sum(len(cell.diverged) for cell in cells)),
        "unmeasured": float(sum(cell.unmeasured for cell in cells)),
        **guard_metrics(guards),
    }
    for verdict in CellVerdict:
        metrics[f"cells_{verdict}"] = float(sum(1 for cell in cells if cell.verdict is verdict))
    rows = [(cell.name, str(cell.verdict), f"{cell.identical}/{cell.samples}", cell.why) for cell in cells]
    return desk.completed(
        judge(cells, controlled=desk.values.bool("control")),
        metrics,
        summary=(Stat("Cells passed", f"{metrics['cells_pass']:.0f}", f"of {len(cells)}"),),
        table=table_of("Cells", ("Cell", "Result", "Identical", "Why"), rows),
        fingerprint=questions.fingerprint,
    )
