"""The line that ends the output of a built-in workload, for benchmarks without an official shape.

One line of input::

    nodeproof-result {"workload":"cpu_sdc","implementation":"nodeproof","passed":true,"cpus":[0,1],"rounds":12}

A workload that found something wrong says ``"passed":false`` and names it in ``failures``; one that could not have found it says
``"passed":null`` and why in ``doubt``.
"""

from typing import Any

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.trouble import Trouble, find_trouble

__all__ = ["RESULT_PREFIX", "OwnResult", "judge", "parse"]

RESULT_PREFIX = b"nodeproof-result "
_LINE_LIMIT = 1024 * 1024
_QUOTED = 300
_SHOWN = 6


class OwnResult(msgspec.Struct):
    """What was read."""

    fields: dict[str, Any] = {}
    """Empty = there is no result line, or a damaged one."""
    evidence: list[Evidence] = []
    trouble: Trouble | None = None


def parse(raw: bytes, /) -> OwnResult:
    """Read the last result line of ``raw``."""
    start = 0 if raw.startswith(RESULT_PREFIX) else -1
    start = max(start, raw.rfind(b"\n" + RESULT_PREFIX) + 1 if b"\n" + RESULT_PREFIX in raw else -1)
    if start >= 0:
        line = raw[start : start + _LINE_LIMIT].partition(b"\n")[0]
        try:
            fields = msgspec.json.decode(line[len(RESULT_PREFIX) :], type=dict[str, Any])
        except msgspec.DecodeError:
            fields = {}
        if fields:
            text = line[:_QUOTED].decode("utf-8", "replace")
            return OwnResult(fields, [Evidence("stdout", raw.count(b"\n", 0, start) + 1, text)])
    return OwnResult(trouble=find_trouble(raw, "stdout"))


def judge(benchmark: str, output: OwnResult) -> Judgement:
    """What ``output`` proves."""
    fields = output.fields
    if fields.get("workload") == benchmark and fields.get("passed", False) is None:
        doubt = str(fields.get("doubt") or "it says itself that it proved nothing")
        return not_proven(benchmark, "unchecked", doubt, "stdout", output.evidence, fields)
    if not isinstance(fields.get("passed"), bool) or fields.get("workload") != benchmark:
        return without_result(benchmark, "result line", output.trouble, "stdout", fields)
    if not fields["passed"]:
        found = fields.get("failures") or []
        listed = "; ".join(map(str, found[:_SHOWN])) if isinstance(found, list) else str(found)
        reason = f"a known answer was not met: {listed or 'the result line says no more'}"
        return failed(benchmark, "failed_validation", reason, "stdout", output.evidence, fields)
    values: dict[str, int | float] = {
        key: value for key, value in fields.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return Judgement(
        benchmark=benchmark,
        correctness=Correctness.VALIDATED,
        reason="every known answer was met",
        values=values,
        source="stdout",
        evidence=output.evidence,
        details=fields,
    )
