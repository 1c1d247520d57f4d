"""Output of the program ``gpu_burn`` (wilicc/gpu-burn): progress on one long line joined by returns, a table at the end.

::

    GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
    100.0%  proc'd: 6783 (16942 Gflop/s) - 4522 (16926 Gflop/s)   errors: 0 - 0   temps: 62 C - 59 C
    Tested 2 GPUs:
    <tab>GPU 0: OK
    <tab>GPU 1: FAULTY

Its exit status is 0 whatever it found, and its error counters start again at every summary and overflow: only the table is a
verdict. Without it the program died, and no card is judged.
"""

import re
from typing import NamedTuple

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.trouble import find_trouble

__all__ = ["BurnOutput", "judge", "parse"]

_TESTED = re.compile(rb"^Tested (\d{1,4}) GPUs:\s*$", re.MULTILINE)
_ROW = re.compile(rb"^\s*GPU (\d{1,4}): (OK|FAULTY)\s*$", re.MULTILINE)
_PROGRESS = re.compile(rb"([\d.]+)%\s+proc'd: (.+?)\s+errors: (.+?)\s+temps: ([^\r\n]+)")
_RATE = re.compile(rb"\((\d+) Gflop/s\)")
_COUNT = re.compile(rb"-?\d+")
_DEGREES = re.compile(rb"(-?\d+) C")
_DEAD = re.compile(rb"No clients are alive!|\(DIED!\)")
_OVERFLOWN = -1


class BurnOutput(NamedTuple):
    """What was read."""

    verdicts: dict[int, bool]
    """By card: whether the table calls it OK."""
    announced: int
    """How many cards the table says were tested."""
    gflops: list[float]
    """Of the last progress, card by card."""
    errors: list[int | None]
    """The same; None = the counter has overflowed."""
    hottest_c: list[int]
    """Highest temperature of each card in any progress."""
    died: bool
    evidence: list[Evidence]


def parse(raw: bytes, /) -> BurnOutput:
    """Read the output. Never raises."""
    table = _TESTED.search(raw)
    verdicts = {int(number): word == b"OK" for number, word in _ROW.findall(raw, table.end())} if table is not None else {}
    gflops: list[float] = []
    errors: list[int | None] = []
    hottest: list[int] = []
    for _, rates, counts, heats in _PROGRESS.findall(raw):
        gflops = [float(rate) for rate in _RATE.findall(rates)]
        errors = [None if int(count) < 0 else int(count) for count in _COUNT.findall(counts.replace(b" - ", b" "))]
        degrees = [int(value) for value in _DEGREES.findall(heats)]
        hottest = [max(pair) for pair in zip(hottest, degrees, strict=False)] if hottest else degrees
    evidence = []
    if table is not None:
        line = raw.count(b"\n", 0, table.start()) + 1
        evidence.append(Evidence("stdout", line, table[0].decode("utf-8", "replace").strip()))
    return BurnOutput(verdicts, int(table[1]) if table else 0, gflops, errors, hottest, _DEAD.search(raw) is not None, evidence)


def judge(output: BurnOutput, raw: bytes) -> Judgement:
    """What it proves."""
    details: dict[str, object] = {
        "verdicts": {str(number): "ok" if well else "faulty" for number, well in output.verdicts.items()},
        "gflops": output.gflops,
        "errors": ["overflowed" if count is None else count for count in output.errors],
        "max_temp_c": max(output.hottest_c, default=None),
    }
    if not output.evidence:
        trouble = find_trouble(raw, "stdout")
        if trouble is None and output.died:
            return not_proven(
                "gpu_burn", "no_result", "all of its processes died before the table of verdicts", "stdout", [], details
            )
        return without_result("gpu_burn", "table of verdicts", trouble, "stdout", details)
    faulty = sorted(number for number, well in output.verdicts.items() if not well)
    if faulty:
        reason = f"GPU {', '.join(map(str, faulty))}: computed wrong results"
        return failed("gpu_burn", "failed_validation", reason, "stdout", output.evidence, details)
    if len(output.verdicts) != output.announced or not output.announced:
        reason = f"{output.announced} GPUs were tested, and {len(output.verdicts)} have a verdict"
        return not_proven("gpu_burn", "incomplete", reason, "stdout", output.evidence, details)
    if not any(output.gflops):
        return not_proven("gpu_burn", "incomplete", "no GPU showed any work", "stdout", output.evidence, details)
    values: dict[str, int | float] = {"devices_reported": len(output.verdicts), "gflops_min": min(output.gflops)}
    return Judgement(
        benchmark="gpu_burn",
        correctness=Correctness.VALIDATED,
        reason=f"all {len(output.verdicts)} GPUs computed right results",
        values=values,
        source="stdout",
        evidence=output.evidence,
        details=details,
    )
