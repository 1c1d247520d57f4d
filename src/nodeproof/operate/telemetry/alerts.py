"""Alert rules for Prometheus, one a health rule, made of the tables that the daemon judges by."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from nodeproof.health.findings import FINDINGS
from nodeproof.health.rules import Compare, Concern, FindingRule, How, Limit, Tier
from nodeproof.health.rules_035 import CONCERNS
from nodeproof.model.health import Severity
from nodeproof.operate.telemetry.promql import Untranslatable, expression, family_of

__all__ = ["Alert", "alert_rules", "alerts", "left_out"]

_SCRAPE_S = 15
"""Longest scrape interval that the waiting times are made for."""
_PLACE = re.compile(r"\{([a-z_]+)\}")
_HEAD = """\
# Alert rules of nodeproof for Prometheus, made of its health rules by nodeproof telemetry alerts. Do not edit; route by the
# labels severity, component and rule. What a rule means, and what to do: nodeproof explain RULE.
"""
_OWN = (
    (
        "NodeproofDown",
        'up{job="nodeproof"} == 0',
        "1m",
        "critical",
        "nodeproof on {{ $labels.instance }} does not answer",
        "Nothing is known of the node: it may be down, or the daemon.",
        "Log in and run nodeproof check, or systemctl status nodeproof.",
    ),
    (
        "NodeproofComponentNotRead",
        "nodeproof_component_fresh == 0",
        "1m",
        "warning",
        "{{ $labels.component }} of {{ $labels.instance }} has not been read for some time",
        "Its last state is unknown; a device, driver or tool may hang.",
        "Run nodeproof doctor on the node.",
    ),
    (
        "NodeproofKeepsNothing",
        "increase(nodeproof_sink_errors_total[15m]) > 0",
        "15m",
        "warning",
        "nodeproof on {{ $labels.instance }} cannot write what it reads",
        "History and snapshots have gaps: the disk is full or may not be written.",
        "Run nodeproof doctor on the node, then nodeproof state check.",
    ),
)


class Alert(NamedTuple):
    """One rule."""

    name: str
    expr: str
    wait: str
    """How long it must hold (``for``)."""
    severity: str
    component: str
    rule: str
    """Key of the health rule; empty for our own."""
    summary: str
    help: str
    remedy: str


def alerts() -> list[Alert]:
    """All of them, in the order of the tables."""
    own = [Alert(*one[:4], "daemon", "", *one[4:]) for one in _OWN]
    return [*own, *(one for one in _of_tables() if isinstance(one, Alert))]


def left_out() -> list[tuple[str, str]]:
    """Rules that have no such form, and why; the daemon judges them, and ``nodeproof check`` tells of them."""
    return [one for one in _of_tables() if not isinstance(one, Alert)]


def _of_tables() -> Iterator[Alert | tuple[str, str]]:
    for rule in FINDINGS:
        try:
            yield _of_finding(rule)
        except Untranslatable as error:
            yield (rule.key, str(error))
    for concern in CONCERNS:
        gravest = concern.tiers[0]
        try:
            yield _of_concern(concern, gravest)
        except Untranslatable as error:
            yield (concern.key, str(error))


def _of_finding(rule: FindingRule) -> Alert:
    return Alert(
        _title(rule.key),
        expression(rule.limit, after_good=rule.after_good),
        _wait(rule.limit),
        str(rule.severity),
        rule.component,
        rule.key,
        f"{{{{ $labels.instance }}}}: {_message(rule.message, rule.limit)}",
        rule.help,
        rule.remedy,
    )


def _of_concern(concern: Concern, tier: Tier) -> Alert:
    severity = tier.severity if tier.severity is not Severity.INFO else Severity.WARNING
    value = _shown(tier.limit)
    return Alert(
        _title(f"score_{concern.key}"),
        expression(tier.limit),
        _wait(tier.limit),
        str(severity),
        concern.component,
        concern.key,
        f"{{{{ $labels.instance }}}}: {concern.component} {concern.name.replace('_', ' ')} is at {value}, beyond {tier.rule}",
        concern.help,
        concern.remedy,
    )


def _title(key: str) -> str:
    return "Nodeproof" + "".join(word.capitalize() for word in re.split(r"[._]", key))


def _wait(limit: Limit) -> str:
    return f"{_SCRAPE_S * limit.enter}s" if limit.enter > 1 else "0s"


def _message(message: str, limit: Limit) -> str:
    """The message of a rule as a template of Prometheus: labels as labels, and the value in words."""

    def put(match: re.Match[str]) -> str:
        what = match[1]
        if what == "value":
            return _shown(limit)
        return "the number expected" if what == "edge" else f"{{{{ $labels.{what} }}}}"

    if _is_ratio(limit):
        message = message.replace("{value} %", "{value}")
    return _PLACE.sub(put, message)


def _shown(limit: Limit) -> str:
    if _is_ratio(limit):
        return "{{ $value | humanizePercentage }}"
    return "{{ $value | humanize }}"


def _is_ratio(limit: Limit) -> bool:
    probe = limit.probe
    return probe.how in {How.POOL, How.OCCUPIED, How.PEAK} or (
        family_of(probe.component, probe.names[0]).unit == "ratio" and limit.compare is not Compare.BITS
    )


def alert_rules() -> str:
    """The file, as ``rule_files`` of a Prometheus takes it."""
    lines = [_HEAD, "groups:"]
    components = dict.fromkeys(one.component for one in alerts())
    for component in components:
        lines += [f"  - name: nodeproof-{component}", "    rules:"]
        for one in alerts():
            if one.component == component:
                lines += _entry(one)
    lines += ["", "# Judged by the daemon alone, and told by nodeproof check:"]
    lines += [f"# {key}: {reason}" for key, reason in left_out()]
    return "\n".join(lines).replace("\n\ngroups:", "\ngroups:") + "\n"


def _entry(one: Alert) -> list[str]:
    lines = [f"      - alert: {one.name}", f"        expr: {json.dumps(one.expr)}"]
    if one.wait != "0s":
        lines.append(f"        for: {one.wait}")
    lines += ["        labels:", f"          severity: {one.severity}"]
    if "$labels.component" not in one.summary:  # else the series has one of its own, which ours would hide
        lines.append(f"          component: {one.component}")
    if one.rule:
        lines.append(f"          rule: {one.rule}")
    lines.append("        annotations:")
    for key, text in (("summary", one.summary), ("description", one.help), ("remedy", one.remedy)):
        lines.append(f"          {key}: {json.dumps(text, ensure_ascii=False)}")
    return lines
