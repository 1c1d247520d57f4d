"""Kinds, texts and errors of parameters (bench.md 1.9)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParamError
from nodeproof.runs.params import Bool, Choice, Float, Int, IntList, Kind, ParamSpec, ParamValue, ParamValues, Text

SPECS = [
    ParamSpec("fast", "Fast mode", "h", Bool(), False),
    ParamSpec("runs", "Runs", "h", Int(1, 100), 3),
    ParamSpec("share", "Share", "h", Float(0.0, 1.0), 0.5),
    ParamSpec("node", "Node", "h", Text(), "inherit"),
    ParamSpec("mode", "Mode", "h", Choice(("Essay", "count")), "Essay"),
    ParamSpec("sizes", "Sizes", "h", IntList(1, 64), (1, 8)),
]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Bool(), " YES ", True),
        (Bool(), "on", True),
        (Bool(), "1", True),
        (Bool(), "True", True),
        (Bool(), "No", False),
        (Bool(), "off", False),
        (Bool(), "0", False),
        (Int(-5, 5), " -5 ", -5),
        (Int(-5, 5), "+5", 5),
        (Int(0, 9), "0007", 7),
        (Float(0, 1), "1", 1.0),
        (Float(-1, 1), "-2.5e-1", -0.25),
        (Text(), "  all of it ", "all of it"),
        (Choice(("Essay", "count")), " essay", "Essay"),
        (IntList(1, 9), "1, 2,,9 ,", (1, 2, 9)),
    ],
)
def test_what_texts_mean(kind: Kind, text: str, value: ParamValue) -> None:
    assert kind.parse(text) == value
    assert type(kind.parse(text)) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (Bool(), "maybe", "'maybe' is neither true/yes/on/1 nor false/no/off/0"),
        (Bool(), "", "'' is neither"),
        (Int(1, 9), "0", "0 is not between 1 and 9"),
        (Int(1, 9), "10", "10 is not between 1 and 9"),
        (Int(1, 9), "1.0", "'1.0' is no whole number"),
        (Int(1, 9), "\u0661", "is no whole number"),
        (Int(1, 9), "-+1", "is no whole number"),
        (Int(1, 9), "--1", "is no whole number"),
        (Int(1, 9), "1_0", "is no whole number"),
        (Int(1, 9), "9" * 5000, "is not between 1 and 9"),
        (Float(0, 1), "nan", "'nan' is not finite"),
        (Float(0, 1), "inf", "is not finite"),
        (Float(0, 1), "1e999", "is not finite"),
        (Float(0, 1), "1.5", "1.5 is not between 0 and 1"),
        (Float(0, 1), "half", "'half' is no number"),
        (Text(), "   ", "is empty; a text is expected"),
        (Choice(("a", "b")), "c", "'c' is none of a, b"),
        (IntList(1, 9), " , ", "is empty; at least one whole number"),
        (IntList(1, 9), "1,x", "'x' is no whole number"),
        (IntList(1, 9), "1,10", "10 is not between 1 and 9"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(kind: Kind, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        kind.parse(text)


def test_domains_in_a_few_characters() -> None:
    hints = [spec.domain_hint() for spec in SPECS]
    assert hints == ["true / false", "1–100", "0–1", "text", "Essay / count", "1–64, ..."]  # noqa: RUF001 - the dash of a range


def test_defaults_and_overrides() -> None:
    values = ParamValues.from_overrides(SPECS, [("runs", "7"), ("runs", "8"), ("sizes", "2,4"), ("fast", "yes")])
    assert values.to_strings() == {
        "fast": "true",
        "mode": "Essay",
        "node": "inherit",
        "runs": "8",
        "share": "0.5",
        "sizes": "2,4",
    }
    assert list(values.to_strings()) == sorted(values.to_strings())
    assert ParamValues.from_overrides(SPECS, values.to_strings().items()) == values


def test_unknown_key_lists_the_valid_ones() -> None:
    with pytest.raises(ParamError, match="there is no parameter 'rusn'; there are fast, mode, node, runs, share, sizes"):
        ParamValues.from_overrides(SPECS, [("rusn", "7")])
    with pytest.raises(ParamError, match="there are none"):
        ParamValues.from_overrides([], [("x", "7")])


def test_error_begins_with_the_label_and_bears_the_key() -> None:
    with pytest.raises(ParamError, match=r"^Runs \(runs\): 0 is not between 1 and 100$") as caught:
        ParamValues.from_overrides(SPECS, [("runs", "0")])
    assert caught.value.key == "runs"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("runs", 101, "Runs (runs): 101 is not between 1 and 100"),
        ("runs", True, "Runs (runs): 'true' is no whole number"),
        ("runs", "3", "Runs (runs): '3' is a text, expected int, 1–100"),  # noqa: RUF001 - the dash of a range
        ("fast", 1, "Fast mode (fast): 1 is a int, expected bool"),
        ("share", "0.5", "Share (share): '0.5' is a text, expected float"),
        ("node", 5, "Node (node): 5 is a int, expected text"),
        ("node", " x", "Node (node): ' x' is a text, expected text"),
        ("mode", "essay", "Mode (mode): 'essay' is a text, expected text"),
        ("sizes", 3, "Sizes (sizes): 3 is a int, expected int list"),
    ],
)
def test_validation_round_trips_every_value(key: str, value: ParamValue, problem: str) -> None:
    values = ParamValues({**dict(ParamValues.defaults(SPECS).items()), key: value})
    with pytest.raises(ParamError, match="^" + re.escape(problem)):
        values.validate_against(SPECS)


def test_validation_wants_every_key_and_no_other() -> None:
    with pytest.raises(ParamError, match=r"Fast mode \(fast\): no value given"):
        ParamValues({}).validate_against(SPECS)
    with pytest.raises(ParamError, match="there is no parameter 'x'"):
        ParamValues({"x": 1}).validate_against([])
    ParamValues({**dict(ParamValues.defaults(SPECS).items()), "share": 1}).validate_against(SPECS)


def test_reading_never_substitutes() -> None:
    values = ParamValues({"b": True, "i": 3, "n": -1, "f": 0.5, "t": "x", "l": (1, 2)})
    assert values.bool("b") is True
    assert values.int("i") == values.usize("i") == 3
    assert values.float("f") == 0.5
    assert values.float("i") == 3.0
    assert values.text("t") == "x"
    assert values.int_list("l") == (1, 2)
    for read, key, problem in (
        (values.bool, "i", "parameter i: 3 is int, bool was asked for"),
        (values.int, "b", "parameter b: True is bool, int was asked for"),
        (values.int, "f", "parameter f: 0.5 is float, int was asked for"),
        (values.usize, "n", "parameter n: -1 is negative"),
        (values.float, "b", "parameter b: True is bool, float was asked for"),
        (values.float, "t", "parameter t: 'x' is text, float was asked for"),
        (values.text, "l", "parameter l: (1, 2) is int list, text was asked for"),
        (values.int_list, "t", "parameter t: 'x' is text, int list was asked for"),
        (values.int, "z", "parameter z: no value given; there are b, f, i, l, n, t"),
    ):
        with pytest.raises(ParamError, match="^" + re.escape(problem) + "$"):
            read(key)


def test_equal_values_are_equal() -> None:
    assert ParamValues({"a": 1}) == ParamValues({"a": 1})
    assert ParamValues({"a": 1}) != ParamValues({"a": 2})
    assert ParamValues({"a": 1}) != {"a": 1}
    assert hash(ParamValues({"a": 1})) == hash(ParamValues({"a": 1}))
    assert repr(ParamValues({"a": 1})) == "ParamValues({'a': 1})"


KINDS = st.one_of(
    st.just(Bool()),
    st.builds(lambda low, span: Int(low, low + span), st.integers(-(10**9), 10**9), st.integers(0, 10**9)),
    st.builds(lambda low, span: Float(low, low + span), st.floats(-1e9, 1e9), st.floats(0, 1e9)),
    st.just(Text()),
    st.builds(Choice, st.just(("one", "Two", "THREE"))),
    st.builds(lambda low, span: IntList(low, low + span), st.integers(-100, 100), st.integers(0, 100)),
)


@given(kind=KINDS, text=st.text(max_size=60))
def test_any_text_is_a_legal_value_or_a_value_error(kind: Kind, text: str) -> None:
    try:
        value = kind.parse(text)
    except ValueError:
        return
    spec = ParamSpec("k", "K", "h", kind, value)  # type: ignore[arg-type]  # the kinds of the strategy are those of a spec
    values = ParamValues.defaults([spec])
    values.validate_against([spec])
    assert ParamValues.from_overrides([spec], values.to_strings().items()) == values


@given(data=st.data(), kind=KINDS)
def test_legal_values_survive_being_written(data: st.DataObject, kind: Bool | Int | Float | Text | Choice | IntList) -> None:
    value: ParamValue
    match kind:
        case Bool():
            value = data.draw(st.booleans())
        case Int():
            value = data.draw(st.integers(kind.min, kind.max))
        case Float():
            value = data.draw(st.floats(kind.min, kind.max))
        case Text():
            value = data.draw(st.text(min_size=1).filter(lambda text: text == text.strip()))
        case Choice():
            value = data.draw(st.sampled_from(kind.options))
        case IntList():
            value = tuple(data.draw(st.lists(st.integers(kind.min, kind.max), min_size=1)))
    spec = ParamSpec("k", "K", "h", kind, value)
    values = ParamValues({"k": value})
    values.validate_against([spec])
    assert ParamValues.from_overrides([spec], values.to_strings().items()) == values
