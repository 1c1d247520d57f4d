"""HPC Challenge, the summary of ``hpccoutf.txt``: ``HPL_Tflops=0.0886677`` (hpcc 1.0 to 1.5, src/hpcc.c).

One name and value a line between ``Begin of Summary section.`` and its end. HPL is told in Tflop/s, STREAM in GB/s a rank:
``Star`` is the mean of all ranks running at once, ``Single`` one rank alone. ``Success=1`` says that the checks of all tests
passed; HPL's scaled residual is worked out again from its norms.
"""

from typing import Any

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.lines import evidence, find_lines
from nodeproof.stress.parsers.numbers import number, whole
from nodeproof.stress.parsers.trouble import Trouble, find_trouble

__all__ = ["HpccOutput", "judge", "parse"]

_BEGIN = b"Begin of Summary section."
_END = b"End of Summary section."
_SUMMARY_BYTES = 256 * 1024
_RESIDUAL_LIMIT = 16.0
"""HPL's own threshold in hpcc."""
_RATES = {
    "hpl_gflops": ("HPL_Tflops", 1000.0),
    "stream_copy_mb_s": ("StarSTREAM_Copy", 1000.0),
    "stream_scale_mb_s": ("StarSTREAM_Scale", 1000.0),
    "stream_add_mb_s": ("StarSTREAM_Add", 1000.0),
    "stream_triad_mb_s": ("StarSTREAM_Triad", 1000.0),
}


class HpccOutput(msgspec.Struct):
    """The summary section."""

    entries: dict[str, str] = {}
    complete: bool = False
    summaries: int = 0
    lines: list[Evidence] = []
    trouble: Trouble | None = None
    source: str = "result_file"

    def real(self, name: str) -> float | None:
        """The number ``name``; None when it is missing or none."""
        return number(self.entries.get(name, ""))

    @property
    def residual(self) -> float | None:
        """HPL's scaled residual: ``||Ax-b|| / (eps (||A|| ||x|| + ||b||) n)``, infinity norms."""
        names = ("HPL_RnormI", "HPL_eps", "HPL_AnormI", "HPL_XnormI", "HPL_BnormI", "HPL_N")
        r_norm, eps, a_norm, x_norm, b_norm, n = (self.real(name) for name in names)
        if r_norm is None or not eps or a_norm is None or x_norm is None or not b_norm or not n:
            return None
        return r_norm / (eps * (a_norm * x_norm + b_norm) * n)


def parse(raw: bytes, /, source: str = "result_file") -> HpccOutput:
    """Read the last summary section of ``raw``; what is not there stays empty."""
    output = HpccOutput(summaries=raw.count(_BEGIN), source=source)
    begin = raw.rfind(_BEGIN)
    if begin < 0:
        output.trouble = find_trouble(raw, source)
        return output
    end = raw.find(_END, begin)
    output.complete = end >= 0
    section = raw[begin : end if end >= 0 else len(raw)][:_SUMMARY_BYTES]
    for line in section.decode("utf-8", "replace").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator:
            output.entries[name.strip()] = value.strip()
    output.lines = [evidence(line, source) for line in find_lines(raw, (b"success=",)).lines]
    return output


def judge(output: HpccOutput) -> Judgement:
    """What ``output`` proves. STREAM's values are those of one rank; the node's Triad is in the details."""
    ranks = whole(output.entries.get("CommWorldProcs", ""))
    details: dict[str, Any] = {"ranks": ranks, "hpl_residual": output.residual, "entries": output.entries}
    triad = output.real("StarSTREAM_Triad")
    details["node_stream_triad_mb_s"] = triad * 1000.0 * ranks if triad and ranks else None
    if not output.summaries:
        return without_result("hpcc", "summary section", output.trouble, output.source, details)
    success = output.entries.get("Success")
    residual = output.residual
    if success == "0" or (residual is not None and not residual < _RESIDUAL_LIMIT):
        reason = (
            "hpcc says Success=0" if success == "0" else f"HPL's scaled residual {residual:g} is not below {_RESIDUAL_LIMIT:g}"
        )
        return failed("hpcc", "failed_validation", reason, output.source, output.lines, details)
    if output.summaries > 1:
        reason = f"{output.summaries} summaries in one output, and nothing says which one counts"
        return not_proven("hpcc", "ambiguous", reason, output.source, output.lines, details)
    if success != "1" or not output.complete:
        reason = "the summary has no Success=1" if output.complete else "the output ends within the summary"
        return not_proven("hpcc", "incomplete", reason, output.source, output.lines, details)
    values: dict[str, int | float] = {}
    for key, (name, factor) in _RATES.items():
        rate = output.real(name)
        if rate:
            values[key] = rate * factor
    return Judgement(
        benchmark="hpcc",
        correctness=Correctness.VALIDATED,
        reason="hpcc's checks of all its tests passed",
        values=values,
        source=output.source,
        evidence=output.lines,
        details=details,
    )
