"""STREAM: ``Triad:         105256.0     0.027448     0.027362     0.027785`` (stream.c 5.9 and 5.10, stream.f, and their kin).

The rates stand before the program has looked at its arrays, and its exit status is 0 whatever it finds there: a table is worth
nothing without the ``Solution Validates`` line that follows it. Rates are decimal megabytes a second unless the header says
otherwise. A text with several tables is several runs; which of them counts is for the caller to say.
"""

import re
from typing import Any, Literal

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven, without_result
from nodeproof.stress.parsers.lines import Line, evidence, find_lines
from nodeproof.stress.parsers.numbers import is_localised, number, printed_step
from nodeproof.stress.parsers.trouble import Trouble, find_trouble

__all__ = ["CACHE_FACTOR", "KERNELS", "StreamOutput", "StreamTable", "TablePolicy", "judge", "parse"]

KERNELS = ("copy", "scale", "add", "triad")
CACHE_FACTOR = 4
"""Each array must be at least this many times all last-level caches together (STREAM's run rules)."""
TablePolicy = Literal["single", "first", "last", "best"]
"""Which table counts when there are several; ``single`` = then none does. ``best`` goes by Triad."""

_ARRAYS_MOVED = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
_MARKERS = (
    b"function",
    b"copy:",
    b"scale:",
    b"add:",
    b"triad:",
    b"solution validates",
    b"failed validation",
    b"errors were found",
    b"rel errors",
    b"array size",
    b"bytes per",
    b"number of threads",
    b"will be executed",
    b"each test is run",
    b"clock ticks",
    b"stream version",
)
_UNIT = re.compile(r"\b([KMGT]i?)B(?:ytes)?/s", re.IGNORECASE)
_MB_S = {"k": 1e-3, "m": 1.0, "g": 1e3, "t": 1e6, "ki": 1.024e-3, "mi": 1.048576, "gi": 1073.741824, "ti": 1099511.627776}
_ROW = re.compile(r"\s*(copy|scale|add|triad)\s*:\s*(\S{1,40})(?:\s+(\S{1,40})\s+(\S{1,40})\s+(\S{1,40}))?", re.IGNORECASE)
_FAILED_ARRAY = re.compile(r"failed validation on array ([a-z])", re.IGNORECASE)
_ERRORS = re.compile(r"for array ([a-z])\S*, (\d{1,18}) errors were found", re.IGNORECASE)
_NOT_FINITE = re.compile(r"\b(?:nan|inf)\b", re.IGNORECASE)
_SLACK = 0.002
"""Rates and times are rounded; this much more than their last digits may differ."""
_TICKS = 20


class StreamTable(msgspec.Struct):
    """The four rates of one run and what the program said of its arrays afterwards."""

    unit: str = ""
    """As printed (``MB/s``); empty when no header said it."""
    rates_mb_s: dict[str, float] = {}
    """Kernel -> decimal MB/s, converted from ``unit``; as printed where no unit is known."""
    elements: int | None = None
    element_bytes: int | None = None
    validated: bool = False
    damage: list[str] = []
    """Rows that cannot be read or contradict themselves."""
    evidence: list[Evidence] = []


class StreamOutput(msgspec.Struct):
    """All that a STREAM output says. None = not said."""

    version: str | None = None
    elements: int | None = None
    element_bytes: int | None = None
    ntimes: int | None = None
    threads_requested: int | None = None
    threads_counted: int | None = None
    clock_ticks: int | None = None
    """What one test takes, in ticks of the timer."""
    tables: list[StreamTable] = []
    failures: list[str] = []
    """Failed validations of all tables, and those that belong to none: ``array a[], 1 errors``."""
    failure_lines: list[Evidence] = []
    cut: bool = False
    trouble: Trouble | None = None
    source: str = "stdout"

    @property
    def array_bytes(self) -> int | None:
        """Size of one array; there are three."""
        return self.elements * self.element_bytes if self.elements and self.element_bytes else None


_SETTINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("version", re.compile(r"STREAM version \$?(?:Revision: )?([\w.]{1,20})", re.IGNORECASE)),
    ("elements", re.compile(r"Array size\s*=\s*(\d{1,18})\b", re.IGNORECASE)),
    ("element_bytes", re.compile(r"uses\s+(\d{1,4})\s+bytes per", re.IGNORECASE)),
    ("ntimes", re.compile(r"(?:will be executed|is run)\s+(\d{1,18})\s+times", re.IGNORECASE)),
    ("threads_requested", re.compile(r"Number of Threads requested\s*=\s*(\d{1,18})\b", re.IGNORECASE)),
    ("threads_counted", re.compile(r"Number of Threads counted\s*=\s*(\d{1,18})\b", re.IGNORECASE)),
    ("clock_ticks", re.compile(r"=\s*(\d{1,18})\s+clock ticks", re.IGNORECASE)),
)


def parse(raw: bytes, /, source: str = "stdout") -> StreamOutput:
    """Read every table and setting of ``raw``; what is not there stays empty."""
    found = find_lines(raw, _MARKERS)
    output = StreamOutput(cut=found.cut, source=source)
    unit = ""
    for line in found.lines:
        text = line.text
        if text.strip().lower().startswith("function"):
            match = _UNIT.search(text)
            unit = match[0] if match else ""
            output.tables.append(StreamTable(unit=unit, elements=output.elements, element_bytes=output.element_bytes))
        elif row := _ROW.match(text):
            _take_row(output, unit, row, line)
        elif not _take_setting(output, text):
            _take_verdict(output, line)
    output.tables = [table for table in output.tables if table.rates_mb_s or table.damage]
    if not output.tables:
        output.trouble = find_trouble(raw, source)
    return output


def judge(output: StreamOutput, *, llc_bytes: int | None = None, policy: TablePolicy = "single") -> Judgement:
    """What ``output`` proves. ``llc_bytes`` is the size of all last-level caches that the run could use, None = unknown."""
    details = _details(output)
    proof = [item for table in output.tables for item in table.evidence]
    if output.failures:
        reason = "STREAM's own check of its arrays failed: " + "; ".join(output.failures[:6])
        return failed("stream", "failed_validation", reason, output.source, output.failure_lines, details)
    if not output.tables:
        return without_result("stream", "table of rates", output.trouble, output.source, details)
    cause, reason = _doubt(output, policy)
    if cause:
        return not_proven("stream", cause, reason, output.source, proof, details)
    table = _chosen(output, policy)
    return Judgement(
        benchmark="stream",
        correctness=Correctness.VALIDATED,
        reason="all three arrays validate" + (f"; {policy} of {len(output.tables)} runs" if len(output.tables) > 1 else ""),
        values={f"{kernel}_mb_s": table.rates_mb_s[kernel] for kernel in KERNELS},
        source=output.source,
        evidence=table.evidence,
        concerns=_concerns(output, table, llc_bytes),
        details=details,
    )


def _take_setting(output: StreamOutput, text: str) -> bool:
    """Note what a header line says."""
    for name, pattern in _SETTINGS:
        if match := pattern.search(text):
            setattr(output, name, match[1] if name == "version" else int(match[1]))
            return True
    return False


def _take_row(output: StreamOutput, unit: str, row: re.Match[str], line: Line) -> None:
    """Put one kernel into its table; a kernel that is there already begins another."""
    kernel = row[1].lower()
    if not output.tables or kernel in output.tables[-1].rates_mb_s:
        output.tables.append(StreamTable(unit=unit, elements=output.elements, element_bytes=output.element_bytes))
    table = output.tables[-1]
    table.evidence.append(evidence(line, output.source))
    rate = number(row[2])
    if rate is None or rate <= 0:
        why = "a localised number; run the program under LC_ALL=C" if is_localised(row[2]) else "no rate"
        table.damage.append(f"{kernel}: {row[2]!r} is {why}")
        return
    match = _UNIT.fullmatch(unit)
    table.rates_mb_s[kernel] = rate * (_MB_S[match[1].lower()] if match else 1.0)
    if match and row[4] and not _agrees(table, kernel, row[4]):
        table.damage.append(f"{kernel}: rate {row[2]} and best time {row[4]} contradict each other")


def _agrees(table: StreamTable, kernel: str, best_time: str) -> bool:
    """Whether rate, array size and best time fit together; true where one of them is not known."""
    seconds = number(best_time)
    if seconds is None or not table.elements or not table.element_bytes:
        return True
    megabytes = _ARRAYS_MOVED[kernel] * table.elements * table.element_bytes / 1e6
    step = printed_step(best_time)
    rate = table.rates_mb_s[kernel]
    if rate * (1 + _SLACK) < megabytes / (seconds + step):
        return False
    return seconds <= step or rate * (1 - _SLACK) <= megabytes / (seconds - step)


def _take_verdict(output: StreamOutput, line: Line) -> None:
    """Note what the program says of its arrays."""
    text = line.text.strip()
    folded = text.lower()
    array, count = _FAILED_ARRAY.search(text), _ERRORS.search(text)
    if count:
        output.failures[-1:] = [f"array {count[1].lower()}[], {int(count[2])} errors"]
    elif folded.startswith("failed validation"):
        output.failures.append(f"array {array[1].lower()}[]" if array else "array not named")
    elif folded.startswith("rel errors") and _NOT_FINITE.search(text):
        output.failures.append("errors that are no numbers")
    elif folded.startswith("solution validates") and output.tables:
        output.tables[-1].validated = True
        output.tables[-1].evidence.append(evidence(line, output.source))
        return
    else:
        return
    output.failure_lines.append(evidence(line, output.source))


def _doubt(output: StreamOutput, policy: TablePolicy) -> tuple[str, str]:
    """Cause and reason why the tables prove nothing; empty when they do."""
    if output.cut:
        return "damaged", "the output repeats itself without end"
    if len(output.tables) > 1 and policy == "single":
        rates = ", ".join(f"{table.rates_mb_s.get('triad', 0):.1f}" for table in output.tables[:6])
        return "ambiguous", f"{len(output.tables)} runs in one output (Triad {rates} MB/s), and nothing says which one counts"
    doubts = (_doubt_of(table) for table in output.tables)
    return next((doubt for doubt in doubts if doubt[0]), ("", ""))


def _doubt_of(table: StreamTable) -> tuple[str, str]:
    """The same for one table."""
    missing = [kernel for kernel in KERNELS if kernel not in table.rates_mb_s]
    if table.damage:
        return "damaged", table.damage[0]
    if missing:
        return "incomplete", f"no rate for {', '.join(missing)}"
    if not table.validated:
        return "unchecked", "the rates are there, the line that says the solution validates is not"
    if not table.unit:
        return "unit_unknown", "no header says in which unit the rates are"
    return "", ""


def _chosen(output: StreamOutput, policy: TablePolicy) -> StreamTable:
    """The table that counts."""
    if policy == "best":
        return max(output.tables, key=lambda table: table.rates_mb_s["triad"])
    return output.tables[0 if policy == "first" else -1]


def _concerns(output: StreamOutput, table: StreamTable, llc_bytes: int | None) -> list[str]:
    """Run rules that were broken."""
    concerns = []
    size = table.elements * table.element_bytes if table.elements and table.element_bytes else None
    if size is not None and llc_bytes and size < CACHE_FACTOR * llc_bytes:
        mib = 1024 * 1024
        concerns.append(
            f"each array has {size / mib:.1f} MiB (total {3 * size / mib:.1f} MiB), less than {CACHE_FACTOR} x "
            f"{llc_bytes / mib:.1f} MiB of last-level cache: the rates are partly those of the cache"
        )
    asked, counted = output.threads_requested, output.threads_counted
    if asked is not None and counted is not None and asked != counted:
        concerns.append(f"{asked} threads were requested and {counted} ran")
    if output.clock_ticks is not None and output.clock_ticks < _TICKS:
        concerns.append(f"a test takes {output.clock_ticks} ticks of the timer, less than {_TICKS}: use larger arrays")
    return concerns


def _details(output: StreamOutput) -> dict[str, Any]:
    """All that was read, for the record."""
    kept: dict[str, Any] = msgspec.to_builtins(output)
    for name in ("trouble", "source", "failure_lines"):
        del kept[name]
    kept["array_bytes"] = output.array_bytes
    return kept
