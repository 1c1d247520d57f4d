"""``nodeproof bench export``: stored runs in the forms of other programs, or as a page."""

import argparse
import os
from collections.abc import Callable, Sequence

from nodeproof.bench.export.junit import render_junit
from nodeproof.bench.export.markdown import render_markdown
from nodeproof.bench.export.page import render_page
from nodeproof.bench.export.sheet import Sheet, sheet_of
from nodeproof.bench.export.tabular import render_csv, render_json, render_openmetrics
from nodeproof.bench.gate.trust import trusted_keys
from nodeproof.cli.bench_executor import complain, find_benchmark, signing_key, told
from nodeproof.cli.bench_trusted import opened
from nodeproof.cli.output import print_text
from nodeproof.errors import RecordError, UsageError
from nodeproof.host.atomic import store_file
from nodeproof.runs.signature import check_signature
from nodeproof.runs.store import RunStore, StoredRun

__all__ = ["run"]

_RENDER: dict[str, Callable[[Sequence[Sheet]], str]] = {
    "json": render_json,
    "csv": render_csv,
    "junit": render_junit,
    "openmetrics": render_openmetrics,
    "md": render_markdown,
    "html": render_page,
}


def _run(options: argparse.Namespace) -> int:
    if options.limit < 1:
        raise UsageError(f"--limit {options.limit}: expected 1 or more")
    store = opened(options)
    runs, unread = _chosen(options, store)
    if not runs:
        raise RecordError("; ".join(unread) or "there are no runs to export")
    sheets = [_sheet(options, run) for run in runs]
    text = _RENDER[options.format](sheets)
    if options.file:
        store_file(os.path.abspath(options.file), text.encode("utf-8", "backslashreplace"))
    else:
        print_text(text)
    wrong = unread + [problem for sheet in sheets for problem in sheet.problems]
    for problem in wrong:
        complain("export", problem)
    return 1 if wrong else 0


run = told("export", _run)


def _chosen(options: argparse.Namespace, store: RunStore) -> tuple[list[StoredRun], list[str]]:
    """The runs, and why others that belong to them cannot be read."""
    if options.runs and options.id:
        raise UsageError("name runs, or a benchmark with --id, not both")
    if options.runs:
        return [store.inspect(name) for name in dict.fromkeys(options.runs)], []
    wanted = find_benchmark(options.id)[0].id if options.id else ""
    found, unread = [], []
    for summary in store.history(wanted, options.limit):
        try:
            found.append(store.inspect(summary.run_id))
        except RecordError as error:
            unread.append(str(error))
    return found, unread


def _sheet(options: argparse.Namespace, run: StoredRun) -> Sheet:
    problems, signed_by = list(run.problems), ""
    if not problems:
        signature = check_signature(run.path, run.record, trusted_keys(None, signing_key(options)))
        signed_by = "" if signature.problem else signature.key_id
    return sheet_of(run, problems, signed_by)
