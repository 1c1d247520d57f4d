"""``contamination``: whether requests that are under way together get into each other, or leave something behind.

Prime, every probe alone twice (reference and control), one batch or several a rung of concurrency, every probe alone once more.
What a reply is found to be, the first that holds: contaminated (holds a part of another's code word), unmeasured (failed, or
too short), diverged (other text or number of tokens than alone; afterwards: persistent), identical.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from typing import NamedTuple

from nodeproof.bench.equality.alive import alive
from nodeproof.bench.equality.canaries import Probe, foreign, probes
from nodeproof.bench.equality.descriptors import CONTAMINATION
from nodeproof.bench.equality.evidence import Evidence
from nodeproof.bench.equality.replies import Kind, Reply, common_prefix, compare, reply_of
from nodeproof.bench.equality.tables import named, table_of
from nodeproof.bench.guards import GuardResult, GuardState, guard_metrics
from nodeproof.bench.stepwise import Desk, Stepwise
from nodeproof.errors import ParamError
from nodeproof.model.run import Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Int, IntList, ParamSpec, ParamValues

__all__ = ["Contamination", "Finding", "FindingClass", "Observed", "classify", "judge"]

_SPECS = (
    ParamSpec("concurrencies", "Rungs", "Requests at once, one rung after the other", IntList(2, 128), (2, 4, 8)),
    ParamSpec("max_tokens", "Answer", "Tokens of an answer at most", Int(32, 4096), 256),
    ParamSpec("min_completion_tokens", "Shortest answer", "Fewer tokens prove nothing", Int(1, 4096), 16),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 300),
    ParamSpec("probes", "Probes", "Different code words", Int(2, 64), 4),
    ParamSpec("seed", "Seed", "Of the code words", Int(0, (1 << 31) - 1), 1),
)
_AFTER = "after"


class FindingClass(StrEnum):
    """What a reply was found to be."""

    IDENTICAL = "identical"
    DIVERGED = "diverged"
    PERSISTENT = "persistent"
    """Alone again, after everything, and still other than before."""
    CONTAMINATED = "contaminated"
    ALONE_UNSTABLE = "alone unstable"
    """Alone twice, and not the same: nothing more is concluded from it."""
    UNMEASURED = "unmeasured"


class Observed(NamedTuple):
    """A reply to one probe in one leg."""

    leg: str
    probe: Probe
    reply: Reply


class Finding(NamedTuple):
    """What it was found to be."""

    leg: str
    name: str
    kind: FindingClass
    why: str = ""
    common_chars: int = 0
    tokens: int = 0


class Contamination(Stepwise):
    """One run of it."""

    def __init__(self) -> None:
        super().__init__(CONTAMINATION, _SPECS)

    def check(self, values: ParamValues) -> None:
        """The shortest answer must fit."""
        if values.usize("min_completion_tokens") >= values.usize("max_tokens"):
            raise ParamError(
                "min_completion_tokens", "min_completion_tokens: must be below max_tokens, or no answer is long enough"
            )

    def steps(self, desk: Desk) -> Iterator[Frame]:
        """All legs, then the judgement."""
        values = desk.values
        everybody = probes(values.usize("probes"), values.usize("seed"))
        desk.probe()
        yield desk.running("probe")
        with closing(Evidence.of(desk.handle)) as evidence:
            primed = _batch(desk, evidence, "prime", everybody, 1)
            for one in primed:
                if not one.reply.ok:
                    desk.handle.warn(f"prime, {one.probe.name}: {one.reply.outcome} {one.reply.detail}")
            yield desk.running("prime")
            references = _batch(desk, evidence, "alone", everybody, 1)
            yield desk.running("alone")
            controls = _batch(desk, evidence, "control", everybody, 1)
            yield desk.running("control")
            observed: list[Observed] = []
            for rung in values.int_list("concurrencies"):
                for batch in _batches(everybody, rung):
                    observed += _batch(desk, evidence, f"c{rung}", batch, rung)
                    yield desk.running(f"c{rung}")
            observed += _batch(desk, evidence, _AFTER, everybody, 1)
        findings = classify(everybody, references, controls, observed, values.usize("min_completion_tokens"))
        echoed = sum(1 for one in references if one.probe.in_text(one.reply.text))
        live = alive((one.probe.name, one.reply) for one in references)
        yield _last_frame(desk, findings, echoed, live)


def _batches(everybody: tuple[Probe, ...], rung: int) -> list[list[Probe]]:
    """Batches of exactly ``rung`` requests in which every probe has its turn; others, or copies, fill them up."""
    count = len(everybody)
    return [[everybody[(begin + place) % count] for place in range(rung)] for begin in range(0, count, rung)]


def _batch(desk: Desk, evidence: Evidence, leg: str, batch: Sequence[Probe], concurrency: int) -> list[Observed]:
    limit = desk.values.usize("max_tokens")
    desk.handle.status(f"{leg}: {len(batch)} requests, {concurrency} at once")
    exchanges = desk.ask_all([probe.ask(limit) for probe in batch], concurrency)
    found = [Observed(leg, probe, reply_of(exchange)) for probe, exchange in zip(batch, exchanges, strict=True)]
    for one in found:
        evidence.add(leg, one.probe.name, one.reply)
    return found


def classify(
    everybody: tuple[Probe, ...],
    references: Sequence[Observed],
    controls: Sequence[Observed],
    observed: Sequence[Observed],
    floor: int,
) -> list[Finding]:
    """What every reply was found to be, set against the one alone."""
    alone = {one.probe.name: one.reply for one in references}
    findings: list[Finding] = []
    settled: set[str] = set()
    for control in controls:
        name, reference = control.probe.name, alone[control.probe.name]
        problem = _unusable(reference, floor) or _unusable(control.reply, floor)
        leak = foreign(control.probe, everybody, _said(reference)) or foreign(control.probe, everybody, _said(control.reply))
        if leak:
            findings.append(Finding("alone", name, FindingClass.CONTAMINATED, leak, tokens=reference.tokens))
        elif problem:
            findings.append(Finding("alone", name, FindingClass.UNMEASURED, problem))
        elif compare(reference, control.reply).kind is not Kind.EQUAL:
            common = _common(reference, control.reply)
            findings.append(Finding("alone", name, FindingClass.ALONE_UNSTABLE, "the control differs", common))
        else:
            continue
        settled.add(name)
    findings += [_finding(everybody, one, alone[one.probe.name], floor) for one in observed if one.probe.name not in settled]
    return findings


def _finding(everybody: tuple[Probe, ...], one: Observed, reference: Reply, floor: int) -> Finding:
    reply, name = one.reply, one.probe.name
    leak = foreign(one.probe, everybody, _said(reply))
    if leak:
        return Finding(one.leg, name, FindingClass.CONTAMINATED, leak, _common(reference, reply), reply.tokens)
    problem = _unusable(reply, floor)
    if problem:
        return Finding(one.leg, name, FindingClass.UNMEASURED, problem)
    found = compare(reference, reply)
    if found.kind is Kind.EQUAL:
        return Finding(one.leg, name, FindingClass.IDENTICAL, "", len(reply.text), reply.tokens)
    kind = FindingClass.PERSISTENT if one.leg == _AFTER else FindingClass.DIVERGED
    return Finding(one.leg, name, kind, found.why, _common(reference, reply), reply.tokens)


def _said(reply: Reply) -> str:
    return f"{reply.reasoning}\n{reply.text}"


def _unusable(reply: Reply, floor: int) -> str:
    if not reply.ok:
        return f"{reply.outcome}: {reply.detail}"
    return f"{reply.tokens} tokens, fewer than {floor}" if reply.tokens < floor else ""


def _common(one: Reply, two: Reply) -> int:
    """Characters from the beginning that are the same."""
    same = common_prefix(one.text.encode("utf-8", "surrogatepass"), two.text.encode("utf-8", "surrogatepass"))
    return len(one.text.encode("utf-8", "surrogatepass")[:same].decode("utf-8", "ignore"))


_FAULTS = (
    FindingClass.CONTAMINATED,
    FindingClass.PERSISTENT,
    FindingClass.ALONE_UNSTABLE,
    FindingClass.DIVERGED,
)


def judge(findings: Sequence[Finding], echoed: int, live: GuardResult) -> Verdict:
    """One fault is proof. None is proof only when every reply could be compared, and a code word could have shown."""
    by_kind = {kind: [f"{one.name} ({one.leg})" for one in findings if one.kind is kind] for kind in FindingClass}
    compared = len(findings) - len(by_kind[FindingClass.UNMEASURED]) - len(by_kind[FindingClass.ALONE_UNSTABLE])
    for kind in _FAULTS:
        if by_kind[kind]:
            rest = [other for other in FindingClass if other not in {kind, FindingClass.IDENTICAL} and by_kind[other]]
            others = ", ".join(f"{len(by_kind[other])} {other}" for other in rest)
            text = f"{len(by_kind[kind])} {kind}: {named(by_kind[kind])}"
            return Verdict(VerdictKind.FAIL, f"{text}; besides {others}" if others else text)
    if not compared:
        return Verdict(VerdictKind.INCONCLUSIVE, f"unproven: nothing was compared; {_reason(findings)}")
    if by_kind[FindingClass.UNMEASURED]:
        count = len(by_kind[FindingClass.UNMEASURED])
        return Verdict(
            VerdictKind.INCONCLUSIVE, f"unproven: {count} of {len(findings)} replies are unmeasured; {_reason(findings)}"
        )
    if live.state is GuardState.VACUOUS:
        return Verdict(VerdictKind.INCONCLUSIVE, f"vacuous: {live.reason}")
    if not echoed:
        text = f"vacuous: {compared} replies are the same, but none holds its own code word: another's could not have shown"
        return Verdict(VerdictKind.INCONCLUSIVE, text)
    return Verdict(
        VerdictKind.PASS, f"{compared} of {compared} replies are the same as alone, and none holds another's code word"
    )


def _reason(findings: Sequence[Finding]) -> str:
    return next(
        (f"{one.name} ({one.leg}): {one.why}" for one in findings if one.kind is FindingClass.UNMEASURED), "no probe was asked"
    )


def _last_frame(desk: Desk, findings: Sequence[Finding], echoed: int, live: GuardResult) -> Frame:
    asked = desk.values.usize("probes")
    counts = {kind: sum(1 for one in findings if one.kind is kind) for kind in FindingClass}
    compared = len(findings) - counts[FindingClass.UNMEASURED] - counts[FindingClass.ALONE_UNSTABLE]
    metrics = {"compared": float(compared), "probes": float(asked), "echoed": float(echoed)}
    metrics |= {kind.value.replace(" ", "_"): float(count) for kind, count in counts.items()}
    metrics |= guard_metrics([live])
    metrics["tokens_compared"] = float(sum(one.tokens for one in findings))
    tiles = (
        Stat("Identical", f"{metrics['identical']:.0f}", f"of {len(findings)}"),
        Stat("Echoed", str(echoed), f"of {asked}"),
    )
    return desk.completed(judge(findings, echoed, live), metrics, summary=tiles, table=_table(findings))


def _table(findings: Sequence[Finding]) -> ResultTable | None:
    rows = [
        (one.leg, one.name, str(one.kind), str(one.common_chars), one.why)
        for one in findings
        if one.kind is not FindingClass.IDENTICAL
    ]
    return table_of("Replies that are not as alone", ("Leg", "Probe", "Result", "Same characters", "Why"), rows)
