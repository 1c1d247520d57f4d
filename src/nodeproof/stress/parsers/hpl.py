"""HPL: ``WR00C2R4       50000   256     4     2             150.60             5.5337e+02`` (HPL 1.0 to 2.3 and its kin).

A row is a claim. It is proven by its residual line (``||Ax-b||_oo/(...)= 2.29e-03 ...... PASSED``), by the counts at the end
(as many tests passed as there are rows, none failed, none skipped) and by ``End of Tests.``; the exit status is 0 either way.
Vendors add progress lines (``Column=000000384 Fraction= 0.1% Gflops=7.818e+03``), a rate for each GPU in brackets and wider
columns. The order of the first seven columns never changes, so a row is read from the left.
"""

import math
import re
from typing import Any

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.lines import Line, evidence, find_lines, matching_lines
from nodeproof.stress.parsers.numbers import is_localised, number, printed_step, whole
from nodeproof.stress.parsers.trouble import Trouble, find_trouble

__all__ = ["HplOutput", "HplRow", "Residual", "judge", "operations", "parse"]

_ROW = re.compile(
    rb"\bW[RC]?[0-9][^\s]{0,30}[ \t]{1,64}[0-9]{1,18}[ \t]{1,64}[0-9]{1,18}[ \t]{1,64}[0-9]{1,18}[ \t]{1,64}[0-9]{1,18}[ \t]"
)
_CELLS = re.compile(r"W\S*\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)(?:\s+\(\s*([^\s)]+)\s*\))?")
_MARKERS = (
    b"passed",
    b"failed",
    b"tests skipped",
    b"without checking",
    b"tests with the following",
    b"end of tests",
    b"tests pass if scaled",
    b"test passes below",
    b"hpl error",
    b">>>",
    b"hplinpack",
)
_RESIDUAL = re.compile(r"=\s*(\S{1,40})\s+\.{3,}\s*(PASSED|FAILED)\s*$", re.IGNORECASE)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_COUNTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("tests_finished", re.compile(r"\bFinished\s+(\d{1,18})\s+tests? with the following", re.IGNORECASE)),
    ("tests_passed", re.compile(r"^\s*(\d{1,18})\s+tests? completed and passed", re.IGNORECASE)),
    ("tests_failed", re.compile(r"^\s*(\d{1,18})\s+tests? completed and failed", re.IGNORECASE)),
    ("tests_unchecked", re.compile(r"^\s*(\d{1,18})\s+tests? completed without checking", re.IGNORECASE)),
    ("tests_skipped", re.compile(r"^\s*(\d{1,18})\s+tests? skipped", re.IGNORECASE)),
)
_THRESHOLD = re.compile(r"(?:scaled residuals are less than|a test passes below)\s+(\S{1,40})", re.IGNORECASE)
_VERSION = re.compile(r"HPLinpack\s+([\w.]{1,20})", re.IGNORECASE)
_WORDS = re.compile(r">>>\s*(.{1,200}?)\s*<<<")
_PROGRESS = re.compile(r"Gflops=\s*(\S{1,40})", re.IGNORECASE)
_OWN_TROUBLE = (
    (b"memory allocation failed", "out_of_memory", "HPL could not get the memory for its matrix: use a smaller N"),
    (b"need at least", "config_error", "HPL needs as many ranks as its process grid P x Q has places"),
    (b"hpl error", "config_error", "HPL could not read its input or get what it needs"),
)
_THRESHOLD_STEP = 0.05
"""The threshold is printed with one decimal."""
_SLACK = 0.02


class Residual(msgspec.Struct, frozen=True):
    """One residual line."""

    value: float | None
    """None when what is printed is no number of any kind; may be NaN or infinite."""
    printed: str
    passed: bool


class HplRow(msgspec.Struct):
    """One test."""

    n: int
    nb: int
    p: int
    q: int
    time_seconds: float
    gflops: float
    gflops_per_gpu: float | None = None
    residuals: list[Residual] = []
    """One with HPL 2, three with HPL 1.0."""
    evidence: list[Evidence] = []


class HplOutput(msgspec.Struct):
    """All that an HPL output says. None = not said."""

    version: str | None = None
    threshold: float | None = None
    rows: list[HplRow] = []
    damage: list[str] = []
    """Rows that cannot be read or contradict themselves."""
    tests_finished: int | None = None
    tests_passed: int | None = None
    tests_failed: int | None = None
    tests_unchecked: int | None = None
    tests_skipped: int | None = None
    ended: bool = False
    failures: list[str] = []
    failure_lines: list[Evidence] = []
    summary_lines: list[Evidence] = []
    progress_first_gflops: float | None = None
    progress_last_gflops: float | None = None
    """Rates that a vendor's build prints on the way; never a result."""
    cut: bool = False
    trouble: Trouble | None = None
    source: str = "stdout"


def operations(n: int) -> float:
    """Floating point operations that HPL counts for a system of ``n`` equations: 2/3 n^3 + 3/2 n^2 (HPL_pdtest.c)."""
    return n * n * (2.0 / 3.0 * n + 1.5)


def parse(raw: bytes, /, source: str = "stdout") -> HplOutput:
    """Read every row, residual and count of ``raw``; what is not there stays empty."""
    rows, marked = matching_lines(raw, _ROW), find_lines(raw, _MARKERS)
    output = HplOutput(cut=rows.cut or marked.cut, source=source)
    output.progress_first_gflops, output.progress_last_gflops = _progress(raw)
    claims = {line.offset for line in rows.lines}
    merged = sorted(rows.lines + [line for line in marked.lines if line.offset not in claims], key=lambda line: line.offset)
    for line in merged:
        if line.offset in claims:
            _take_row(output, line)
        else:
            _take_residual(output, line)
            _take_summary(output, line)
    if not output.rows and not output.damage:
        output.trouble = _trouble(raw, source)
    return output


def judge(output: HplOutput) -> Judgement:
    """What ``output`` proves. With several tests the fastest one is the result; all must have passed."""
    details = _details(output)
    if output.failures:
        reason = "HPL's own residual check failed: " + "; ".join(output.failures[:6])
        return failed("hpl", "failed_residual", reason, output.source, output.failure_lines, details)
    if not output.rows and not output.damage:
        return without_result("hpl", "result row", output.trouble, output.source, details)
    proof = [item for row in output.rows for item in row.evidence] + output.summary_lines
    cause, reason = _doubt(output)
    if cause:
        return not_proven("hpl", cause, reason, output.source, proof, details)
    best = max(output.rows, key=lambda row: row.gflops)
    count = len(output.rows)
    values: dict[str, int | float] = {"n": best.n, "nb": best.nb, "p": best.p, "q": best.q, "process": best.p * best.q}
    values |= {"time_seconds": best.time_seconds, "gflops": best.gflops}
    return Judgement(
        benchmark="hpl",
        correctness=Correctness.VALIDATED,
        reason=f"{count} of {count} tests passed their residual check" + (", the fastest is the result" if count > 1 else ""),
        values=values,
        source=output.source,
        evidence=best.evidence + output.summary_lines,
        details=details,
    )


def _take_row(output: HplOutput, line: Line) -> None:
    """Read one row; what is glued to other text or contradicts itself is damage."""
    cells = _CELLS.match(line.text.strip())
    if not cells:
        output.damage.append(f"line {line.no}: a row mixed with other text")
        return
    n, nb, p, q = (whole(cell) for cell in cells.groups()[:4])
    seconds, gflops = number(cells[5]), number(cells[6])
    if seconds is None or gflops is None or gflops <= 0:
        cell = cells[5] if seconds is None else cells[6]
        why = "a localised number; run the program under LC_ALL=C" if is_localised(cell) else "no time or rate"
        output.damage.append(f"line {line.no}: {cell[:40]!r} is {why}")
        return
    if not (n and nb and p and q):
        output.damage.append(f"line {line.no}: N, NB, P and Q must be whole numbers above 0")
        return
    output.rows.append(HplRow(n, nb, p, q, seconds, gflops, number(cells[7] or ""), [], [evidence(line, output.source)]))
    if not _agrees(n, seconds, printed_step(cells[5]), gflops):
        output.damage.append(f"line {line.no}: N, time and rate contradict each other")


def _agrees(n: int, seconds: float, step: float, gflops: float) -> bool:
    """Whether the rate is that of ``n`` equations in a time that rounds to ``seconds``."""
    work = operations(n) / 1e9
    if gflops * (1 + _SLACK) < work / (seconds + step):
        return False
    return seconds <= step or gflops * (1 - _SLACK) <= work / (seconds - step)


def _take_residual(output: HplOutput, line: Line) -> None:
    """Read one residual line; it belongs to the row before it."""
    text = line.text.strip()
    match = _RESIDUAL.search(text)
    if match is None:
        if text.upper().endswith("FAILED"):
            output.failures.append(f"line {line.no} says FAILED")
            output.failure_lines.append(evidence(line, output.source))
        return
    value = _residual(match[1])
    passed = match[2].upper() == "PASSED"
    if output.rows:
        output.rows[-1].residuals.append(Residual(value, match[1], passed))
        output.rows[-1].evidence.append(evidence(line, output.source))
    limit = math.inf if output.threshold is None else output.threshold + _THRESHOLD_STEP
    if value is None and passed:
        output.damage.append(f"line {line.no}: {match[1]!r} is no residual")
    elif not passed or not (value is not None and value < limit):
        output.failures.append(f"residual {match[1]}, line {line.no}")
        output.failure_lines.append(evidence(line, output.source))


def _residual(text: str) -> float | None:
    """A residual; unlike other numbers it may be NaN or infinite."""
    value = number(text)
    return float(text) if value is None and _NOT_FINITE.fullmatch(text) else value


def _take_summary(output: HplOutput, line: Line) -> None:
    """Read counts, threshold and the end; counts of several runs in one output add up."""
    text = line.text
    for name, pattern in _COUNTS:
        if match := pattern.search(text):
            count = int(match[1])
            setattr(output, name, (getattr(output, name) or 0) + count)
            output.summary_lines.append(evidence(line, output.source))
            if name == "tests_failed" and count:
                output.failures.append(f"{count} tests failed")
                output.failure_lines.append(evidence(line, output.source))
            return
    if match := _THRESHOLD.search(text):
        output.threshold = number(match[1])
    elif match := _VERSION.search(text):
        output.version = match[1]
    elif text.strip().lower().startswith("end of tests"):
        output.ended = True
        output.summary_lines.append(evidence(line, output.source))


def _progress(raw: bytes) -> tuple[float | None, float | None]:
    """First and last rate that a vendor's build printed on the way."""
    folded = raw.lower()
    rates = []
    for position in (folded.find(b"fraction="), folded.rfind(b"fraction=")):
        match = _PROGRESS.search(raw[position : position + 200].decode("utf-8", "replace")) if position >= 0 else None
        rates.append(number(match[1]) if match else None)
    return rates[0], rates[1]


def _doubt(output: HplOutput) -> tuple[str, str]:
    """Cause and reason why the rows prove nothing; empty when they do."""
    count = len(output.rows)
    if output.cut or output.damage:
        return "damaged", "the output repeats itself without end" if output.cut else output.damage[0]
    unchecked = [row for row in output.rows if not row.residuals]
    if unchecked:
        row = unchecked[0]
        return "unchecked", f"{len(unchecked)} of {count} tests have no residual line (first: N {row.n}, NB {row.nb})"
    if not output.ended or output.tests_passed is None:
        return "incomplete", "the output ends before HPL's own summary and 'End of Tests'"
    if output.tests_skipped:
        return "incomplete", f"{output.tests_skipped} tests were skipped because of illegal input values"
    if output.tests_passed != count or output.tests_finished not in {None, count}:
        return "incomplete", f"HPL counts {output.tests_passed} passed tests, and {count} rows are there"
    return "", ""


def _trouble(raw: bytes, source: str) -> Trouble | None:
    """Why there is no row; HPL names the reason between arrows, two lines below its error."""
    trouble = find_trouble(raw, source, _OWN_TROUBLE)
    for line in find_lines(raw, (b">>>",)).lines:
        if trouble and (match := _WORDS.search(line.text)):
            return Trouble(trouble.cause, f"HPL says: {match[1]}", evidence(line, source))
    return trouble


def _details(output: HplOutput) -> dict[str, Any]:
    """All that was read, for the record."""
    kept: dict[str, Any] = msgspec.to_builtins(output)
    for name in ("trouble", "source", "failure_lines", "summary_lines"):
        del kept[name]
    return kept
