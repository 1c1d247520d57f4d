"""What the output of a benchmark proves."""

from typing import Any

import msgspec

from nodeproof.model.job import Correctness, Evidence, Execution, Outcome, Performance
from nodeproof.stress.parsers.trouble import Trouble

__all__ = ["Judgement", "failed", "not_proven", "outcome_of", "without_result"]

_EVIDENCE_LIMIT = 20


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict on one output, with the lines it rests on."""

    benchmark: str
    correctness: Correctness
    reason: str
    """One sentence."""
    cause: str = ""
    """One word unless validated: ``failed_validation``, ``failed_residual``, ``unchecked``, ``incomplete``, ``ambiguous``,
    ``unit_unknown``, ``damaged``, ``no_result``, or the cause of a crash (``config_error``, ``out_of_memory`` ...)."""
    crashed: bool = False
    """True when the output itself says that the program could not do its work, whatever its exit status."""
    values: dict[str, int | float] = {}
    """Validated numbers by the reference's keys; ``npu_burn`` keeps its counts on failure."""
    source: str
    """``stdout``, ``result_file`` or ``result_csv``."""
    evidence: list[Evidence] = []
    concerns: list[str] = []
    """Rules that the run broke without being wrong for it. A number with a concern is not comparable with a baseline."""
    details: dict[str, Any] = {}
    """All that was read, unverified numbers among it."""

    @property
    def is_comparable(self) -> bool:
        """True when the values may be held against a baseline."""
        return self.correctness is Correctness.VALIDATED and not self.concerns


def failed(benchmark: str, cause: str, reason: str, source: str, evidence: list[Evidence], details: dict[str, Any]) -> Judgement:
    """A wrong result was computed."""
    return Judgement(
        benchmark=benchmark,
        correctness=Correctness.FAILED,
        cause=cause,
        reason=reason,
        source=source,
        evidence=evidence[:_EVIDENCE_LIMIT],
        details=details,
    )


def not_proven(
    benchmark: str, cause: str, reason: str, source: str, evidence: list[Evidence], details: dict[str, Any]
) -> Judgement:
    """Nothing says that the result is right."""
    return Judgement(
        benchmark=benchmark,
        correctness=Correctness.NOT_PROVEN,
        cause=cause,
        reason=reason,
        source=source,
        evidence=evidence[:_EVIDENCE_LIMIT],
        details=details,
    )


def without_result(benchmark: str, expected: str, trouble: Trouble | None, source: str, details: dict[str, Any]) -> Judgement:
    """There is no result; ``trouble`` is the program's own word for why, where it left one."""
    if trouble is None:
        return not_proven(benchmark, "no_result", f"the output has no {expected}", source, [], details)
    return Judgement(
        benchmark=benchmark,
        correctness=Correctness.NOT_PROVEN,
        cause=trouble.cause,
        reason=trouble.reason,
        crashed=True,
        source=source,
        evidence=[trouble.evidence],
        details=details,
    )


def outcome_of(
    execution: Execution,
    judgement: Judgement | None,
    *,
    progress: bool,
    performance: Performance = Performance.NOT_JUDGED,
    execution_reason: str = "",
    performance_reason: str = "",
    cause: str = "",
) -> Outcome:
    """The three axes of an item that has ended. ``judgement`` is None when there was no output to judge.

    A program that ended with exit status 0 and printed that it could not do its work has crashed. A number is only judged when it
    is validated and comparable; the caller passes what the baseline says, and this function keeps it from being believed
    otherwise. ``cause`` is the caller's (``out_of_memory``, ``signal``) and goes before that of the output.
    """
    if judgement is None:
        correctness, said, evidence, concerns = Correctness.NOT_PROVEN, "there is no output to judge", [], []
    else:
        correctness, said = judgement.correctness, judgement.reason
        evidence, concerns = judgement.evidence, judgement.concerns
        cause = cause or judgement.cause
        if judgement.crashed and execution is Execution.FINISHED:
            execution, execution_reason = Execution.CRASHED, execution_reason or judgement.reason
    if judgement is None or not judgement.is_comparable:
        performance = Performance.NOT_JUDGED
        performance_reason = "; ".join(concerns) or "no validated number"
    reasons = {"execution": execution_reason, "correctness": said, "performance": performance_reason}
    return Outcome(
        execution=execution,
        correctness=correctness,
        performance=performance,
        progress=progress,
        cause=cause,
        reasons={axis: reason for axis, reason in reasons.items() if reason},
        evidence=evidence,
        concerns=concerns,
    )
