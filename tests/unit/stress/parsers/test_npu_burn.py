"""Ascend NPU Burn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Correctness
from nodeproof.stress.parsers.npu_burn import NpuSummary, judge, parse, parse_summary
from support.benchmark_outputs import recorded

_HEADER = b"task,device_id,case_idx,run_count,stream_count,exetime,err_count,result,case_config\n"
_CSV = (
    _HEADER + b'quant_matmul,0,0,100,1,12.5,0,PASS,"m=4096, n=4096"\n' + b'quant_matmul,1,0,100,1,13.5,0,PASS,"m=4096, n=4096"\n'
)
_VALUES = {"devices": 2, "cases": 2, "passed": 2, "failed": 0, "errors": 0, "case_time_seconds": 26.0}
_LINE = b"CATMONITOR_NPU_BURN_SUMMARY devices=2 cases=2 passed=2 failed=0 errors=0 case_time_seconds=26.000000"
_BOTH = frozenset({0, 1})


def _table(*rows: str) -> bytes:
    head = "| NPU    | Status     | Fail tasks                                                                       |\n"
    return (head + "".join(rows)).encode()


def _row(device: int, status: str, tasks: str = "-") -> str:
    return f"| {device:<6} | {status:<10} | {tasks:<80} |\n"


def test_every_requested_device_passed_every_case() -> None:
    judgement = judge(parse(_table(_row(0, "PASS"), _row(1, "PASS")), _CSV), _BOTH)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == _VALUES
    assert judgement.source == "result_csv"
    assert judgement.concerns == []
    assert judgement.reason == "2 of 2 cases on 2 devices passed without an error"


def test_case_35_f5_a_requested_device_without_rows_is_no_pass() -> None:
    judgement = judge(parse(b"", recorded("35")), _BOTH)
    assert (judgement.correctness, judgement.cause, judgement.crashed) == (Correctness.NOT_PROVEN, "device_missing", True)
    assert judgement.reason == "device 1 was requested and has no rows: its worker died"
    assert judgement.values["cases"] == 2


def test_f4_a_device_that_fails_in_the_padded_console_table_fails_a_clean_csv() -> None:
    console = _table(_row(0, "PASS"), _row(2, "FAIL", "quant_matmul (1/1)"))
    judgement = judge(parse(console, _CSV), _BOTH)
    assert (judgement.correctness, judgement.cause) == (Correctness.FAILED, "failed_validation")
    assert judgement.reason == "the console table says FAIL for device 2"
    assert judgement.evidence[0].line_no == 3
    assert judgement.values == _VALUES


def test_the_devices_of_the_console_are_expected_when_nobody_says_which_were_requested() -> None:
    judgement = judge(parse(_table(_row(0, "PASS"), _row(1, "PASS"), _row(2, "PASS")), _CSV))
    assert judgement.reason == "device 2 was requested and has no rows: its worker died"
    unknown = judge(parse(b"", _CSV))
    assert unknown.correctness is Correctness.VALIDATED
    assert not unknown.is_comparable


def test_a_device_that_lacks_a_case_and_one_that_nobody_requested() -> None:
    more = _CSV + b'quant_matmul,1,1,100,1,13.5,0,PASS,"m=1"\n'
    assert judge(parse(b"", more), _BOTH).reason == "device 0 lacks case 1 of quant_matmul"
    assert judge(parse(b"", _CSV), frozenset({0})).reason == "device 1 has rows and was not requested"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'quant_matmul,1,1,100,1,1.0,0,FAIL,"m=1"\n', "1 of 3 cases failed, 0 errors"),
        (b'quant_matmul,1,1,100,1,1.0,7,PASS,"m=1"\n', "1 of 3 cases failed, 7 errors"),
    ],
)
def test_a_failed_case_and_a_counted_error_fail_and_keep_the_counts(row: bytes, reason: str) -> None:
    judgement = judge(parse(b"", _CSV + row), _BOTH)
    assert (judgement.correctness, judgement.reason) == (Correctness.FAILED, reason)
    assert (judgement.values["cases"], judgement.values["failed"]) == (3, 1)
    assert judgement.evidence[0].source == "result_csv"
    assert judgement.evidence[0].line_no == 4


def test_records_of_silent_corruption_fail_a_clean_csv() -> None:
    errors = b"task,device_id,detect_type,step,timestamp,fail_num,result,err_info\nmatmul,0,sdc,3,1,2,FAIL,x\n\n"
    judgement = judge(parse(b"", _CSV, errors), _BOTH)
    assert (judgement.correctness, judgement.reason) == (Correctness.FAILED, "1 silent data corruption records")
    assert judgement.evidence[0].source == "error_csv"
    assert judge(parse(b"", _CSV, b""), _BOTH).correctness is Correctness.VALIDATED


def test_records_without_end_are_all_counted_and_some_quoted() -> None:
    output = parse(b"", _CSV, b"matmul,0,sdc,3,1,2,FAIL,x\n" * 5001)
    assert (output.error_rows, len(output.failure_lines)) == (5001, 5000)


def test_headers_between_rows_and_carriage_returns_are_passed_over() -> None:
    mixed = _CSV.replace(b"\n", b"\r\n") + b"\n" + _HEADER
    assert judge(parse(b"", mixed), _BOTH).values == _VALUES


@pytest.mark.parametrize(
    "row",
    [
        b"matmul,0,0\n",
        b"matmul,x,0,1,1,1.0,0,PASS,c\n",
        b"matmul,0,0,1,1,nan,0,PASS,c\n",
        b"matmul,0,0,1,1,1.0,-1,PASS,c\n",
        b"matmul,0,0,1,1,1.0,0,MAYBE,c\n",
        b"matmul,0,0,1,1,1.0,0,PASSmatmul,1,0,1\n",
    ],
)
def test_a_row_that_cannot_be_read_costs_the_pass_and_not_its_neighbours(row: bytes) -> None:
    judgement = judge(parse(b"", _CSV + row), _BOTH)
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "damaged")
    assert judgement.reason == "line 4 of the results is no row of 8 columns"
    assert judgement.values == _VALUES


def test_a_csv_with_nothing_but_its_header_and_no_csv_at_all() -> None:
    empty = judge(parse(b"", _HEADER), _BOTH)
    assert (empty.cause, empty.reason, empty.values) == ("no_result", "the results hold no row", {})
    none = judge(parse(b"nothing"), _BOTH)
    assert (none.cause, none.crashed) == ("no_result", False)
    died = judge(parse(b"ImportError: libascend_hal.so: cannot open shared object file: No such file or directory"), _BOTH)
    assert (died.cause, died.crashed) == ("missing_library", True)


def test_the_dispatchers_summary_line_even_when_glued_to_other_text() -> None:
    judgement = judge(parse(b"progress 99 %" + _LINE + b"\n"), _BOTH)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == _VALUES
    assert judgement.evidence[0].text.startswith("progress")


def test_the_last_summary_counts() -> None:
    assert parse_summary(_LINE.replace(b"26.0", b"1.0") + b"\n" + _LINE)[0] == NpuSummary(2, 2, 2, 0, 0, 26.0)


def test_fewer_devices_in_the_summary_than_were_requested() -> None:
    judgement = judge(parse(_LINE), frozenset({0, 1, 2}))
    assert (judgement.cause, judgement.reason) == ("device_missing", "3 devices were requested and 2 tested")
    assert judge(parse(_LINE)).correctness is Correctness.VALIDATED


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"devices=2", b"device=2", "malformed"),
        (b"cases=2", b"cases=two", "no count or time"),
        (b"cases=2", b"cases=2.5", "no count or time"),
        (b"errors=0", b"errors=-1", "no count or time"),
        (b"seconds=26.000000", b"seconds=-1.0", "no count or time"),
        (b"seconds=26.000000", b"seconds=nan", "no count or time"),
        (b"devices=2", b"devices=0", "0 devices and 2 cases"),
        (b"cases=2", b"cases=0", "2 devices and 0 cases"),
        (b"passed=2", b"passed=1", "1 passed and 0 failed of 2 cases"),
        (b"CATMONITOR_NPU_BURN_SUMMARY", b"SUMMARY", "has no summary"),
    ],
)
def test_a_summary_that_cannot_be_used_is_not_proven(old: bytes, new: bytes, reason: str) -> None:
    judgement = judge(parse(_LINE.replace(old, new)), _BOTH)
    assert (judgement.correctness, judgement.values) == (Correctness.NOT_PROVEN, {})
    assert reason in judgement.reason


def test_a_summary_with_failures_or_errors_fails_and_keeps_its_counts() -> None:
    failed = judge(parse(_LINE.replace(b"passed=2 failed=0", b"passed=1 failed=1")), _BOTH)
    assert (failed.correctness, failed.values["failed"]) == (Correctness.FAILED, 1)
    errors = judge(parse(_LINE.replace(b"errors=0", b"errors=3")), _BOTH)
    assert (errors.correctness, errors.values["errors"]) == (Correctness.FAILED, 3)


def test_results_without_end_are_cut_and_prove_nothing() -> None:
    row = b"m,0,0,1,1,1.0,0,PASS,c\n"
    many = judge(parse(b"", row * 100_001), frozenset({0}))
    assert (many.cause, many.reason) == ("damaged", "more than 100000 rows")
    huge = judge(parse(b"", b"\n" * (4 * 1024 * 1024) + row), frozenset({0}))
    assert huge.reason == "the results have more than 4194304 bytes"


def test_a_cell_that_csv_refuses_is_no_row() -> None:
    judgement = judge(parse(b"", _CSV + b"x" * 200_000 + b"\n"), _BOTH)
    assert judgement.reason == "line 4 of the results is no row of 8 columns"


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=100))
def test_any_bytes_are_judged_and_prove_nothing(console: bytes, results: bytes, errors: bytes) -> None:
    assert judge(parse(console, results, errors), _BOTH).correctness is not Correctness.VALIDATED
    assert judge(parse(console), _BOTH).correctness is not Correctness.VALIDATED


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3), st.booleans()), min_size=1, max_size=20, unique_by=lambda c: c[:2])
)
def test_a_pass_needs_every_device_times_every_case(cases: list[tuple[int, int, bool]]) -> None:
    rows = [f"m,{device},{case},1,1,2.0,0,{'PASS' if passed else 'FAIL'},c\n" for device, case, passed in cases]
    requested = frozenset(device for device, _, _ in cases)
    judgement = judge(parse(b"", _HEADER + "".join(rows).encode()), requested)
    complete = len(cases) == len(requested) * len({case for _, case, _ in cases})
    expected = complete and all(passed for _, _, passed in cases)
    assert (judgement.correctness is Correctness.VALIDATED) is expected
    assert judgement.values["cases"] == len(cases)
