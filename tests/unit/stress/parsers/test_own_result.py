"""The result line of built-in workloads."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Correctness
from nodeproof.stress.parsers import own_result

GOOD = b'begun\nnodeproof-result {"workload":"cpu_sdc","passed":true,"mismatches":0,"cpus":[0,1]}\n'


def judged(raw: bytes, benchmark: str = "cpu_sdc") -> Correctness:
    return own_result.judge(benchmark, own_result.parse(raw)).correctness


def test_a_passed_result_is_validated_with_its_numbers_and_its_line() -> None:
    found = own_result.judge("cpu_sdc", own_result.parse(GOOD))
    assert found.correctness is Correctness.VALIDATED
    assert found.values == {"mismatches": 0}
    assert found.evidence[0].line_no == 2


def test_the_last_line_counts() -> None:
    assert judged(GOOD + b'nodeproof-result {"workload":"cpu_sdc","passed":false,"failures":["float on CPU 1"]}\n') is (
        Correctness.FAILED
    )


def test_a_failure_names_what_was_found() -> None:
    raw = b'nodeproof-result {"workload":"cpu_sdc","passed":false,"failures":["float on CPU 1","hash on CPU 0"]}'
    found = own_result.judge("cpu_sdc", own_result.parse(raw))
    assert found.reason == "a known answer was not met: float on CPU 1; hash on CPU 0"
    assert found.cause == "failed_validation"
    bare = own_result.judge("cpu_sdc", own_result.parse(b'nodeproof-result {"workload":"cpu_sdc","passed":false}'))
    assert "says no more" in bare.reason
    odd = own_result.judge("cpu_sdc", own_result.parse(b'nodeproof-result {"workload":"cpu_sdc","passed":false,"failures":7}'))
    assert odd.reason.endswith(": 7")


def test_what_could_not_have_failed_is_not_proven() -> None:
    raw = b'nodeproof-result {"workload":"memory_pattern","passed":null,"doubt":"the caches held all of it"}'
    found = own_result.judge("memory_pattern", own_result.parse(raw))
    assert (found.correctness, found.reason) == (Correctness.NOT_PROVEN, "the caches held all of it")


def test_no_line_a_damaged_one_and_that_of_another_workload_prove_nothing() -> None:
    for raw in (b"", b"nodeproof-result {", b"nodeproof-result []", b"x nodeproof-result {}", GOOD.replace(b"true", b"1")):
        assert judged(raw) is Correctness.NOT_PROVEN
    assert judged(GOOD, "memory_pattern") is Correctness.NOT_PROVEN


def test_a_long_line_is_read_whole() -> None:
    fields = {"workload": "cpu_sdc", "passed": True, "cpus": list(range(4096))}
    assert judged(b"nodeproof-result " + msgspec.json.encode(fields)) is Correctness.VALIDATED


@given(st.binary(max_size=400))
def test_any_bytes_give_a_judgement_and_only_a_true_line_a_good_one(raw: bytes) -> None:
    assert judged(b"nodeproof-result " + raw) in {Correctness.NOT_PROVEN, Correctness.FAILED, Correctness.VALIDATED}
    if b"passed" not in raw:
        assert judged(raw) is Correctness.NOT_PROVEN
