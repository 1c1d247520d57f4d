"""A verdict for people to read."""

from nodeproof.cli.table import print_table
from nodeproof.clock import rfc3339_parse
from nodeproof.health.grades import verdict
from nodeproof.model.health import ComponentScore, Finding, Grade, HealthScore

__all__ = ["print_health"]

_BAR = 30
_ORDER = ("cpu", "memory", "disk", "gpu", "npu", "network", "chassis")
_CLOSING = {
    "sound": "[OK]    SOUND: everything that could be read is in order.",
    "warning": "[WARN]  WARNING: something needs attention.",
    "critical": "[CRIT]  CRITICAL: do not trust this node until it has been looked at.",
    "unknown": "[????]  UNKNOWN: too little could be read for a verdict; see: nodeproof doctor",
}
"""By the word that ``nodeproof check`` has for it: a grade alone may be Good with a warning that stands."""
_NOTE = "[NOTE]  SOUND: nothing needs attention now, but points were lost or not all could be read."


def print_health(health: HealthScore) -> None:
    """Print score, components with their deductions, findings, and what could not be told."""
    from datetime import datetime  # noqa: PLC0415 - cheap here, and not needed by other commands

    filled = round(_BAR * health.score / 100)
    checked = datetime.fromtimestamp(rfc3339_parse(health.timestamp)).astimezone()
    print("\nNode health\n" + "=" * 70)
    print(f"\n  Overall:   [{'█' * filled}{'░' * (_BAR - filled)}]  {health.score} / 100   [ {health.grade} ]")
    print(f"  Coverage:  {health.coverage:.0%} of the rules that apply here could be read")
    print(f"  Node:      {health.server_type}, weights {health.scheme}, rules {health.ruleset}")
    print(f"  Checked:   {checked:%Y-%m-%d %H:%M:%S %z}\n")
    rows = [_row(name, health.components[name]) for name in _ORDER if name in health.components]
    rows.append(("TOTAL", f"{health.score} / 100", f"{health.coverage:.0%}", str(health.grade), ""))
    print_table(("Component", "Score", "Covered", "Status", "Deductions"), rows, right=(1, 2))
    if health.findings:
        print("\nFindings\n")
        print_table(
            ("Severity", "Rule", "What", "Reading", "Source"),
            [
                (
                    str(one.severity),
                    one.rule,
                    one.message,
                    _judged(one),
                    one.source,
                )
                for one in health.findings
            ],
        )
    if health.unknown:
        print("\nCould not be told\n")
        print_table(
            ("Component", "Concern", "State", "Reason", "Remedy"),
            [(one.component, one.concern, str(one.state), one.reason, one.remedy) for one in health.unknown],
        )
    print(f"\n  {_closing(health)}")


def _closing(health: HealthScore) -> str:
    word = verdict(health).word
    return _NOTE if word == "sound" and health.grade is not Grade.EXCELLENT else _CLOSING[word]


def _judged(finding: Finding) -> str:
    """The number that was judged, and against what."""
    reading = finding.reading
    value = reading.value if reading.judged is None else reading.judged
    return f"{value:g} {reading.unit}".rstrip() + f" ({finding.threshold})"


def _row(name: str, score: ComponentScore) -> tuple[str, str, str, str, str]:
    deductions = "; ".join(f"{one.rule} (-{one.penalty:g})" for one in score.deductions or ())
    return (name.upper(), f"{score.score} / {score.max}", f"{score.coverage:.0%}", _status(score), deductions or "-")


def _status(score: ComponentScore) -> str:
    """Word for a component: that of the reference, and never OK for what could not be read."""
    if score.max == 0:
        return "N/A"
    ratio = score.score / score.max
    if score.coverage < 0.5:
        return "Unknown"
    if ratio >= 0.9:
        return "OK" if score.coverage >= 0.9 else "Partly read"
    if ratio >= 0.75:
        return "Good"
    return "Warning" if ratio >= 0.6 else "Critical"
