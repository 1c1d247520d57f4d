"""``nodeproof stress show ID``: one job, or the record of one item with its files checked."""

import argparse

import msgspec

from nodeproof.cli.output import print_json
from nodeproof.cli.stress_manager import as_json, complain, make_manager, told
from nodeproof.cli.stress_report import print_report
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.model.hardware import HardwareReport
from nodeproof.model.run import Json
from nodeproof.runs.store import StoredRun
from nodeproof.stress.facade import StressFacade

__all__ = ["run"]

_RUN_PREFIX = "run-"


def _run(options: argparse.Namespace) -> int:
    manager = make_manager(options)
    if options.id.startswith(_RUN_PREFIX):
        return _show_run(manager, options)
    report = manager.job(options.id)
    if as_json(options):
        print_json(report, indent=2)
    else:
        print_report(report)
    return 0


run = told("show", _run)


def _show_run(manager: StressFacade, options: argparse.Namespace) -> int:
    stored = manager.inspect(options.id)
    for problem in stored.problems:
        complain("show", problem)
    if as_json(options):
        print_json(stored.record, indent=2)
    else:
        _print_run(stored)
    return 1 if stored.problems else 0


def _box(state: Json | None) -> list[str]:
    """The box before and after, and whether it was fit."""
    if state is None:
        return []
    report = msgspec.convert(state, HardwareReport)
    lines = [f"box before: {report.before.one_line()}"]
    if report.after is not None:
        lines.append(f"box after:  {report.after.one_line()}")
    if report.postcheck is not None:
        lines.append(f"box while it ran: {report.postcheck.validity}")
    if report.sampler is not None:
        lines.append(f"looked at {report.sampler.samples} times, for {report.sampler.cpu_share:.2%} of the allowed CPU time")
    return lines


def _print_run(stored: StoredRun) -> None:
    record = stored.record
    print(printable_lines(f"\n{record.benchmark_name} {record.run_id}: {record.status}, verdict {record.verdict.kind}"))
    print(printable_lines(f"  {record.verdict.reason}"))
    print(printable_lines(f"  started {record.started_at} by {record.source}; fingerprint {record.fingerprint}"))
    if record.frame.metrics:
        print_table(
            ("Metric", "Value"), [(key, f"{value:.6g}") for key, value in sorted(record.frame.metrics.items())], right=(1,)
        )
    for line in _box(record.frame.hardware_state):
        print(printable_lines(f"  {line}"))
    for warning in record.warnings:
        print(printable_lines(f"  warning: {warning}"))
    print_table(
        ("What ran", "Version", "sha256", "Path"),
        [(one.name, one.version, one.sha256[:16], one.path) for one in record.provenance],
    )
    for path in stored.files():
        print(printable_lines(f"  file: {path}"))
