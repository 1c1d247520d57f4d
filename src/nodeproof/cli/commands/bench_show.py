"""``nodeproof bench show RUN``: one run, its files checked."""

import argparse

from nodeproof.cli.bench_executor import as_json, bench_store, complain, told
from nodeproof.cli.bench_report import print_stored
from nodeproof.cli.output import print_json

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    store = bench_store(options)
    store.recover()
    stored = store.inspect(options.id)
    for problem in stored.problems:
        complain("show", problem)
    if as_json(options):
        print_json(stored.record, indent=2)
    else:
        print_stored(stored)
    return 1 if stored.problems else 0


run = told("show", _run)
