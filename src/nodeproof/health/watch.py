"""Findings outside the tables: what is wrong whatever the points say."""

from collections.abc import Iterable, Sequence

from nodeproof.health.evidence import finding, plain
from nodeproof.health.latch import Held, Latches
from nodeproof.health.rules import Compare, FindingRule
from nodeproof.health.sample import Moment, Sight, look
from nodeproof.model.health import Finding, UnknownConcern
from nodeproof.model.metric import Missing

__all__ = ["Watch", "finding_message"]

_THINGS_A_RULE = 8
"""Findings of one rule that are listed one by one."""


class Watch:
    """Judges the finding rules, and remembers which things it has seen good."""

    def __init__(self, rules: Sequence[FindingRule], latches: Latches) -> None:
        self._rules = rules
        self._latches = latches
        self._good: dict[str, set[tuple[str, ...]]] = {rule.key: set() for rule in rules if rule.after_good}
        self._looks: dict[str, Sight] = {}
        self.sights: dict[str, Sight] = {}
        """What each rule saw the last time, by its key."""

    def stirring(self) -> list[FindingRule]:
        """Rules of which something holds, or is about to."""
        stirring = self._latches.rules
        return [rule for rule in self._rules if rule.key in stirring] if stirring else []

    def held(self, rule: FindingRule) -> list[Held]:
        """Latches of one rule that are not idle."""
        sight = self.sights.get(rule.key)
        return [] if sight is None else self._latches.held(rule.key, sight)

    def judge(self, moment: Moment) -> tuple[list[Finding], list[UnknownConcern]]:
        """What is wrong now, and what could not be told."""
        findings: list[Finding] = []
        absences: list[tuple[FindingRule, Missing]] = []
        for rule in self._rules:
            if rule.limit.probe.component in moment.changed or rule.key not in self.sights:
                self._take_in(rule, moment)
            sight = self.sights[rule.key]
            active = [held for held in self.held(rule) if held.latch.active] if self._latches.know(rule.key) else []
            if active:
                findings += _told(rule, active, moment)
            if sight.unread:
                absences += [(rule, entry) for entry in sight.unread if entry.source or entry.timestamp]
        return findings, _grouped(absences)

    def _take_in(self, rule: FindingRule, moment: Moment) -> None:
        sight = look(rule.limit.probe, moment)
        if self._looks.get(rule.key) is sight:
            return
        self._looks[rule.key] = sight
        if rule.after_good:
            sight = self._of_known(rule, sight)
        self.sights[rule.key] = sight
        self._latches.feed(rule.key, rule.limit, sight, moment)

    def _of_known(self, rule: FindingRule, sight: Sight) -> Sight:
        """Only the things that were good at some time: a port that never had a link has lost none."""
        good = self._good[rule.key]
        limit = rule.limit
        good.update(sample.entity for sample in sight.samples if not limit.holds(sample.value, sample.factor))
        return sight._replace(samples=[sample for sample in sight.samples if sample.entity in good])


def _told(rule: FindingRule, active: list[Held], moment: Moment) -> list[Finding]:
    if len(active) > 1:
        sign = -1.0 if rule.limit.compare is Compare.BELOW else 1.0
        active.sort(key=lambda held: sign * held.latch.sample.value, reverse=True)
    hidden = len(active) - _THINGS_A_RULE
    found = []
    for number, held in enumerate(active[:_THINGS_A_RULE], 1):
        message = finding_message(rule, held)
        if hidden > 0 and number == _THINGS_A_RULE:
            message += f" (and {hidden} more like it)"
        found.append(
            finding(
                rule.key,
                rule.severity,
                component=rule.component,
                message=message,
                evidence=(rule.limit, held),
                moment=moment,
            )
        )
    return found


class _Labels(dict[str, str]):
    """Labels for a message; what a reading lacks shows as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def finding_message(rule: FindingRule, held: Held) -> str:
    """What ``rule`` says of one thing."""
    sample = held.latch.sample
    labels = _Labels({key: plain(value) for key, value in (sample.metric.labels or {}).items()})
    labels["value"] = f"{sample.value:g}"
    labels["edge"] = f"{rule.limit.threshold * sample.factor:g}"
    return rule.message.format_map(labels)


def _grouped(absences: Iterable[tuple[FindingRule, Missing]]) -> list[UnknownConcern]:
    """One entry for all the rules of a component that one cause keeps in the dark."""
    groups: dict[tuple[str, str, str], tuple[Missing, list[str]]] = {}
    for rule, entry in absences:
        names = groups.setdefault((rule.component, entry.state, entry.reason), (entry, []))[1]
        if rule.name not in names:
            names.append(rule.name)
    return [
        UnknownConcern(component, ", ".join(names), entry.state, entry.reason, entry.remedy, entry.source)
        for (component, _, _), (entry, names) in groups.items()
    ]
