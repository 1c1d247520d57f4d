"""What must hold of any readings whatever."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeproof.errors import Absence
from nodeproof.health import RULESETS, Evaluator
from nodeproof.health.findings import FINDINGS
from nodeproof.model.health import HealthScore
from support.node import HEALTHY, Node, add_npu, healthy

RANK = {"Excellent": 4, "Good": 3, "Warning": 2, "Critical": 1, "Unknown": 0}
METRICS = [(component, name, labels) for component, name, labels, _ in HEALTHY]
FACTORS = {"core_num", "space_detail"}
"""More of these makes a node better, or changes what the others mean."""

numbers = st.floats(0, 1e6, allow_nan=False)
absences = st.sampled_from([one for one in Absence if one is not Absence.NOT_APPLICABLE])
rulesets = st.sampled_from(RULESETS)


def full(ruleset: str, cards: int = 0, *, npus: bool = False) -> Node:
    node = healthy(Evaluator(ruleset, confirm=False))
    for card in map(str, range(cards)):
        if npus:
            add_npu(node, card)
        else:
            node.set("gpu", "temperature", 50, gpu_id=card).set("gpu", "memory_usage", 10, gpu_id=card)
            node.set("gpu", "utilization", 5, gpu_id=card).set("gpu", "ecc_errors", 0, gpu_id=card)
    return node


def bounded(score: HealthScore) -> None:
    assert 0 <= score.score <= 100
    assert 0.0 <= score.coverage <= 1.0
    for one in score.components.values():
        assert 0 <= one.score <= one.max
        assert 0.0 <= one.coverage <= 1.0
        assert one.deductions is None or all(taken.penalty >= 0 for taken in one.deductions)
        assert one.coverage == 1.0 or one.score < one.max
    if score.coverage < 1.0:
        assert score.score <= 99
    if score.coverage < 0.9:
        assert score.grade != "Excellent"
    if score.coverage < 0.5:
        assert score.grade in {"Unknown", "Critical"}


@given(rulesets, st.dictionaries(st.sampled_from(range(len(METRICS))), st.floats(-1e9, 1e18, allow_nan=False)))
@settings(max_examples=150)
def test_any_numbers_give_a_score_within_bounds(ruleset: str, values: dict[int, float]) -> None:
    node = full(ruleset)
    node.judge()
    for number, value in values.items():
        component, name, labels = METRICS[number]
        node.set(component, name, value, **labels)
    bounded(node.judge())
    bounded(node.judge())


@given(rulesets, st.lists(st.tuples(st.integers(0, len(METRICS) - 1), st.sampled_from(list(Absence))), max_size=20))
@settings(max_examples=150)
def test_any_absences_give_a_score_within_bounds(ruleset: str, gone: list[tuple[int, Absence]]) -> None:
    node = full(ruleset)
    for number, state in gone:
        component, name, _ = METRICS[number]
        node.miss(component, name, state)
    bounded(node.judge())


@given(
    rulesets,
    st.integers(0, 9),
    st.booleans(),
    st.dictionaries(st.integers(0, 200), numbers, max_size=8),
    st.lists(st.tuples(st.integers(0, 200), absences), max_size=30),
)
@settings(max_examples=250)
def test_what_can_no_longer_be_read_never_raises_the_grade(
    ruleset: str,
    cards: int,
    npus: bool,  # noqa: FBT001 - hypothesis draws it
    values: dict[int, float],
    gone: list[tuple[int, Absence]],
) -> None:
    node = full(ruleset, cards, npus=npus)
    node.judge()
    keys = sorted(node.values)
    for number, value in values.items():
        key = keys[number % len(keys)]
        node.set(key[0], key[1], value, **dict(key[2]))
    before = node.judge()
    for number, state in gone:
        key = keys[number % len(keys)]
        node.miss(key[0], key[1], state, "gone", **dict(key[2]))
    after = node.judge()
    assert RANK[after.grade] <= RANK[before.grade] or (before.grade, after.grade) == ("Critical", "Critical")
    assert after.coverage <= before.coverage


@given(rulesets, st.lists(st.tuples(st.integers(0, 200), absences), min_size=1, max_size=30), st.integers(0, 9))
@settings(max_examples=150)
def test_less_of_a_sound_node_never_grades_better(ruleset: str, gone: list[tuple[int, Absence]], cards: int) -> None:
    """Two evaluators that know nothing of each other."""
    whole = full(ruleset, cards).judge()
    node = full(ruleset, cards)
    keys = sorted(node.values)
    for number, state in gone:
        key = keys[number % len(keys)]
        node.miss(key[0], key[1], state, "gone", **dict(key[2]))
    part = node.judge()
    assert RANK[part.grade] <= RANK[whole.grade]
    assert part.score <= whole.score


@given(
    rulesets, st.dictionaries(st.integers(0, len(METRICS) - 1), numbers, max_size=6), st.integers(0, len(METRICS) - 1), numbers
)
@settings(max_examples=200)
def test_a_worse_reading_never_raises_the_score(ruleset: str, values: dict[int, float], worse: int, by: float) -> None:
    first = full(ruleset)
    first.judge()
    for number, value in values.items():
        component, name, labels = METRICS[number]
        if name not in FACTORS | {"smart_status"}:
            first.set(component, name, value, **labels)
    before = first.judge()
    component, name, labels = METRICS[worse]
    if name in FACTORS:
        return
    second = full(ruleset)
    second.judge()
    second.values = dict(first.values)
    key = (component, name, tuple(labels.items()))
    second.values[key] = 0.0 if name == "smart_status" else second.values[key] + by
    after = second.judge()
    assert after.score <= before.score
    assert RANK[after.grade] <= RANK[before.grade]


@given(st.lists(st.tuples(st.integers(0, len(FINDINGS) - 1), st.floats(-1e6, 1e12, allow_nan=False)), max_size=25))
@settings(max_examples=100)
def test_findings_take_no_points_and_only_lower_the_grade(values: list[tuple[int, float]]) -> None:
    node = full("0.3.5")
    node.judge()
    scored = {(component, name) for component, name, _, _ in HEALTHY}
    for number, value in values:
        probe = FINDINGS[number].limit.probe
        if probe.component == "derived" or (probe.component, probe.names[0]) in scored:
            continue
        labels = {key: value.strip("*") or "x" for key, value in probe.where}
        node.set(probe.component, probe.names[0], value, **dict.fromkeys(probe.entity, "x") | labels)
    for _ in range(3):
        score = node.judge()
        assert score.score == 100
        severities = {one.severity.value for one in score.findings}
        expected = "Critical" if "critical" in severities else "Good" if "warning" in severities else "Excellent"
        assert score.grade == expected
