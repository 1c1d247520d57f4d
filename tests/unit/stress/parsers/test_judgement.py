"""From a judgement and an ending to an outcome."""

from nodeproof.model.job import Correctness, Evidence, Execution, Performance
from nodeproof.stress.parsers.judgement import Judgement, not_proven, outcome_of, without_result
from nodeproof.stress.parsers.trouble import Trouble

_LINE = Evidence("stdout", 7, "Solution Validates")


def _sound(concerns: list[str] | None = None) -> Judgement:
    return Judgement(
        benchmark="stream",
        correctness=Correctness.VALIDATED,
        reason="all three arrays validate",
        values={"triad_mb_s": 5.0},
        source="stdout",
        evidence=[_LINE],
        concerns=concerns or [],
    )


def test_a_sound_number_takes_the_word_of_its_baseline() -> None:
    outcome = outcome_of(
        Execution.FINISHED, _sound(), progress=True, performance=Performance.DEGRADED, performance_reason="20 % below"
    )
    assert (outcome.execution, outcome.correctness, outcome.performance) == ("finished", "validated", "degraded")
    assert outcome.reasons == {"correctness": "all three arrays validate", "performance": "20 % below"}
    assert outcome.evidence == [_LINE]
    assert outcome.cause == ""


def test_a_number_with_a_concern_is_not_judged() -> None:
    judgement = _sound(["each array has 15.3 MiB"])
    assert not judgement.is_comparable
    outcome = outcome_of(Execution.FINISHED, judgement, progress=True, performance=Performance.IN_BAND)
    assert outcome.performance is Performance.NOT_JUDGED
    assert outcome.reasons["performance"] == "each array has 15.3 MiB"
    assert outcome.concerns == ["each array has 15.3 MiB"]


def test_what_is_not_proven_is_not_judged() -> None:
    judgement = not_proven("hpl", "unchecked", "no residual line", "stdout", [_LINE] * 30, {})
    assert len(judgement.evidence) == 20
    outcome = outcome_of(Execution.FINISHED, judgement, progress=False, performance=Performance.IN_BAND)
    assert (outcome.performance, outcome.cause, outcome.progress) == (Performance.NOT_JUDGED, "unchecked", False)
    assert outcome.reasons == {"correctness": "no residual line", "performance": "no validated number"}


def test_a_program_that_says_it_could_not_work_has_crashed_though_its_exit_status_was_0() -> None:
    judgement = without_result("hpl", "row", Trouble("config_error", "needs 4 ranks", _LINE), "stdout", {})
    outcome = outcome_of(Execution.FINISHED, judgement, progress=True)
    assert (outcome.execution, outcome.cause) == (Execution.CRASHED, "config_error")
    assert outcome.reasons["execution"] == "needs 4 ranks"


def test_the_callers_cause_goes_before_that_of_the_output() -> None:
    judgement = without_result("hpl", "row", None, "stdout", {})
    assert judgement.reason == "the output has no row"
    outcome = outcome_of(Execution.CRASHED, judgement, progress=True, cause="out_of_memory", execution_reason="killed")
    assert (outcome.execution, outcome.cause, outcome.reasons["execution"]) == (Execution.CRASHED, "out_of_memory", "killed")


def test_without_output_nothing_is_proven() -> None:
    outcome = outcome_of(Execution.REFUSED, None, progress=False, execution_reason="the asset is missing", cause="asset_missing")
    assert (outcome.correctness, outcome.performance, outcome.cause) == ("not_proven", "not_judged", "asset_missing")
    assert outcome.evidence == []
