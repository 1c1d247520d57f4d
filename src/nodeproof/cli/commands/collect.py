"""``nodeproof collect``: one look at the node."""

import argparse
import sys

from nodeproof.cli.options import load_config, machine_root
from nodeproof.cli.output import print_json_lines, print_text
from nodeproof.cli.table import print_table, printable, printable_lines
from nodeproof.daemon.assembly import assemble
from nodeproof.daemon.once import Observation, observe_once
from nodeproof.errors import UsageError
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels

__all__ = ["labels_text", "observe", "run"]


def run(options: argparse.Namespace) -> int:
    """Print every reading: a JSON object a line, a table, or Prometheus text. Exit 1 when a collector failed as a whole."""
    observation = observe(options)
    if options.output == "json":
        _print_json(observation, with_missing=options.missing)
    elif options.output == "table":
        _print_tables(observation)
    else:
        _print_exposition(observation)
    for name, failure in observation.failures.items():
        print(printable(f"nodeproof: collector {name} {failure}"), file=sys.stderr)
    return 1 if observation.failures else 0


def observe(options: argparse.Namespace) -> Observation:
    """One look through the collectors that are enabled and chosen. Raises UsageError for an unknown component."""
    config = load_config(options)
    machine = Machine.here(machine_root(options))
    try:
        entries = [entry for entry in assemble(config, machine) if entry.enabled]
        chosen = getattr(options, "component", None)
        for name in chosen or ():
            if name not in {entry.collector.component for entry in entries}:
                known = ", ".join(sorted(entry.collector.component for entry in entries))
                raise UsageError(f"--component {name}: no enabled collector has it; known: {known}")
        return observe_once([entry.collector for entry in entries if not chosen or entry.collector.component in chosen], machine)
    finally:
        machine.close()


def labels_text(labels: Labels | None) -> str:
    """``key=value`` pairs in the order of the keys."""
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items())) if labels else ""


def _print_json(observation: Observation, *, with_missing: bool) -> None:
    for _, batch in sorted(observation.batches.items()):
        print_json_lines([*batch.metrics, *(batch.missing if with_missing else ())])


def _print_tables(observation: Observation) -> None:
    batches = [batch for _, batch in sorted(observation.batches.items())]
    print_table(
        ("Component", "Metric", "Value", "Unit", "Labels"),
        [(m.component, m.name, f"{m.value:.2f}", m.unit, labels_text(m.labels)) for batch in batches for m in batch.metrics],
        right=(2,),
    )
    missing = [(m.component, m.name, str(m.state), m.reason, labels_text(m.labels)) for batch in batches for m in batch.missing]
    if missing:
        print(f"\nNot read ({len(missing)}):\n")
        print_table(("Component", "Metric", "State", "Reason", "Labels"), missing)


def _print_exposition(observation: Observation) -> None:
    from nodeproof.sinks.prometheus import render  # noqa: PLC0415 - only for this output

    page = render(observation.batches)
    # A label's characters are kept for programs, whatever they are, and not for a terminal.
    print_text(printable_lines(page) if sys.stdout.isatty() else page)
