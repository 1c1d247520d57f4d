"""Who wants what, and what a debounce may keep back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.faults.selection import Debounce, wants
from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, Delivery, Subscription
from support.webhooks import fault_event


def _subscription(**more: object) -> Subscription:
    return Subscription(id="sub-1", delivery=Delivery.POLL, created_at="", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        ({}, True),
        ({"types": ["card_drop"]}, True),
        ({"types": ["hbm_uce"]}, False),
        ({"components": ["npu"]}, True),
        ({"components": ["gpu"]}, False),
        ({"npu_ids": ["3", "4"]}, True),
        ({"npu_ids": ["4"]}, False),
        ({"min_severity": "critical"}, True),
        ({"min_severity": "info"}, True),
    ],
)
def test_filters(wish: dict[str, object], wanted: bool) -> None:  # noqa: FBT001 - a table
    assert wants(_subscription(**wish), fault_event(1)) is wanted


def test_severity_and_recoveries() -> None:
    """Defect of the reference: a subscriber to critical faults never heard that one was over."""
    critical = _subscription(min_severity="critical")
    assert not wants(critical, fault_event(1, severity=Severity.WARNING))
    assert wants(critical, fault_event(2, change=Change.CLEARED))
    assert not wants(_subscription(), fault_event(3, change=Change.HELD))
    assert not wants(_subscription(npu_ids=["3"]), fault_event(4, component="gpu"))


def test_without_a_window_everything_passes() -> None:
    debounce = Debounce(0.0)
    assert [debounce.passes(fault_event(n), 0.0) for n in (1, 2)] == [True, True]
    assert debounce.next_due_s() is None


def test_the_newest_waits_and_others_pass() -> None:
    debounce = Debounce(10.0)
    assert debounce.passes(fault_event(1), 100.0)
    assert not debounce.passes(fault_event(2), 101.0)
    assert not debounce.passes(fault_event(3), 102.0)
    assert debounce.passes(fault_event(4, device="another"), 102.0)
    assert [one.sequence for one in debounce.held] == [3]
    assert debounce.next_due_s() == 110.0
    assert debounce.due(109.0) is None
    due = debounce.due(110.0)
    assert due is not None
    debounce.told(due, 110.0)
    assert debounce.held == []
    assert not debounce.passes(fault_event(5), 115.0)


@given(st.lists(st.tuples(st.sampled_from(["set", "clear"]), st.floats(0.0, 30.0)), max_size=30))
def test_the_last_word_is_true(story: list[tuple[str, float]]) -> None:
    """Whatever happens: once everything that waits has come, the subscriber believes what is so."""
    debounce = Debounce(10.0)
    now_s, believed, standing = 0.0, False, 0

    def ripe(until_s: float) -> None:
        nonlocal believed
        while (due := debounce.due(until_s)) is not None:
            debounce.told(due, until_s)
            believed = True

    for number, (what, pause) in enumerate(story, 1):
        now_s += pause
        ripe(now_s)
        if what == "set" and not standing:
            standing = number
            if debounce.passes(fault_event(number), now_s):
                believed = True
        elif what == "clear" and standing:
            if debounce.passes(fault_event(number, change=Change.CLEARED, fault_id=f"f{standing}"), now_s):
                believed = False
            standing = 0
    ripe(now_s + 100.0)
    assert believed is bool(standing)


def test_memory_is_bounded() -> None:
    debounce = Debounce(10.0)
    for number in range(10_000):
        debounce.passes(fault_event(number, device=f"d{number}"), float(number))
    assert len(debounce._told_s) < 4200
