"""STREAM: what is validated, counted and told."""

import argparse
import io

import numpy as np
import pytest

from support.workloads import ARRANGED, beats, result, team_of

assert ARRANGED

from nodeproof.stress.parsers import stream as stream_parser  # noqa: E402 - the environment stands first
from nodeproof.stress.workloads import stream_job, triad  # noqa: E402 - the same
from nodeproof.stress.workloads.box import Box  # noqa: E402 - the same
from nodeproof.stress.workloads.console import Console  # noqa: E402 - the same
from nodeproof.stress.workloads.launch import CannotRunError  # noqa: E402 - the same
from nodeproof.stress.workloads.stream_job import ArrayCheck  # noqa: E402 - the same

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def small_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_job, "look", lambda *_: Box(tuple(team_of(2)), 1 << 30, 1 << 20, llc_known=False))


def _run(**changes: object) -> str:
    base: dict[str, object] = {
        "plan": "quick",
        "seconds": None,
        "threads": None,
        "elements": 5000,
        "ntimes": 3,
        "stores": "regular",
        "inject": None,
    }
    stream = io.StringIO()
    stream_job.run(argparse.Namespace(**(base | changes)), Console("stream", stream=stream))
    return stream.getvalue()


def test_a_kernels_row_counts_the_official_bytes() -> None:
    seconds = np.array([0.25, 0.5])
    # Triad: 3 arrays x 8 bytes x 10 million elements in 0.25 s
    assert (
        stream_job.kernel_line("Triad", 10_000_000, seconds) == "Triad:             960.0     0.375000     0.250000     0.500000"
    )
    assert stream_job.kernel_line("Copy", 10_000_000, seconds).split()[1] == "640.0"


def test_every_turn_multiplies_by_fifteen() -> None:
    assert triad.expected(0) == (2.0, 2.0, 0.0)
    assert triad.expected(1) == (30.0, 6.0, 8.0)
    assert triad.expected(2)[0] == 450.0


@pytest.mark.usefixtures("small_box")
@pytest.mark.parametrize("stores", ["regular", "streaming"])
def test_a_run_is_read_by_the_parser_of_the_official_program(stores: str) -> None:
    output = _run(stores=stores)
    found = stream_parser.parse(output.encode())
    assert stream_parser.judge(found).correctness == "validated"
    assert (found.elements, found.ntimes, found.threads_counted) == (5120, 3, 2)  # whole pages
    fields = result(output)
    assert (fields["passed"], fields["turns_counted"], fields["stores"], fields["array_rule_met"]) == (True, 2, stores, False)
    assert fields["triad_mb_s"] == pytest.approx(found.tables[0].rates_mb_s["triad"], abs=0.06)
    assert "WARNING -- Each array should be at least 4 times" in output
    assert "assumed" in output


@pytest.mark.usefixtures("small_box")
@pytest.mark.parametrize("array", ["a", "b", "c"])
def test_one_planted_wrong_value_fails_the_validation_and_names_the_array(array: str) -> None:
    output = _run(inject=f"{array}:4097")
    assert f"Failed Validation on array {array}[]" in output
    assert f"For array {array}[], 1 errors were found." in output
    assert "Solution Validates" not in output
    assert stream_parser.judge(stream_parser.parse(output.encode())).correctness == "failed"
    assert result(output)["passed"] is False


def test_a_nan_fails_the_validation() -> None:
    assert not ArrayCheck("a", 1.0, float("nan"), 1, 10).passed


@pytest.mark.usefixtures("small_box")
def test_rounds_go_on_until_the_time_is_up_and_the_arrays_obey_the_rule() -> None:
    output = _run(seconds=1, ntimes=None, elements=None)
    fields = result(output)
    assert fields["elements"] >= 10_000_000
    assert fields["array_rule_met"] is True
    assert fields["turns_counted"] % 9 == 0
    assert "WARNING" not in output
    assert [beat.phase for beat in beats(output)][-1].startswith("verify")


@pytest.mark.usefixtures("small_box")
def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(CannotRunError, match="three arrays need 2289 MiB, 1024 MiB may be used"):
        _run(elements=100_000_000)
    with pytest.raises(CannotRunError, match="300 turns asked for"):
        _run(ntimes=300)


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(CannotRunError, match="CPUs may be used"):
        _run(threads=100_000)
