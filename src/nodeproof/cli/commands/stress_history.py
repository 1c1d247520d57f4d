"""``nodeproof stress history``: jobs that have ended, newest first."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.stress_manager import as_json, complain, make_manager, told
from nodeproof.cli.stress_report import label, value_text
from nodeproof.cli.table import print_table
from nodeproof.errors import UsageError
from nodeproof.model.job import HISTORY_LIMIT, BenchmarkResult
from nodeproof.stress.metric_units import PRIMARY, metric_unit

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    if not 1 <= options.limit <= HISTORY_LIMIT:
        raise UsageError(f"--limit {options.limit}: expected 1 to {HISTORY_LIMIT}")
    manager = make_manager(options)
    reports = manager.history(options.limit)
    damage = manager.history_damage()
    if damage:
        complain("history", damage)
    if as_json(options):
        print_json(reports, indent=2)
    else:
        rows = [
            (one.job_id, one.started_at[:19], label(one.status), one.initiator, one.plan, "; ".join(map(_short, one.benchmarks)))
            for one in reports
        ]
        print_table(("Job", "Started", "Status", "By", "Plan", "Items"), rows)
    return 1 if damage else 0


run = told("history", _run)


def _short(item: BenchmarkResult) -> str:
    key = PRIMARY.get(item.name, "")
    figure = f" {value_text(item.values[key])} {metric_unit(key)}" if key in item.values else ""
    return f"{item.name} {label(item.status)}{figure}"
