"""``nodeproof explain``: a rule, what it reads now, and what would clear it."""

import argparse
import os
from collections.abc import Mapping

import msgspec

from nodeproof.cli.commands.collect import labels_text, observe
from nodeproof.cli.options import load_config
from nodeproof.cli.table import print_table, printable
from nodeproof.clock import SystemClock
from nodeproof.config.schema import Config
from nodeproof.errors import SnapshotError, UsageError
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings
from nodeproof.model.health import Explanation, HealthScore
from nodeproof.model.metric import Batch
from nodeproof.sinks.snapshot import GLOBAL_FILE, component_file
from nodeproof.sinks.snapshot_reader import read_comp, read_global, read_state

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print every rule's id, or all there is to say about one. Raises UsageError for a rule that does not exist."""
    config = load_config(options)
    evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme, confirm=False)
    if options.rule is None:
        ids = evaluator.rule_ids()
        print(msgspec.json.encode(ids).decode() if options.output == "json" else "\n".join(ids))
        return 0
    batches, origin, live = _readings(options, config)
    now = SystemClock().now()
    readings = Readings(batches)
    evaluator.evaluate(readings, now)
    explanations = evaluator.explain(options.rule, readings, now)
    if options.output == "json":
        print(msgspec.json.format(msgspec.json.encode({"readings_of": origin, "explanations": explanations}), indent=2).decode())
        return 0
    print(f"Readings of {origin}.")
    for explanation in explanations:
        _print(explanation, live)
    return 0


def _readings(options: argparse.Namespace, config: Config) -> tuple[Mapping[str, Batch], str, HealthScore | None]:
    """Readings to judge by: the daemon's when one is alive, else a look of our own; where they come from, and its verdict."""
    directory = config.snapshot.dir
    state = read_state(directory)
    if not state.fresh:
        return observe(options).batches, f"a look of this moment (daemon: {state.verdict})", None
    batches = {}
    for component, age in state.components.items():
        if age.fresh:
            found = read_comp(os.path.join(directory, component_file(component)))
            batches[component] = Batch(component, found.timestamp, found.monotonic_s, found.metrics + found.specs, found.missing)
    try:
        return (
            batches,
            f"the daemon (process {state.evidence.lock_pid})",
            read_global(os.path.join(directory, GLOBAL_FILE)).health,
        )
    except SnapshotError as error:
        raise UsageError(f"{error}; the daemon was stopped meanwhile: try again") from None


def _print(explanation: Explanation, live: HealthScore | None) -> None:
    print(f"\n{explanation.rule} ({explanation.component}): {str(explanation.condition).replace('_', ' ')}\n")
    print(f"  Meaning:  {explanation.meaning}")
    print(f"  Remedy:   {explanation.remedy}")
    print(f"  Source:   {explanation.source}")
    if explanation.age_s is not None:
        print(f"  Age:      {explanation.age_s:.1f} s")
    if explanation.weight:
        print(f"  Weight:   {explanation.weight:g} points of the score hang on it here")
    for reading in explanation.readings:
        labels = f" ({labels_text(reading.labels)})" if reading.labels else ""
        print(f"  Reads:    {printable(f'{reading.component}.{reading.name}{labels} = {reading.value:g} {reading.unit}')}")
    for absence in explanation.absences:
        print(f"  Missing:  {absence.state}: {printable(absence.reason)}" + (f"; {absence.remedy}" if absence.remedy else ""))
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
                    _since(one.rule, live),
                )
                for one in explanation.tiers
            ],
            right=(3,),
        )


def _since(rule: str, live: HealthScore | None) -> str:
    """Since when the daemon has known it; a look of our own knows nothing of the past."""
    found = next((one.since for one in live.findings if one.rule == rule), "") if live is not None else ""
    return found or "-"
