"""``nodeproof stress doctor``: which items could run here, and why not."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.stress_manager import as_json, make_manager, plan_of, told
from nodeproof.cli.table import print_table
from nodeproof.model.job import CheckStatus
from nodeproof.stress.views import doctor_view

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    view = doctor_view(make_manager(options), plan_of(options))
    if as_json(options):
        print_json(view, indent=2)
    else:
        print(f"\nnodeproof Stress Doctor  {view.status.upper()}")
        rows = [
            (item.name, str(item.enabled).lower(), str(item.available).lower(), item.status.upper(), item.message)
            for item in view.benchmarks
        ]
        print_table(("Benchmark", "Enabled", "Available", "Preflight", "Message"), rows)
    return 0 if view.status is CheckStatus.PASS else 1


run = told("doctor", _run)
