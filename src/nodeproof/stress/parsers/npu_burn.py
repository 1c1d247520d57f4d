"""Ascend NPU Burn: its results CSV, its errors CSV, its console table and the summary line of the reference's dispatcher.

::

    quant_matmul,0,0,100,1,12.5,0,PASS,"m=4096, n=4096"
    | 2      | FAIL       | quant_matmul (1/1)                                                               |
    CATMONITOR_NPU_BURN_SUMMARY devices=2 cases=2 passed=2 failed=0 errors=0 case_time_seconds=26.000000

The exit status is 0 whatever happens, and a device whose worker died has no row in the CSV: only the console table shows it.
A pass needs every requested device times every case, each PASS with no error. Processes append to the CSV at the same time, so
headers may stand between rows.
"""

import csv
import re
from typing import Any

import msgspec

from nodeproof.model.job import Correctness, Evidence
from nodeproof.stress.parsers.judgement import Judgement, failed, not_proven
from nodeproof.stress.parsers.lines import LINE_LIMIT, Line, evidence, find_lines
from nodeproof.stress.parsers.numbers import number, whole
from nodeproof.stress.parsers.trouble import Trouble, find_trouble

__all__ = ["NpuBurnOutput", "NpuCase", "NpuSummary", "judge", "parse", "parse_summary"]

_COLUMNS = ("task", "device_id", "case_idx", "run_count", "stream_count", "exetime", "err_count", "result")
_TOKEN = b"CATMONITOR_NPU_BURN_SUMMARY"
_SUMMARY = re.compile(
    rb"CATMONITOR_NPU_BURN_SUMMARY devices=(\S{1,40}) cases=(\S{1,40}) passed=(\S{1,40}) failed=(\S{1,40}) errors=(\S{1,40})"
    rb" case_time_seconds=(\S{1,40})"
)
_TABLE_ROW = re.compile(r"\|\s*(\d{1,9})\s*\|\s*(PASS|FAIL)\s*\|\s*(.{0,200}?)\s*\|")
_CSV_BYTES = 4 * 1024 * 1024
_TROUBLE = (
    (b"cannot open shared object file", "missing_library", "a library of CANN is not found: source its set_env.sh"),
    (b"modulenotfounderror", "missing_library", "a Python module of NPU Burn is not installed for the Python that ran it"),
)


class NpuCase(msgspec.Struct, frozen=True):
    """One row of the results CSV."""

    task: str
    device: int
    case: int
    seconds: float
    errors: int
    passed: bool


class NpuSummary(msgspec.Struct, frozen=True):
    """Counts over all cases."""

    devices: int
    cases: int
    passed: int
    failed: int
    errors: int
    case_time_seconds: float

    @property
    def is_pass(self) -> bool:
        """Every case passed, and no error was counted."""
        return self.passed == self.cases and self.failed == 0 and self.errors == 0


class NpuBurnOutput(msgspec.Struct):
    """All that a run left."""

    cases: list[NpuCase] = []
    damage: list[str] = []
    console: dict[int, bool] = {}
    """Device -> passed, from the table at the end of the console."""
    error_rows: int = 0
    summary: NpuSummary | None = None
    """From the dispatcher's line, or counted over ``cases``."""
    summary_fault: str = ""
    has_csv: bool = False
    lines: list[Evidence] = []
    failure_lines: list[Evidence] = []
    trouble: Trouble | None = None


def parse(console: bytes, results_csv: bytes | None = None, errors_csv: bytes | None = None) -> NpuBurnOutput:
    """Read all that there is; ``None`` = no such file of this run. Without the CSV the dispatcher's summary line is read."""
    output = NpuBurnOutput(has_csv=results_csv is not None)
    for line in find_lines(console, (b"pass", b"fail")).lines:
        if match := _TABLE_ROW.search(line.text):
            device, passed = int(match[1]), match[2] == "PASS"
            output.console[device] = output.console.get(device, True) and passed
            (output.lines if passed else output.failure_lines).append(evidence(line, "stdout"))
    if results_csv is None:
        output.summary, output.summary_fault = parse_summary(console)
        output.lines += [evidence(line, "stdout") for line in find_lines(console, (_TOKEN.lower(),)).lines[-1:]]
    else:
        _read_results(output, results_csv)
        output.summary = _count(output.cases)
    if errors_csv is not None:
        _read_errors(output, errors_csv)
    if output.summary is None and not output.console:
        output.trouble = find_trouble(console, "stdout", _TROUBLE)
    return output


def parse_summary(console: bytes) -> tuple[NpuSummary | None, str]:
    """The last summary line, wherever it stands in its line, and what is wrong with it when it cannot be used."""
    position = console.rfind(_TOKEN)
    if position < 0:
        return None, "the output has no summary of NPU Burn"
    match = _SUMMARY.match(console, position)
    if match is None:
        return None, "the summary of NPU Burn is malformed"
    cells = [cell.decode("ascii", "replace") for cell in match.groups()]
    devices, cases, passed, failures, errors = (whole(cell) for cell in cells[:5])
    seconds = number(cells[5])
    if devices is None or cases is None or passed is None or failures is None or errors is None or seconds is None:
        return None, "the summary of NPU Burn holds something that is no count or time"
    if not devices or not cases:
        return None, f"the summary of NPU Burn counts {devices} devices and {cases} cases"
    if passed + failures != cases:
        return None, f"the summary of NPU Burn counts {passed} passed and {failures} failed of {cases} cases"
    return NpuSummary(devices, cases, passed, failures, errors, seconds), ""


def judge(output: NpuBurnOutput, requested: frozenset[int] | None = None) -> Judgement:
    """What ``output`` proves. ``requested`` are the logical devices asked for; None = not known, then the console's count."""
    source = "result_csv"
    details = _details(output, requested)
    summary = output.summary
    values: dict[str, int | float] = msgspec.to_builtins(summary) if summary else {}
    verdict = _failure(output)
    if verdict:
        found = failed("npu_burn", "failed_validation", verdict, source, output.failure_lines + output.lines, details)
        return msgspec.structs.replace(found, values=values)
    cause, reason = _doubt(output, requested)
    if cause:
        doubt = not_proven("npu_burn", cause, reason, source, output.lines, details)
        if output.trouble:
            doubt = msgspec.structs.replace(doubt, cause=output.trouble.cause, reason=output.trouble.reason)
            doubt = msgspec.structs.replace(doubt, evidence=[output.trouble.evidence])
        return msgspec.structs.replace(doubt, values=values, crashed=cause == "device_missing" or output.trouble is not None)
    concerns = [] if requested else ["which devices were asked for is not known, so nothing says that all of them were tested"]
    return Judgement(
        benchmark="npu_burn",
        correctness=Correctness.VALIDATED,
        reason=f"{values['passed']} of {values['cases']} cases on {values['devices']} devices passed without an error",
        values=values,
        source=source,
        evidence=output.lines[:20],
        concerns=concerns,
        details=details,
    )


def _read_results(output: NpuBurnOutput, raw: bytes) -> None:
    """Read the results CSV; a row that cannot be read costs the pass, not its neighbours."""
    text = raw[:_CSV_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
    if len(raw) > _CSV_BYTES:
        output.damage.append(f"the results have more than {_CSV_BYTES} bytes")
    for no, cells in _rows(text, output.damage):
        if tuple(cells[:8]) == _COLUMNS:
            continue
        case = _case(cells)
        if case is None:
            output.damage.append(f"line {no} of the results is no row of {len(_COLUMNS)} columns")
            continue
        output.cases.append(case)
        if not case.passed or case.errors:
            output.failure_lines.append(evidence(Line(no, 0, ",".join(cells)), "result_csv"))


def _rows(text: str, damage: list[str]) -> list[tuple[int, list[str]]]:
    """(line, cells) of each row that is not empty; quoted cells may hold commas."""
    rows: list[tuple[int, list[str]]] = []
    for no, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if len(rows) == LINE_LIMIT * 20:
            damage.append(f"more than {len(rows)} rows")
            break
        try:
            rows.append((no, [cell.strip() for cell in next(csv.reader([line.rstrip("\r")]))]))
        except (csv.Error, StopIteration):
            rows.append((no, []))
    return rows


def _case(cells: list[str]) -> NpuCase | None:
    """One row; None when it is not one."""
    if len(cells) < len(_COLUMNS):
        return None
    device, index, seconds, errors = whole(cells[1]), whole(cells[2]), number(cells[5]), whole(cells[6])
    if device is None or index is None or seconds is None or errors is None or cells[7] not in {"PASS", "FAIL"}:
        return None
    return NpuCase(cells[0], device, index, seconds, errors, cells[7] == "PASS")


def _read_errors(output: NpuBurnOutput, raw: bytes) -> None:
    """Count the rows of the errors CSV; the program removes the file when there are none."""
    for no, line in enumerate(raw[:_CSV_BYTES].decode("utf-8", "replace").split("\n"), 1):
        if line.strip() and not line.startswith("task,device_id,"):
            output.error_rows += 1
            if len(output.failure_lines) < LINE_LIMIT:
                output.failure_lines.append(evidence(Line(no, 0, line), "error_csv"))


def _count(cases: list[NpuCase]) -> NpuSummary | None:
    """The counts over all rows; None when there are no rows."""
    if not cases:
        return None
    passed = sum(1 for case in cases if case.passed and not case.errors)
    errors = sum(case.errors for case in cases)
    seconds = sum(case.seconds for case in cases)
    return NpuSummary(len({case.device for case in cases}), len(cases), passed, len(cases) - passed, errors, seconds)


def _failure(output: NpuBurnOutput) -> str:
    """What failed; empty when nothing did."""
    said = []
    if output.summary and not output.summary.is_pass:
        summary = output.summary
        said.append(f"{summary.failed} of {summary.cases} cases failed, {summary.errors} errors")
    broken = [str(device) for device, passed in sorted(output.console.items()) if not passed]
    if broken:
        said.append(f"the console table says FAIL for device {', '.join(broken)}")
    if output.error_rows:
        said.append(f"{output.error_rows} silent data corruption records")
    return "; ".join(said)


def _doubt(output: NpuBurnOutput, requested: frozenset[int] | None) -> tuple[str, str]:
    """Cause and reason why the counts prove nothing; empty when they do."""
    if output.damage:
        return "damaged", output.damage[0]
    if output.summary is None:
        return "no_result", output.summary_fault or "the results hold no row"
    missing = _missing(output, requested)
    if missing:
        return "device_missing", missing
    return "", ""


def _missing(output: NpuBurnOutput, requested: frozenset[int] | None) -> str:
    """Which device or case has no result; empty when none is known to lack one."""
    expected = requested or frozenset(output.console)
    if not output.has_csv:
        tested = output.summary.devices if output.summary else 0
        return f"{len(expected)} devices were requested and {tested} tested" if expected and len(expected) != tested else ""
    seen: dict[int, set[tuple[str, int]]] = {}
    for case in output.cases:
        seen.setdefault(case.device, set()).add((case.task, case.case))
    strangers = sorted(set(seen) - expected) if requested else []
    if strangers:
        return f"device {strangers[0]} has rows and was not requested"
    cases = set().union(*seen.values())
    for device in sorted(expected):
        lacking = sorted(cases - seen.get(device, set()))
        if device not in seen:
            return f"device {device} was requested and has no rows: its worker died"
        if lacking:
            return f"device {device} lacks case {lacking[0][1]} of {lacking[0][0]}"
    return ""


def _details(output: NpuBurnOutput, requested: frozenset[int] | None) -> dict[str, Any]:
    """All that was read, for the record."""
    kept: dict[str, Any] = msgspec.to_builtins(output, str_keys=True)
    for name in ("trouble", "lines", "failure_lines"):
        del kept[name]
    kept["requested"] = sorted(requested) if requested else None
    return kept
