"""``nodeproof bench history``: runs that have ended."""

import argparse
import datetime as dt

from nodeproof.cli.bench_executor import as_json, bench_store, find_benchmark, told
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table
from nodeproof.errors import UsageError

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: expected 1 or more")
    wanted = find_benchmark(options.id)[0].id if options.id else ""
    store = bench_store(options)
    store.recover()
    runs = store.history(wanted, options.limit)
    if as_json(options):
        print_json([store.inspect(run.run_id).record for run in runs], indent=2)
        return 0
    print_table(
        ("Run", "Benchmark", "Ended", "Status", "Verdict"),
        [
            (
                run.run_id,
                run.benchmark_id,
                dt.datetime.fromtimestamp(run.recorded_at).astimezone().isoformat(timespec="seconds"),
                str(run.status),
                str(run.verdict),
            )
            for run in runs
        ],
    )
    return 0


run = told("history", _run)
