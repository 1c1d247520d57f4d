"""Runs, and what a gate says, as JUnit: for the test reports of CI systems.

Only what is proven is a test that passed. A failed verdict is a failure; what could not be told is an error, never a success.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from nodeproof.bench.export.plain import clean
from nodeproof.bench.export.sheet import Sheet, validity_of, when
from nodeproof.bench.gate.judgement import GateReport, Judgement, Standing
from nodeproof.model.run import RunStatus, VerdictKind

__all__ = ["render_gate", "render_junit"]


class _Case(NamedTuple):
    suite: str
    name: str
    elapsed_s: float
    outcome: str
    """``failure``, ``error``, ``skipped``; empty = passed."""
    kind: str
    reason: str
    output: str
    at: str = ""


def render_junit(sheets: Sequence[Sheet]) -> str:
    """A suite a benchmark, a case a run."""
    return _document("nodeproof bench", [_case(sheet) for sheet in sheets])


def render_gate(report: GateReport) -> str:
    """A suite for the file, a case for each entry that is required; others are skipped."""
    return _document("nodeproof gate", [_judged(report.source, one) for one in report.judgements])


def _case(sheet: Sheet) -> _Case:
    record = sheet.record
    outcome, kind, reason = _outcome(sheet)
    metrics = "\n".join(f"{key} {value!r}" for key, value in sorted(record.frame.metrics.items()))
    name = f"{record.target_model or 'this box'} {record.run_id}"
    return _Case(record.benchmark_id, name, record.frame.elapsed.seconds, outcome, kind, reason, metrics, when(record))


def _outcome(sheet: Sheet) -> tuple[str, str, str]:
    record = sheet.record
    reason = record.verdict.reason
    if sheet.problems:
        return "error", "changed", "; ".join(sheet.problems)
    if record.status is not RunStatus.COMPLETED:
        return "error", str(record.status), reason
    if sheet.proven:
        return "", "", ""
    validity = validity_of(record)
    return {
        VerdictKind.FAIL: ("failure", "fail", reason),
        VerdictKind.INCONCLUSIVE: ("error", "inconclusive", reason),
        VerdictKind.INFO: ("skipped", "info", f"numbers without a judgement: {reason}"),
        VerdictKind.PASS: ("error", f"box {validity}", f"the box was not seen to be fit: {validity}; {reason}"),
    }[record.verdict.kind]


def _judged(source: str, one: Judgement) -> _Case:
    reasons = "; ".join(one.reasons)
    output = "\n".join([*one.reasons, *one.notes, *(f"passed over {other.run_id}: {other.why}" for other in one.considered)])
    outcome = {Standing.PASS: "", Standing.FAIL: "failure"}.get(one.standing, "error") if one.required else "skipped"
    return _Case(source, f"{one.place} {one.title}", 0.0, outcome, str(one.standing), reasons, output)


def _document(name: str, cases: Sequence[_Case]) -> str:
    suites = dict.fromkeys(case.suite for case in cases)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={_attribute(name)} {_counts(cases)}>"]
    for suite in suites:
        own = [case for case in cases if case.suite == suite]
        lines.append(f"  <testsuite name={_attribute(suite)} {_counts(own)}>")
        for case in own:
            lines += _lines(case)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _lines(case: _Case) -> Iterable[str]:
    at = f" timestamp={_attribute(case.at.rstrip('Z'))}" if case.at else ""
    name = f"classname={_attribute(case.suite)} name={_attribute(case.name)}"
    yield f'    <testcase {name} time="{case.elapsed_s:.3f}"{at}>'
    if case.outcome == "skipped":
        yield f"      <skipped message={_attribute(case.reason)}/>"
    elif case.outcome:
        yield f"      <{case.outcome} type={_attribute(case.kind)} message={_attribute(case.reason)}/>"
    if case.output:
        yield f"      <system-out>{_text(case.output)}</system-out>"
    yield "    </testcase>"


def _counts(cases: Sequence[_Case]) -> str:
    tally = {outcome: sum(case.outcome == outcome for case in cases) for outcome in ("failure", "error", "skipped")}
    elapsed_s = sum(case.elapsed_s for case in cases)
    return (
        f'tests="{len(cases)}" failures="{tally["failure"]}" errors="{tally["error"]}" skipped="{tally["skipped"]}"'
        f' time="{elapsed_s:.3f}"'
    )


def _attribute(text: str) -> str:
    return quoteattr(clean(text))


def _text(text: str) -> str:
    return escape("\n".join(clean(line) for line in text.split("\n")))
