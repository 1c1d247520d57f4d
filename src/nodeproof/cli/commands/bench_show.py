"""``nodeproof bench show RUN``: one run, its files checked."""

import argparse

from nodeproof.bench.gate.trust import trusted_keys
from nodeproof.cli.bench_executor import as_json, bench_store, complain, signing_key, told
from nodeproof.cli.bench_report import print_stored
from nodeproof.cli.output import print_json
from nodeproof.cli.table import printable_lines
from nodeproof.runs.signature import check_signature

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    store = bench_store(options)
    store.recover()
    stored = store.inspect(options.id)
    for problem in stored.problems:
        complain("show", problem)
    signature = check_signature(stored.path, stored.record, trusted_keys(None, signing_key(options)))
    if as_json(options):
        print_json(stored.record, indent=2)
    else:
        print_stored(stored)
        print(printable_lines(f"  {signature.problem or f'signed with {signature.key_id}, the key of this node'}"))
    return 1 if stored.problems else 0


run = told("show", _run)
