"""Conditions that hold now."""

from nodeproof.health import findings_host
from nodeproof.health.standing import reads_well


def test_a_thing_of_which_nothing_was_seen_is_neither_well_nor_ill() -> None:
    assert [reads_well(rule.limit, None, lambda _: True) for rule in findings_host.RULES] == [None] * len(findings_host.RULES)
    assert findings_host.RULES
