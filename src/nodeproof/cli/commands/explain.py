"""``nodeproof explain``: a rule, what it reads now, and what would clear it."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.cli.commands.collect import labels_text, observe
from nodeproof.cli.fault_explain import explain_fault, is_event_rule
from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.clock import SystemClock
from nodeproof.config.schema import Config
from nodeproof.errors import SnapshotError, UsageError
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings
from nodeproof.model.health import Explanation, Finding, HealthScore
from nodeproof.model.metric import Batch
from nodeproof.model.snapshot import DaemonState
from nodeproof.sinks.snapshot_names import GLOBAL_FILE, component_file
from nodeproof.sinks.snapshot_reader import read_comp, read_global, read_state

__all__ = ["run"]

_APART_S = 1.2
"""Beyond the cadence of the quickest components."""
_LINE_LIMIT = 1000


class _Look(NamedTuple):
    """What a rule is explained by."""

    origin: str
    first: Mapping[str, Batch]
    """An earlier look, for rules that judge growth; empty when there is none."""
    batches: Mapping[str, Batch]
    verdict: HealthScore | None
    """The daemon's own, which knows of more than two looks."""


def run(options: argparse.Namespace) -> int:
    """Print every rule's id, or all there is to say about one. Raises UsageError for a rule that does not exist."""
    if options.rule is not None and is_event_rule(options.rule):
        return explain_fault(options)
    config = load_config(options)
    evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme, confirm=False)
    if options.rule is None:
        ids = evaluator.rule_ids()
        if options.output == "json":
            print_json(ids)
        else:
            print("\n".join(ids))
        return 0
    _refuse_unknown(evaluator, options.rule)
    look = _look(options, config)
    now = SystemClock().now()
    if look.first:
        evaluator.evaluate(Readings(look.first), now)
    readings = Readings(look.batches)
    evaluator.evaluate(readings, now)
    explanations = evaluator.explain(options.rule, readings, now)
    told = [one for one in look.verdict.findings if _about(one, explanations)] if look.verdict is not None else []
    if options.output == "json":
        daemon = None if look.verdict is None else {"timestamp": look.verdict.timestamp, "findings": told}
        print_json({"readings_of": look.origin, "explanations": explanations, "daemon": daemon}, indent=2)
        return 0
    print(printable(f"Readings of {look.origin}."))
    for explanation in explanations:
        _print(explanation, told)
    if look.verdict is not None:
        _print_daemon(look.verdict, told)
    return 0


def _refuse_unknown(evaluator: Evaluator, rule: str) -> None:
    """Raises UsageError for a rule that does not exist, before anything is read."""
    nothing, now = Readings({}), SystemClock().now()
    evaluator.explain(rule, nothing, now)


def _about(finding: Finding, explanations: Sequence[Explanation]) -> bool:
    return any(finding.rule in {one.rule, *(tier.rule for tier in one.tiers)} for one in explanations)


def _look(options: argparse.Namespace, config: Config) -> _Look:
    """Readings to judge by: the daemon's when one is alive, else two looks of our own."""
    directory = config.snapshot.dir
    state = read_state(directory)
    if not state.fresh:
        observation = observe(options)
        return _Look(f"a look of this moment (daemon: {state.verdict})", observation.first, observation.batches, None)
    try:
        first = _batches(directory, state)
        # A counter's growth is the difference of two readings; the daemon's files hold one.
        SystemClock().sleep(_APART_S)
        second = _batches(directory, state)
        score: HealthScore = read_global(os.path.join(directory, GLOBAL_FILE)).health
    except SnapshotError as error:
        raise UsageError(f"{error}; the daemon was stopped meanwhile: try again") from None
    return _Look(f"the daemon (process {state.evidence.lock_pid})", first, second, score)


def _batches(directory: str, state: DaemonState) -> dict[str, Batch]:
    batches = {}
    for component, age in state.components.items():
        if age.fresh:
            found = read_comp(os.path.join(directory, component_file(component)))
            batches[component] = Batch(component, found.timestamp, found.monotonic_s, found.metrics + found.specs, found.missing)
    return batches


def _print(explanation: Explanation, told: Sequence[Finding]) -> None:
    print(f"\n{explanation.rule} ({explanation.component}): {str(explanation.condition).replace('_', ' ')}\n")
    print(printable(f"  Meaning:  {explanation.meaning}", _LINE_LIMIT))
    print(printable(f"  Remedy:   {explanation.remedy}", _LINE_LIMIT))
    print(printable(f"  Source:   {explanation.source}"))
    if explanation.age_s is not None:
        print(f"  Age:      {explanation.age_s:.1f} s")
    if explanation.weight:
        print(f"  Weight:   {explanation.weight:g} points of the score hang on it here")
    for reading in explanation.readings:
        labels = f" ({labels_text(reading.labels)})" if reading.labels else ""
        print(f"  Reads:    {printable(f'{reading.component}.{reading.name}{labels} = {reading.value:g} {reading.unit}')}")
    for absence in explanation.absences:
        remedy = f"; {absence.remedy}" if absence.remedy else ""
        print(printable(f"  Missing:  {absence.state}: {absence.reason}{remedy}", _LINE_LIMIT))
    if explanation.tiers:
        print()
        print_table(
            ("Threshold", "Stands", "Severity", "Points", "Clears when", "Since"),
            [
                (
                    one.threshold,
                    str(one.condition),
                    str(one.severity),
                    f"{one.penalty:g}",
                    one.clears_when,
                    next((found.since for found in told if found.rule == one.rule), "-"),
                )
                for one in explanation.tiers
            ],
            right=(3,),
        )


def _print_daemon(verdict: HealthScore, told: Sequence[Finding]) -> None:
    """What the daemon, which has watched for longer, says of it."""
    print()
    if not told:
        print(printable(f"  The daemon, at {verdict.timestamp}: no finding."))
    for one in told:
        judged = one.reading.judged if one.reading.judged is not None else one.reading.value
        text = f"{one.severity}: {one.message}; judged: {judged:g} {one.reading.unit} ({one.threshold}); since {one.since}"
        print(printable(f"  The daemon, at {verdict.timestamp}: {text}", _LINE_LIMIT))
