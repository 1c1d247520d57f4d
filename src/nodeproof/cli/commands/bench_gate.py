"""``nodeproof bench gate``: whether the records prove what ``bench.toml`` requires."""

import argparse
import os

from nodeproof.bench.export.junit import render_gate
from nodeproof.cli.bench_executor import as_json, told
from nodeproof.cli.bench_gate import desk_of, print_gate, report_of
from nodeproof.cli.output import print_json
from nodeproof.host.atomic import store_file

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    desk = desk_of(options, "gate", options.records)
    report = report_of(desk, [desk.judge.judge(entry) for entry in desk.entries])
    if options.junit:
        store_file(os.path.abspath(options.junit), render_gate(report).encode("utf-8", "backslashreplace"))
    if as_json(options):
        print_json(report, indent=2)
    else:
        print_gate(report, explain=options.explain)
    return report.exit_code


run = told("gate", _run)
