"""``nodeproof stress status``: the newest job, or another."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.stress_manager import as_json, make_manager, told
from nodeproof.cli.stress_progress import live_text
from nodeproof.cli.stress_report import print_report
from nodeproof.cli.table import printable_lines
from nodeproof.stress.problems import JobNotFound

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    manager = make_manager(options)
    report = manager.job(options.job) if options.job else manager.latest()
    if report is None:
        raise JobNotFound("no stress job was ever run here")
    if as_json(options):
        print_json(report, indent=2)
    else:
        print_report(report)
        live = None if report.status.is_final else manager.live()
        if live is not None and live.job_id == report.job_id:
            print(printable_lines(live_text(live)))
    return 0


run = told("status", _run)
