"""HPCG: ``Final Summary::HPCG result is VALID with a GFLOP/s rating of=22.1496`` (ReportResults.cpp, HPCG 2.4 to 3.1).

The result is a tree of names and values. HPCG 3.1 writes the path in front of each value with ``::`` and puts ``=`` before it;
3.0 and the builds of processor makers write YAML with two blanks a level; some print only the last line to the console. All of
them are read into one map from (section, name) to text.

A rating is proven by the word VALID together with the four checks before it (convergence, symmetry, iterations,
reproducibility), and it may not exceed what the official rules allow: a build that needs more iterations than the reference to
reach the reference's residual gets its raw rate scaled down by that. A run counts as official from 1800 s on; such a run prints
no "execution time" line, its time stands in ``Benchmark Time Summary::Total``.
"""

import re
from typing import Any

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.lines import Line, evidence, find_lines
from nodeproof.stress.parsers.numbers import is_localised, number, whole
from nodeproof.stress.parsers.trouble import Trouble, find_trouble

__all__ = ["OFFICIAL_SECONDS", "HpcgOutput", "is_result_name", "judge", "newest_result", "parse"]

OFFICIAL_SECONDS = 1800.0
"""Rated time from which a result is official, unless the output names another."""
_WINDOW_BYTES = 1024 * 1024
"""A report has some 5 KiB and is the last thing printed."""
_VERDICT = re.compile(r"HPCG result is\s*[:=]?\s*(VALID|INVALID)\b", re.IGNORECASE)
_RATING = re.compile(r"HPCG result is VALID with a GFLOP/s rating of\s*[:=]?\s*(\S{1,40})", re.IGNORECASE)
_DECORATION = re.compile(r"^[_#\s]+|[_#\s]+$")
_VERSION = re.compile(r"^(?:[\w-]{1,60} )?version\s*[:=]\s*V?([\w.]{1,20})", re.IGNORECASE | re.MULTILINE)
_RESULT_NAME = re.compile(r"(?:hpcg-benchmark.*|n\d+-\d+p-\d+t.*)\.(?:txt|yaml)", re.IGNORECASE)
_CHECKS = {
    "convergence": "spectral convergence tests",
    "symmetry": "departure from symmetry |x'ay-y'ax|/(2*||x||*||a||*||y||)/epsilon",
    "iterations": "iteration count information",
    "reproducibility": "reproducibility information",
}
_SLACK = 1e-4
"""Values are printed with six digits."""


class HpcgOutput(msgspec.Struct):
    """All that an HPCG report says. None = not said."""

    version: str | None = None
    verdict: str = ""
    """``VALID``, ``INVALID`` or empty."""
    rating_gflops: float | None = None
    rating_printed: str = ""
    ambiguous: bool = False
    """True when the text holds several verdicts that differ."""
    total_seconds: float | None = None
    """Rated time: all timed sets together."""
    official_seconds: float = OFFICIAL_SECONDS
    """What an official run must reach."""
    quick_path: bool = False
    """The run time was set to 0: official only with the confirmation of HPCG's leaders."""
    checks: dict[str, bool] = {}
    """``convergence``, ``symmetry``, ``iterations``, ``reproducibility`` -> passed; only what the report holds."""
    raw_gflops: float | None = None
    converged_gflops: float | None = None
    """Rate with convergence overhead."""
    reference_iterations: int | None = None
    optimized_iterations: int | None = None
    processes: int | None = None
    threads: int | None = None
    nx: int | None = None
    ny: int | None = None
    nz: int | None = None
    """Local grid: that of one process."""
    memory_bytes: float | None = None
    lines: list[Evidence] = []
    failure_lines: list[Evidence] = []
    trouble: Trouble | None = None
    source: str = "result_file"

    @property
    def official(self) -> bool | None:
        """Whether the rated time makes the result an official one; None when no time is there."""
        if self.total_seconds is None:
            return None
        return self.total_seconds >= self.official_seconds


def is_result_name(name: str) -> bool:
    """True for a name that builds of HPCG give their report: ``HPCG-Benchmark_3.1_DATE.txt``, ``n104-8p-1t-V3.0_DATE.yaml``."""
    return _RESULT_NAME.fullmatch(name) is not None


def newest_result(before: dict[str, tuple[int, int, str]], after: dict[str, tuple[int, int, str]]) -> str | None:
    """Name of the report that this run left; None when none is new.

    Both maps hold, for each file of the directory, (size, modification time in ns, SHA-256). A report of last week is no
    result of today: only what is new or changed counts, of several the newest.
    """
    changed = [name for name, seen in after.items() if is_result_name(name) and before.get(name) != seen]
    return max(changed, key=lambda name: (after[name][1], name), default=None)


def parse(raw: bytes, /, source: str = "result_file") -> HpcgOutput:
    """Read the report in ``raw``; what is not there stays empty."""
    tail = raw[-_WINDOW_BYTES:]
    output = HpcgOutput(source=source)
    tree = _tree(tail.decode("utf-8", "replace"))
    _take_verdict(output, find_lines(raw, (b"hpcg result is",)).lines)
    _take_settings(output, tree)
    _take_checks(output, tree, find_lines(tail, (b"failed",)).lines)
    match = _VERSION.search(tail.decode("utf-8", "replace"))
    output.version = match[1] if match else None
    if not output.verdict:
        output.trouble = find_trouble(raw, source)
    return output


def judge(output: HpcgOutput) -> Judgement:
    """What ``output`` proves."""
    details = _details(output)
    broken = [name for name, passed in output.checks.items() if not passed]
    if output.verdict == "INVALID" or broken:
        reason = "HPCG calls its result invalid" if output.verdict == "INVALID" else "HPCG's own check failed"
        reason += f": {', '.join(broken)}" if broken else ""
        return failed("hpcg", "failed_validation", reason, output.source, output.failure_lines or output.lines, details)
    if not output.verdict:
        return without_result("hpcg", "line with HPCG's verdict and rating", output.trouble, output.source, details)
    cause, reason = _doubt(output)
    if cause or output.rating_gflops is None:
        return not_proven("hpcg", cause, reason, output.source, output.lines, details)
    values: dict[str, int | float] = {"gflops": output.rating_gflops}
    if output.total_seconds is not None:
        values["time_seconds"] = output.total_seconds
    return Judgement(
        benchmark="hpcg",
        correctness=Correctness.VALIDATED,
        reason=f"HPCG calls its result valid; {_standing(output)}",
        values=values,
        source=output.source,
        evidence=output.lines,
        details=details,
    )


def _tree(text: str) -> dict[tuple[str, str], str]:
    """(section, name) -> value of every line that has one; the first of equal names counts. Names are folded to lower case."""
    tree: dict[tuple[str, str], str] = {}
    section = ""
    for raw_line in text.replace("\r", "\n").split("\n"):
        line = raw_line[:1000]
        path = [part.strip() for part in line.split("::")]
        name, value = _split(path[-1])
        if not name:
            continue
        if len(path) > 1:
            tree.setdefault((path[0].lower(), name), value)
        elif value:
            tree.setdefault((section if line[0].isspace() else "", name), value)
        elif not line[0].isspace():
            section = name
    return tree


def _split(text: str) -> tuple[str, str]:
    """Name and value around the first ``=``, or the first colon before a blank or the end; no name when there is none."""
    cut = text.find("=")
    colon = text.find(": ")
    if colon < 0 and text.endswith(":"):
        colon = len(text) - 1
    places = [place for place in (cut, colon) if place >= 0]
    if not places:
        return "", ""
    return _DECORATION.sub("", text[: min(places)]).lower(), text[min(places) + 1 :].strip()


def _take_verdict(output: HpcgOutput, lines: list[Line]) -> None:
    """Read the line that the whole report is for; of several the last."""
    for line in lines:
        verdict, rating = _VERDICT.search(line.text), _RATING.search(line.text)
        if not verdict:
            continue
        printed = rating[1] if rating else ""
        before = (output.verdict, output.rating_gflops)
        output.verdict, output.rating_printed, output.rating_gflops = verdict[1].upper(), printed, number(printed)
        output.ambiguous |= bool(before[0]) and not _same(before, (output.verdict, output.rating_gflops))
        output.lines.append(evidence(line, output.source))


def _same(one: tuple[str, float | None], other: tuple[str, float | None]) -> bool:
    """Whether two verdicts are one that was printed twice, with more digits or with fewer."""
    if one[0] != other[0] or one[1] is None or other[1] is None:
        return one == other
    return abs(one[1] - other[1]) <= _SLACK * one[1]


def _take_settings(output: HpcgOutput, tree: dict[tuple[str, str], str]) -> None:
    """Read problem, time and rates."""

    def real(section: str, name: str) -> float | None:
        return number(tree.get((section, name), ""))

    def count(section: str, name: str) -> int | None:
        return whole(tree.get((section, name), ""))

    final = "final summary"
    output.total_seconds = real(final, "results are valid but execution time (sec) is")
    if output.total_seconds is None:
        output.total_seconds = real("benchmark time summary", "total")
    output.official_seconds = real(final, "official results execution time (sec) must be at least") or OFFICIAL_SECONDS
    output.quick_path = (final, "you have selected the quickpath option") in tree
    output.raw_gflops = real("gflop/s summary", "raw total")
    output.converged_gflops = real("gflop/s summary", "total with convergence overhead")
    iterations = _CHECKS["iterations"]
    output.reference_iterations = count(iterations, "total number of reference iterations")
    output.optimized_iterations = count(iterations, "total number of optimized iterations")
    output.processes = count("machine summary", "distributed processes")
    output.threads = count("machine summary", "threads per processes")
    output.nx, output.ny, output.nz = (count("local domain dimensions", axis) for axis in ("nx", "ny", "nz"))
    gigabytes = real("memory use information", "total memory used for data (gbytes)")
    output.memory_bytes = None if gigabytes is None else gigabytes * 1e9


def _take_checks(output: HpcgOutput, tree: dict[tuple[str, str], str], lines: list[Line]) -> None:
    """Read the four checks; what is neither PASSED nor FAILED has not passed."""
    for name, section in _CHECKS.items():
        result = tree.get((section, "result"))
        if result is not None:
            output.checks[name] = result.upper() == "PASSED"
    output.failure_lines = [evidence(line, output.source) for line in lines if line.text.strip().upper().endswith("FAILED")]


def _doubt(output: HpcgOutput) -> tuple[str, str]:
    """Cause and reason why the word VALID proves nothing; empty when it does."""
    rating = output.rating_gflops
    if output.ambiguous:
        return "ambiguous", f"{len(output.lines)} results in one output, and nothing says which one counts"
    if 0 < len(output.checks) < len(_CHECKS):
        return "incomplete", f"the report lacks the check of {', '.join(name for name in _CHECKS if name not in output.checks)}"
    if not rating:
        why = "a localised number; run the program under LC_ALL=C" if is_localised(output.rating_printed) else "no rating"
        return "damaged", f"{output.rating_printed!r} is {why}"
    allowed = _allowed(output)
    if allowed is not None and rating > allowed * (1 + _SLACK):
        return "rule_violation", (
            f"rated {rating:g} GFLOP/s, and {output.raw_gflops:g} raw with {output.optimized_iterations} iterations where the "
            f"reference needs {output.reference_iterations} allow {allowed:g}"
        )
    return "", ""


def _allowed(output: HpcgOutput) -> float | None:
    """The highest rating that the official rules allow: the raw rate, scaled by reference over own iterations."""
    if output.raw_gflops is None or not output.reference_iterations or not output.optimized_iterations:
        return output.raw_gflops
    return output.raw_gflops * output.reference_iterations / output.optimized_iterations


def _standing(output: HpcgOutput) -> str:
    """How the run stands to the official rules, in words."""
    if output.total_seconds is None:
        return "how long it ran is not said, so it is not an official result"
    if output.official:
        return f"rated over {output.total_seconds:g} s, long enough for an official result"
    return f"rated over {output.total_seconds:g} s, an official result needs {output.official_seconds:g} s"


def _details(output: HpcgOutput) -> dict[str, Any]:
    """All that was read, for the record."""
    kept: dict[str, Any] = msgspec.to_builtins(output)
    for name in ("trouble", "source", "lines", "failure_lines"):
        del kept[name]
    kept["official"] = output.official
    return kept
