"""The verdicts on facts alone: the matrix of bench.md 8.4, each rule at its limit, and what must hold for any facts."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence
from nodeproof.hardware.policy import Ceilings, Options, is_on, judge, judge_cell, judge_cells, precheck, worst
from nodeproof.hardware.rules import DEFAULT_POLICY, Compare, Policy, Rule, Scope
from nodeproof.model.hardware import Decision, Effect, Fact, Sensitivity, Validity

SPEED, STABILITY, CORRECTNESS = Sensitivity.SPEED, Sensitivity.STABILITY, Sensitivity.CORRECTNESS
BEFORE = {rule.fact: Fact(rule.fact, 0.0) for rule in DEFAULT_POLICY.before}
DURING = {rule.fact: Fact(rule.fact, 1.0 if rule.compare is Compare.BELOW else 0.0) for rule in DEFAULT_POLICY.during}
DURING["chassis_rise_c"] = Fact("chassis_rise_c", 0.0)
NOTHING: dict[str, Fact] = {}


def before(**values: float) -> dict[str, Fact]:
    return BEFORE | {name: Fact(name, value, subject="it") for name, value in values.items()}


def during(**values: float) -> dict[str, Fact]:
    return DURING | {name: Fact(name, value, subject="it") for name, value in values.items()}


def unknown(name: str, state: Absence = Absence.UNKNOWN) -> dict[str, Fact]:
    return {name: Fact(name, state=state, reason="why")}


def test_the_defaults_are_all_off() -> None:
    assert Options() == (False, False, Ceilings(None, None, None))


def test_a_healthy_box_proceeds_without_a_word() -> None:
    assert precheck(SPEED, BEFORE, DEFAULT_POLICY).decision is Decision.PROCEED
    assert precheck(SPEED, BEFORE, DEFAULT_POLICY).concerns == []
    assert judge(SPEED, DURING, DEFAULT_POLICY).concerns == []


@pytest.mark.parametrize("name", ["thermal_asserted", "foreign_accelerator_processes"])
def test_two_facts_refuse(name: str) -> None:
    verdict = precheck(SPEED, before(**{name: 1}), DEFAULT_POLICY)
    assert (verdict.decision, len(verdict.concerns)) == (Decision.REFUSE, 1)
    assert precheck(STABILITY, before(**{name: 1}), DEFAULT_POLICY).decision is Decision.WARN


@pytest.mark.parametrize(("name", "rule"), [("thermal_asserted", "R1u"), ("foreign_accelerator_processes", "R2u")])
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_not_knowing_them_never_proceeds_and_never_refuses(name: str, rule: str, sensitivity: Sensitivity) -> None:
    verdict = precheck(sensitivity, BEFORE | unknown(name), DEFAULT_POLICY)
    assert (verdict.decision, [finding.rule for finding in verdict.findings]) == (Decision.WARN, [rule])
    lacking = precheck(sensitivity, BEFORE | unknown(name, Absence.NOT_APPLICABLE), DEFAULT_POLICY)
    assert lacking.decision is Decision.PROCEED


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_a_box_that_cannot_be_read_at_all_warns(sensitivity: Sensitivity) -> None:
    assert precheck(sensitivity, NOTHING, DEFAULT_POLICY).decision is Decision.WARN


def test_correctness_is_warned_with_all_concerns_of_speed_and_one_more() -> None:
    facts = before(thermal_asserted=1, foreign_share=0.5)
    speed, correctness = (precheck(kind, facts, DEFAULT_POLICY) for kind in (SPEED, CORRECTNESS))
    assert (speed.decision, correctness.decision) == (Decision.REFUSE, Decision.WARN)
    assert correctness.concerns[:-1] == speed.concerns
    assert len(correctness.concerns) == 3


def test_temperatures_over_both_ceilings_warn_and_refuse_only_through_the_gate() -> None:
    facts = before(gpu_temp_c=75.5, chassis_temp_c=80.5)
    ceilings = Ceilings(gpu_c=75, chassis_c=80)
    open_gate = precheck(SPEED, facts, DEFAULT_POLICY, Options(ceilings=ceilings))
    shut_gate = precheck(SPEED, facts, DEFAULT_POLICY, Options(temperature_gate=True, ceilings=ceilings))
    assert (open_gate.decision, shut_gate.decision) == (Decision.WARN, Decision.REFUSE)
    assert (
        open_gate.concerns == shut_gate.concerns == ["accelerator it at 75.5 °C, above 75 °C", "zone it at 80.5 °C, above 80 °C"]
    )
    stability = precheck(STABILITY, facts, DEFAULT_POLICY, Options(temperature_gate=True, ceilings=ceilings))
    assert stability.decision is Decision.WARN


def test_a_temperature_at_its_ceiling_is_no_concern() -> None:
    facts = before(gpu_temp_c=75, chassis_temp_c=80, cpu_temp_c=90)
    options = Options(temperature_gate=True, ceilings=Ceilings(75, 80, 90))
    assert precheck(SPEED, facts, DEFAULT_POLICY, options).decision is Decision.PROCEED


def test_without_ceilings_even_the_gate_only_warns() -> None:
    facts = before(gpu_temp_c=99, chassis_temp_c=99, undeclared_ceilings=2)
    verdict = precheck(SPEED, facts, DEFAULT_POLICY, Options(temperature_gate=True))
    assert (verdict.decision, [finding.rule for finding in verdict.findings]) == (Decision.WARN, ["R34n"])
    assert "above" not in verdict.concerns[0]


def test_an_unreadable_temperature_is_no_concern() -> None:
    facts = BEFORE | unknown("gpu_temp_c") | unknown("chassis_temp_c", Absence.READ_ERROR)
    assert precheck(SPEED, facts, DEFAULT_POLICY, Options(ceilings=Ceilings(75, 80))).decision is Decision.PROCEED


@pytest.mark.parametrize(("sensitivity", "expected"), [(SPEED, "refuse"), (STABILITY, "refuse"), (CORRECTNESS, "warn")])
def test_a_critical_sensor_refuses_whatever_is_run_but_right_answers(sensitivity: Sensitivity, expected: str) -> None:
    assert precheck(sensitivity, before(critical_sensors=1), DEFAULT_POLICY).decision == expected


def test_the_kill_switch_lets_a_refused_run_start_and_says_so() -> None:
    facts = before(thermal_asserted=1, steal_share=0.5)
    refused = precheck(SPEED, facts, DEFAULT_POLICY)
    suppressed = precheck(SPEED, facts, DEFAULT_POLICY, Options(kill_switch=True))
    assert (refused.decision, suppressed.decision) == (Decision.REFUSE, Decision.WARN)
    assert suppressed.concerns[:-1] == refused.concerns
    assert "NODEPROOF_NO_HW_PRECHECK" in suppressed.concerns[-1]
    assert precheck(SPEED, BEFORE, DEFAULT_POLICY, Options(kill_switch=True)).decision is Decision.PROCEED


@pytest.mark.parametrize(
    ("name", "limit", "rule"),
    [
        ("foreign_share", 0.05, "W1"),
        ("steal_share", 0.02, "W2"),
        ("swap_in_pages", 0.0, "W3"),
        ("memory_stall_share", 0.01, "W4"),
        ("slow_governor_cpus", 0.0, "W5"),
        ("past_uncorrected_errors", 0.0, "W6"),
        ("undeclared_ceilings", 0.0, "R34n"),
    ],
)
def test_load_on_the_box_only_warns(name: str, limit: float, rule: str) -> None:
    assert precheck(SPEED, before(**{name: limit}), DEFAULT_POLICY).decision is Decision.PROCEED
    over = precheck(SPEED, before(**{name: math.nextafter(limit, 1)}), DEFAULT_POLICY)
    assert (over.decision, [finding.rule for finding in over.findings]) == (Decision.WARN, [rule])


@pytest.mark.parametrize("rule", DEFAULT_POLICY.during, ids=lambda rule: rule.id)
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_each_rule_holds_only_beyond_its_limit(rule: Rule, sensitivity: Sensitivity) -> None:
    beyond = math.nextafter(rule.limit, math.inf if rule.compare is Compare.ABOVE else -math.inf)
    at_limit = judge(sensitivity, during(**{rule.fact: rule.limit}), DEFAULT_POLICY)
    assert rule.id not in {finding.rule for finding in at_limit.findings}
    verdict = judge(sensitivity, during(**{rule.fact: beyond}), DEFAULT_POLICY)
    assert next(finding.effect for finding in verdict.findings if finding.rule == rule.id) is rule.effects[sensitivity]
    others = {finding.effect for finding in verdict.findings}
    healthy = Validity.NOT_APPLICABLE if sensitivity is CORRECTNESS else Validity.VALID
    assert verdict.validity is (Validity.INVALID if Effect.INVALID in others else healthy)
    assert verdict.failed is rule.fails


@pytest.mark.parametrize("rule", [rule for rule in DEFAULT_POLICY.during if rule.unknown], ids=lambda rule: rule.id)
@pytest.mark.parametrize("sensitivity", [SPEED, STABILITY])
def test_an_unknown_that_matters_makes_validity_unknown(rule: Rule, sensitivity: Sensitivity) -> None:
    verdict = judge(sensitivity, DURING | unknown(rule.fact), DEFAULT_POLICY)
    if sensitivity in rule.unknown:
        assert verdict.validity is Validity.UNKNOWN
        assert verdict.concerns == [f"{rule.fact} could not be told: why"]
    else:
        assert (verdict.validity, verdict.concerns) == (Validity.VALID, [])


def test_what_a_machine_does_not_have_is_named_and_does_not_count() -> None:
    facts = DURING | unknown("throttle_events", Absence.NOT_APPLICABLE) | unknown("throttle_us", Absence.NOT_APPLICABLE)
    verdict = judge(SPEED, facts, DEFAULT_POLICY)
    assert (verdict.validity, [fact.name for fact in verdict.not_applicable]) == (
        Validity.VALID,
        ["throttle_us", "throttle_events"],
    )


def test_a_machine_on_which_nothing_could_fail_is_not_valid() -> None:
    facts = {name: Fact(name, state=Absence.NOT_APPLICABLE, reason="no") for name in DURING}
    verdict = judge(SPEED, facts, DEFAULT_POLICY)
    assert verdict.validity is Validity.UNKNOWN
    assert verdict.concerns == ["nothing that could spoil the run can be seen on this machine"]


def test_an_empty_delta_is_unknown_and_correctness_never_depends_on_it() -> None:
    assert judge(SPEED, NOTHING, DEFAULT_POLICY).validity is Validity.UNKNOWN
    assert judge(CORRECTNESS, NOTHING, DEFAULT_POLICY).validity is Validity.NOT_APPLICABLE


def test_a_lower_bound_over_the_limit_is_enough_and_says_at_least() -> None:
    partial = Fact("accelerator_throttle_us", 12e6, "us", complete=False, state=Absence.UNKNOWN, reason="why", subject="gpu0")
    share = Fact("accelerator_throttle_share", 12 / 692, complete=False, state=Absence.UNKNOWN, reason="why", subject="gpu0")
    verdict = judge(SPEED, DURING | {partial.name: partial, share.name: share}, DEFAULT_POLICY)
    assert verdict.validity is Validity.INVALID
    assert verdict.concerns == ["accelerators slowed by heat: gpu0", "accelerators slowed by heat at least 1.73 % of the time"]
    whole = msgspec.structs.replace(share, complete=True)
    told = judge(CORRECTNESS, DURING | {share.name: whole}, DEFAULT_POLICY)
    assert (told.validity, told.concerns) == (Validity.NOT_APPLICABLE, ["accelerators slowed by heat 1.73 % of the time"])


def test_zeros_that_are_partly_unreadable_are_unknown_with_one_concern() -> None:
    shown = "gpu0 sw_thermal 0 µs, gpu0 hw_thermal unreadable"
    partial = Fact("accelerator_throttle_us", 0.0, "us", complete=False, state=Absence.UNKNOWN, reason="why", subject=shown)
    verdict = judge(SPEED, DURING | {partial.name: partial}, DEFAULT_POLICY)
    assert verdict.validity is Validity.UNKNOWN
    assert verdict.concerns == [f"accelerator_throttle_us could not be told (seen so far: {shown}): why"]


def test_cells_decide_unless_the_whole_run_is_touched() -> None:
    facts = during(steal_share=0.5)
    run = judge(SPEED, facts, DEFAULT_POLICY)
    assert run.validity is Validity.INVALID
    assert judge_cells(run, SPEED, facts, DEFAULT_POLICY, [Validity.VALID]).validity is Validity.VALID
    assert judge_cells(run, SPEED, facts, DEFAULT_POLICY, [Validity.VALID, Validity.INVALID]).validity is Validity.INVALID
    broken = during(edac_uncorrected=1)
    assert judge_cells(run, SPEED, broken, DEFAULT_POLICY, [Validity.VALID]).validity is Validity.INVALID
    dark = DURING | unknown("edac_uncorrected")
    assert judge_cells(run, SPEED, dark, DEFAULT_POLICY, [Validity.VALID]).validity is Validity.UNKNOWN


def test_a_cell_answers_for_what_happened_in_it() -> None:
    assert judge_cell(SPEED, DURING | unknown("edac_uncorrected"), DEFAULT_POLICY).validity is Validity.VALID
    assert judge_cell(SPEED, during(edac_uncorrected=1), DEFAULT_POLICY).validity is Validity.INVALID
    assert judge_cell(SPEED, during(throttle_events=1), DEFAULT_POLICY).validity is Validity.INVALID
    assert judge_cell(SPEED, NOTHING, DEFAULT_POLICY).validity is Validity.UNKNOWN


def test_the_least_believable_counts() -> None:
    assert worst([]) is Validity.UNKNOWN
    assert worst([Validity.VALID, Validity.UNKNOWN]) is Validity.UNKNOWN
    assert worst([Validity.NOT_APPLICABLE, Validity.VALID]) is Validity.NOT_APPLICABLE
    assert worst(list(Validity)) is Validity.INVALID


@pytest.mark.parametrize(
    ("text", "on"),
    [("1", True), (" TRUE ", True), ("Yes", True), ("", False), (None, False), ("0", False), ("on", False), ("2", False)],
)
def test_switches(text: str | None, on: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_on(text) is on


def test_the_policy_is_data() -> None:
    assert msgspec.json.decode(msgspec.json.encode(DEFAULT_POLICY), type=Policy) == DEFAULT_POLICY
    ids = [rule.id for rule in (*DEFAULT_POLICY.before, *DEFAULT_POLICY.during)]
    assert len(ids) == len(set(ids))
    rule = Rule("X", "heat", "{value} of {subject}", {SPEED: Effect.INVALID}, unknown=(SPEED,), scope=Scope.RUN)
    own = Policy((), (rule,))
    assert judge(SPEED, {"heat": Fact("heat", 1.5)}, own).concerns == ["1.5 of no name known"]
    assert judge(SPEED, {"heat": Fact("heat", state=Absence.UNKNOWN)}, own).concerns == [
        "heat could not be told: no reason known"
    ]
    # A kind of run that a rule does not name is not touched by it.
    assert judge(STABILITY, {"heat": Fact("heat", 1.5)}, own).findings == []


_FACTS = st.fixed_dictionaries(
    {
        name: st.one_of(
            st.builds(Fact, st.just(name), st.sampled_from([0.0, 0.01, 0.03, 0.5, 0.96, 1.0, 7.0]), complete=st.booleans()),
            st.builds(Fact, st.just(name), state=st.sampled_from([Absence.UNKNOWN, Absence.NOT_APPLICABLE, Absence.STALE])),
        )
        for name in DURING
    }
)


@given(_FACTS, st.sampled_from(sorted(DURING)), st.sampled_from(list(Sensitivity)))
def test_knowing_less_never_makes_a_run_valid(facts: dict[str, Fact], lost: str, sensitivity: Sensitivity) -> None:
    less = facts | unknown(lost)
    for verdict in (judge, judge_cell):
        if verdict(sensitivity, less, DEFAULT_POLICY).validity is Validity.VALID:
            assert verdict(sensitivity, facts, DEFAULT_POLICY).validity is Validity.VALID


@pytest.mark.parametrize("rule", DEFAULT_POLICY.during, ids=lambda rule: rule.id)
def test_what_can_spoil_a_run_must_be_known(rule: Rule) -> None:
    spoiled = {kind for kind, effect in rule.effects.items() if effect is Effect.INVALID} - {CORRECTNESS}
    assert set(rule.unknown) == spoiled


@given(_FACTS, st.sampled_from(list(Sensitivity)))
def test_valid_takes_positive_evidence_and_no_violation(facts: dict[str, Fact], sensitivity: Sensitivity) -> None:
    verdict = judge(sensitivity, facts, DEFAULT_POLICY)
    if verdict.validity is Validity.VALID:
        needed = [rule for rule in DEFAULT_POLICY.during if sensitivity in rule.unknown]
        assert any(facts[rule.fact].value is not None for rule in needed)
        for rule in needed:
            fact = facts[rule.fact]
            assert fact.state is Absence.NOT_APPLICABLE or (fact.value is not None and fact.complete)
        assert all(finding.effect is not Effect.INVALID for finding in verdict.findings)


@given(_FACTS, st.sampled_from(list(Sensitivity)))
def test_every_concern_has_its_finding_and_evidence(facts: dict[str, Fact], sensitivity: Sensitivity) -> None:
    verdict = judge(sensitivity, facts, DEFAULT_POLICY)
    assert [finding.text for finding in verdict.findings] == verdict.concerns[: len(verdict.findings)]
    for finding in verdict.findings:
        assert finding.fact == facts[finding.fact.name]
        assert finding.condition
