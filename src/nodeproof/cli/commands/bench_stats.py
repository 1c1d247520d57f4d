"""``nodeproof bench stats RUN``: the figures of a run from its raw samples, and whether these are what was measured."""

import argparse
import os

from nodeproof.bench.load.frames import report_table
from nodeproof.bench.stats.recompute import CellReport, recompute
from nodeproof.cli.bench_executor import as_json, bench_store, complain, told
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines

__all__ = ["run"]

_FILES = "files"


def _run(options: argparse.Namespace) -> int:
    problems: list[str] = []
    directory = options.id
    if not os.path.isdir(directory):
        store = bench_store(options)
        store.recover()
        stored = store.inspect(options.id)
        problems += stored.problems
        directory = os.path.join(stored.path, _FILES)
    cells = recompute(directory)
    for cell in cells:
        problems += [f"{cell.name}: {problem}" for problem in cell.report.problems]
    for problem in problems:
        complain("stats", problem)
    if as_json(options):
        print_json(
            {
                "cells": {cell.name: cell.report for cell in cells},
                "superseded": [cell.name for cell in cells if cell.superseded],
                "problems": problems,
            },
            indent=2,
        )
    else:
        for cell in cells:
            _print(cell)
    return 1 if problems else 0


run = told("stats", _run)


def _print(cell: CellReport) -> None:
    report = cell.report
    counts = ", ".join(f"{count} {name}" for name, count in report.counts.items())
    again = ", measured again" if cell.superseded else ""
    print(printable_lines(f"\n{cell.name}{again}: {counts}; window {report.window_s[0]:g} to {report.window_s[1]:g} s"))
    table = report_table(report)
    print_table([column.title for column in table.columns], [[part.text for part in row] for row in table.rows], right=(1, 2, 3))
    for reason in report.limited:
        print(printable_lines(f"  the generator was the limit: {reason}"))
