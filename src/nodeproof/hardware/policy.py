"""From facts to verdicts. Pure: the same facts give the same verdict, and every verdict names its rules and their evidence.

Three answers to each question: it holds, it does not, it cannot be told. What this machine does not have is none of them: it is
listed as not applicable. Nothing unknown ever helps towards ``valid``, and a verdict that no fact could have spoiled is not one.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from nodeproof.errors import Absence
from nodeproof.hardware.rules import Compare, Policy, Rule, Scope
from nodeproof.model.hardware import Decision, Effect, Fact, Finding, Postcheck, Precheck, Sensitivity, Validity

__all__ = ["Ceilings", "Options", "is_on", "judge", "judge_cell", "judge_cells", "precheck", "worst"]

_OVERRIDE = "NODEPROOF_NO_HW_PRECHECK"
_ORDER = (Validity.VALID, Validity.NOT_APPLICABLE, Validity.UNKNOWN, Validity.INVALID)
_MARK = {Effect.NOTE: 0, Effect.WARN: 1, Effect.REFUSE: 2}
_DECISIONS = (Decision.PROCEED, Decision.WARN, Decision.REFUSE)


class Ceilings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Temperatures above which a run of this class of hardware is not comparable, in °C. None = not declared."""

    gpu_c: float | None = None
    chassis_c: float | None = None
    cpu_c: float | None = None

    def get(self, name: str) -> float | None:
        """The ceiling of that name."""
        return {"gpu_c": self.gpu_c, "chassis_c": self.chassis_c, "cpu_c": self.cpu_c}[name]


class Options(NamedTuple):
    """What the user has decided."""

    kill_switch: bool = False
    """A refusal becomes a warning. It never makes a run valid."""
    temperature_gate: bool = False
    """Temperatures over the ceilings refuse."""
    ceilings: Ceilings = Ceilings()


def is_on(text: str | None) -> bool:
    """Whether the text of a switch (an environment variable) means on: ``1``, ``true`` or ``yes``, in any case."""
    return (text or "").strip().lower() in {"1", "true", "yes"}


class _Judged(NamedTuple):
    """What one rule said."""

    finding: Finding | None
    fact: Fact
    known: bool
    """Its condition could be told to hold, or not to."""
    unknown: bool
    """It applies, and could not be told."""


def precheck(
    sensitivity: Sensitivity,
    facts: Mapping[str, Fact],
    policy: Policy,
    options: Options = Options(),  # noqa: B008 - immutable
) -> Precheck:
    """Whether a run may start."""
    findings = [finding for rule in policy.before if (finding := _ask(rule, facts, sensitivity, options).finding) is not None]
    if options.temperature_gate and sensitivity is not Sensitivity.STABILITY:
        gated = {rule.id for rule in policy.before if rule.gated}
        findings = [
            msgspec.structs.replace(finding, effect=Effect.REFUSE) if finding.rule in gated else finding for finding in findings
        ]
    decision = _DECISIONS[max((_MARK[finding.effect] for finding in findings), default=0)]
    concerns = [finding.text for finding in findings]
    if decision is Decision.REFUSE and sensitivity is Sensitivity.CORRECTNESS:
        decision = Decision.WARN
        concerns.append("a run that only asks for right answers is not refused for this; its speed means nothing")
    if decision is Decision.REFUSE and options.kill_switch:
        decision = Decision.WARN
        concerns.append(f"this run would have been refused; {_OVERRIDE} is set, so it starts all the same")
    return Precheck(decision, concerns, findings)


def judge(sensitivity: Sensitivity, facts: Mapping[str, Fact], policy: Policy) -> Postcheck:
    """Whether what was measured while these facts came about may be believed."""
    return _postcheck(sensitivity, _during(sensitivity, facts, policy, tuple(Scope)), policy)


def judge_cell(sensitivity: Sensitivity, facts: Mapping[str, Fact], policy: Policy) -> Postcheck:
    """The same for one window. What concerns the whole run spoils it when seen here; what cannot be told is said of the run."""
    everywhere = [
        entry
        for entry in _during(sensitivity, facts, policy, (Scope.RUN,))
        if entry.finding is not None and entry.finding.effect is Effect.INVALID
    ]
    return _postcheck(sensitivity, [*_during(sensitivity, facts, policy, (Scope.CELL,)), *everywhere], policy)


def judge_cells(
    run: Postcheck, sensitivity: Sensitivity, facts: Mapping[str, Fact], policy: Policy, cells: Collection[Validity]
) -> Postcheck:
    """``run``, whose cells were judged one by one: as valid as they are, and as what concerns all of them alike.

    The concerns stay those of the whole run; what happened between cells is told, and spoils nothing.
    """
    alike = _during(sensitivity, facts, policy, (Scope.RUN,))
    common: list[Validity] = []
    if any(entry.finding is not None and entry.finding.effect is Effect.INVALID for entry in alike):
        common.append(Validity.INVALID)
    elif any(entry.unknown for entry in alike):
        common.append(Validity.UNKNOWN)
    return msgspec.structs.replace(run, validity=worst((*common, *cells)))


def _during(sensitivity: Sensitivity, facts: Mapping[str, Fact], policy: Policy, scopes: Collection[Scope]) -> list[_Judged]:
    return [_ask(rule, facts, sensitivity, Options()) for rule in policy.during if rule.scope in scopes]


def _postcheck(sensitivity: Sensitivity, judged: list[_Judged], policy: Policy) -> Postcheck:
    findings = [entry.finding for entry in judged if entry.finding is not None]
    absent = {
        entry.fact.name: entry.fact for entry in judged if entry.fact.value is None and entry.fact.state is Absence.NOT_APPLICABLE
    }
    concerns = [finding.text for finding in findings]
    validity = _validity(sensitivity, judged)
    if validity is Validity.UNKNOWN and not any(entry.known or entry.unknown for entry in judged):
        concerns.append("nothing that could spoil the run can be seen on this machine")
    failing = {rule.id for rule in policy.during if rule.fails}
    failed = any(finding.rule in failing for finding in findings)
    return Postcheck(validity, concerns, findings, list(absent.values()), failed)


def _validity(sensitivity: Sensitivity, judged: list[_Judged]) -> Validity:
    if any(entry.finding is not None and entry.finding.effect is Effect.INVALID for entry in judged):
        return Validity.INVALID
    if sensitivity is Sensitivity.CORRECTNESS:
        return Validity.NOT_APPLICABLE
    if any(entry.unknown for entry in judged) or not any(entry.known for entry in judged):
        return Validity.UNKNOWN
    return Validity.VALID


def worst(validities: Collection[Validity]) -> Validity:
    """The least believable of them; unknown when there is none."""
    return max(validities, key=_ORDER.index, default=Validity.UNKNOWN)


def _ask(rule: Rule, facts: Mapping[str, Fact], sensitivity: Sensitivity, options: Options) -> _Judged:
    fact = facts.get(rule.fact) or Fact(rule.fact, state=Absence.UNKNOWN, reason="it was not read")
    effect = rule.effects.get(sensitivity)
    limit = options.ceilings.get(rule.ceiling) if rule.ceiling else rule.limit
    if effect is None or limit is None:
        return _Judged(None, fact, known=False, unknown=False)
    matters = sensitivity in rule.unknown
    if fact.value is not None:
        holds = fact.value > limit if rule.compare is Compare.ABOVE else fact.value < limit
        if holds:
            return _Judged(_finding(rule, effect, fact, limit), fact, known=matters, unknown=False)
        if fact.complete:
            return _Judged(None, fact, known=matters, unknown=False)
    elif fact.state is Absence.NOT_APPLICABLE:
        return _Judged(None, fact, known=False, unknown=False)
    if not matters:
        return _Judged(None, fact, known=False, unknown=False)
    return _Judged(_untold(rule, fact, limit), fact, known=False, unknown=True)


def _finding(rule: Rule, effect: Effect, fact: Fact, limit: float) -> Finding:
    at_least = "" if fact.complete else "at least "
    text = rule.text.format(
        value=at_least + _shown(fact.value or 0.0, share=rule.share, signed=rule.fact.endswith("_rise_c")),
        limit=_shown(limit, share=rule.share),
        subject=fact.subject or "no name known",
    )
    return Finding(rule.id, effect, text, fact, limit, f"{rule.compare} {limit:g}")


def _untold(rule: Rule, fact: Fact, limit: float) -> Finding:
    """A rule that applies and cannot be judged; what could be read of its fact stands in the text."""
    seen = f" (seen so far: {fact.subject})" if fact.value is not None and fact.subject else ""
    text = f"{rule.fact} could not be told{seen}: {fact.reason or 'no reason known'}"
    return Finding(f"{rule.id}u", Effect.WARN, text, fact, limit, f"{rule.compare} {limit:g}")


def _shown(value: float, *, share: bool, signed: bool = False) -> str:
    if share:
        return f"{value * 100:.2f} %"
    if signed:
        return f"{value:+g}"
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"
