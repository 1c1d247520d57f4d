"""``nodeproof doctor``: what cannot be read here, why, the exact remedy, and what it costs."""

import argparse
import os
import textwrap
from collections.abc import Sequence

from nodeproof.cli.options import load_config, machine_root
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.clock import SystemClock
from nodeproof.daemon.assembly import assemble
from nodeproof.daemon.circumstances import Check, Standing, circumstances
from nodeproof.daemon.diagnosis import Cause, Diagnosis, diagnose
from nodeproof.daemon.once import observe_once
from nodeproof.host.machine import Machine
from nodeproof.host.users import user_name

__all__ = ["run"]

_WIDTH = 110
_LINE_LIMIT = 4000
_MOST_REASONS = 4


def run(options: argparse.Namespace) -> int:
    """Try everything and print what does not work, dearest first. Exit 0 when everything applicable can be read, else 1."""
    config = load_config(options)
    machine = Machine.here(machine_root(options))
    try:
        entries = assemble(config, machine)
        seen = observe_once([entry.collector for entry in entries if entry.enabled], machine)
        checks = circumstances(config, entries, machine, seen)
    finally:
        machine.close()
    diagnosis = diagnose(config, entries, seen, SystemClock().now())
    code = int(bool(diagnosis.causes) or any(check.standing is Standing.BAD for check in checks))
    if options.output == "json":
        print_json(
            {
                "user": user_name(os.geteuid()),
                "everything_applicable_can_be_read": code == 0,
                "checks": checks,
                "readings": diagnosis.readings,
                "coverage": diagnosis.coverage,
                "points_blind": diagnosis.points_blind,
                "causes": diagnosis.causes,
                "pending": diagnosis.pending,
                "not_applicable": diagnosis.not_applicable,
            },
            indent=2,
        )
    else:
        _print_checks(checks)
        _print_causes(diagnosis)
        _print_rest(diagnosis)
    return code


def _print_checks(checks: Sequence[Check]) -> None:
    print(f"\nTried now, as {user_name(os.geteuid())}:\n")
    print_table(
        ("Item", "State", "What was found", "Remedy"), [(one.item, str(one.standing), one.detail, one.remedy) for one in checks]
    )


def _print_causes(diagnosis: Diagnosis) -> None:
    print(f"\n{diagnosis.readings} readings were got; {diagnosis.coverage:.0%} of the rules that apply here could be judged.")
    if not diagnosis.causes:
        print("Everything that applies to this machine can be read.")
        return
    print("\nWhat cannot be read, dearest first:")
    for number, cause in enumerate(diagnosis.causes, 1):
        print(f"\n{number:3}. {printable(f'{cause.state}: {cause.reason}', _LINE_LIMIT)}")
        _print_part("Remedy", cause.remedy or "none known on this kernel and hardware")
        _print_part("Costs", _costs(cause))
        _print_part("Metrics", ", ".join(_by_component(cause.metrics)))
        if cause.rules:
            _print_part("Rules", ", ".join(cause.rules))


def _costs(cause: Cause) -> str:
    points = f"{cause.points:.1f} of 100 points of the score are blind" if cause.points else "no points of the score"
    rules = f"{_count(len(cause.rules), 'rule')} and " if cause.rules else ""
    return f"{points}; {rules}{_count(len(cause.metrics), 'metric')} in the dark"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _by_component(metrics: Sequence[str]) -> list[str]:
    """``cpu: temperature power``, one a component."""
    components: dict[str, list[str]] = {}
    for metric in metrics:
        component, _, name = metric.partition(".")
        components.setdefault(component, []).append("everything" if name == "*" else name)
    return [f"{component}: {' '.join(names)}" for component, names in components.items()]


def _print_part(what: str, text: str) -> None:
    lead = f"     {what + ':':9}"
    print(
        textwrap.fill(
            printable(text, _LINE_LIMIT),
            _WIDTH,
            initial_indent=lead,
            subsequent_indent=" " * len(lead),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _print_rest(diagnosis: Diagnosis) -> None:
    if diagnosis.pending:
        print("\nNot known at this moment, and no fault:\n")
        for cause in diagnosis.pending:
            print(textwrap.indent(printable(f"{cause.reason} ({', '.join(cause.metrics)})", _LINE_LIMIT), "  "))
    absent = diagnosis.not_applicable
    if absent:
        total = sum(len(one.metrics) for one in absent)
        shown = "; ".join(one.reason for one in absent[:_MOST_REASONS])
        more = f"; and {len(absent) - _MOST_REASONS} more reasons" if len(absent) > _MOST_REASONS else ""
        print()
        print(textwrap.fill(printable(f"{total} metrics do not apply to this machine: {shown}{more}.", _LINE_LIMIT), _WIDTH))
