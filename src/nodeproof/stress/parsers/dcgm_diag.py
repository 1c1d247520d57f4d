"""``dcgmi diag -r LEVEL -j``: JSON of DCGM 3 (``GPUs`` below ``results``) and DCGM 4 (``entity_group`` and ``entity_id``).

::

    {"DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": [{"name": "targeted_stress", "results": [
      {"entity_group": "GPU", "entity_id": 0, "status": "Fail", "warnings": [{"error_id": "...", "warning": "..."}]}]}]}]}}

A test that fails for thermal violations of no length at all (DCGM issue 242) is told as a concern, with its own word kept.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.trouble import find_trouble

__all__ = ["DiagResult", "judge", "parse"]

_VIOLATION = re.compile(r"violations totaling ([\d.]+) seconds")
_QUOTED = 300
_SHOWN = 6


class DiagResult(NamedTuple):
    """One test on one device."""

    test: str
    device: str
    """``GPU 0``; the group's name where a test is of no single device."""
    status: str
    """``Pass``, ``Fail``, ``Warn``, ``Skip``, as it says."""
    text: str
    violation_s: float | None
    """Seconds of thermal violation that it complains about."""


def parse(raw: bytes, /) -> list[DiagResult] | None:
    """Every result; None when there is no such document in the output."""
    start = raw.find(b"{")
    if start < 0:
        return None
    try:
        document = msgspec.json.decode(raw[start : raw.rfind(b"}") + 1])
    except (msgspec.DecodeError, RecursionError):
        return None
    root = document.get("DCGM Diagnostic", document.get("DCGM GPU Diagnostic")) if isinstance(document, dict) else None
    if not isinstance(root, dict):
        return None
    return [result for test in _tests(root) for result in _results(test)]


def judge(results: list[DiagResult] | None, raw: bytes) -> Judgement:
    """What they prove."""
    if results is None:
        return without_result("gpu_burn", "DCGM diagnostic document", find_trouble(raw, "stdout"), "stdout", {})
    rows = [result._asdict() for result in results]
    details: dict[str, Any] = {"results": rows}
    bad = [one for one in results if one.status.lower() == "fail" and one.violation_s != 0]
    evidence = [Evidence("stdout", 1, _line(one)[:_QUOTED]) for one in results if one.status.lower() not in {"pass", "skip"}]
    if bad:
        reason = "; ".join(_line(one) for one in bad[:_SHOWN])
        return failed("gpu_burn", "failed_validation", reason, "stdout", evidence, details)
    passed = [one for one in results if one.status.lower() == "pass"]
    if not passed:
        why = "no test ran to its end" if not evidence else "; ".join(_line(one) for one in results[:_SHOWN])
        return not_proven("gpu_burn", "incomplete", why, "stdout", evidence, details)
    concerns = [_line(one) for one in results if one.status.lower() in {"warn", "fail"}]
    return Judgement(
        benchmark="gpu_burn",
        correctness=Correctness.VALIDATED,
        reason=f"{len(passed)} tests passed",
        values={"tests_passed": len(passed), "devices_reported": len({one.device for one in passed})},
        source="stdout",
        evidence=evidence,
        concerns=concerns,
        details=details,
    )


def _line(one: DiagResult) -> str:
    return f"{one.device} {one.test}: {one.status}" + (f" ({one.text})" if one.text else "")


def _tests(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for category in _list(root.get("test_categories")):
        yield from (test for test in _list(category.get("tests")) if isinstance(test.get("name"), str))


def _results(test: dict[str, Any]) -> Iterator[DiagResult]:
    for result in _list(test.get("results")):
        if "entity_group" in result:
            device = f"{result.get('entity_group')} {result.get('entity_id')}"
        elif "gpu_id" in result or "gpu_ids" in result:
            device = f"GPU {result.get('gpu_id', result.get('gpu_ids'))}"
        else:
            device = "node"
        text = "; ".join(_texts(result))[:_QUOTED]
        violation = _VIOLATION.search(text)
        yield DiagResult(test["name"], device, str(result.get("status", "")), text, float(violation[1]) if violation else None)


def _texts(result: dict[str, Any]) -> Iterator[str]:
    said = result.get("warnings")
    for one in said if isinstance(said, list) else [said]:
        text = one.get("warning", "") if isinstance(one, dict) else one
        if isinstance(text, str) and text.strip():
            yield text.strip()


def _list(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON from outside
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
