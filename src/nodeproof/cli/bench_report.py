"""A run of a benchmark for people."""

from nodeproof.cli.table import print_table, printable_lines
from nodeproof.model.run import Align, RunRecord
from nodeproof.runs.store import StoredRun

__all__ = ["print_record", "print_stored"]


def print_record(record: RunRecord) -> None:
    """What came of it: verdict first, then figures, then warnings."""
    print(printable_lines(f"\n{record.benchmark_name} {record.run_id}: {record.status}, verdict {record.verdict.kind}"))
    print(printable_lines(f"  {record.verdict.reason}"))
    if record.target_url:
        print(printable_lines(f"  {record.target_model} at {record.target_url}; started {record.started_at}"))
    for stat in record.frame.summary:
        print(printable_lines(f"  {stat.label}: {stat.value} {stat.unit}"))
    table = record.frame.table
    if table is not None:
        right = [place for place, column in enumerate(table.columns) if column.align is Align.RIGHT]
        print_table([column.title for column in table.columns], [[cell.text for cell in row] for row in table.rows], right=right)
    hardware = record.frame.hardware_state or {}
    postcheck = hardware.get("postcheck")
    if isinstance(postcheck, dict):
        print(printable_lines(f"  hardware: {postcheck.get('validity')}"))
    for warning in record.warnings:
        print(printable_lines(f"  warning: {warning}"))


def print_stored(stored: StoredRun) -> None:
    """The same, with parameters, what ran, and files."""
    record = stored.record
    print_record(record)
    print(printable_lines(f"  fingerprint {record.fingerprint}"))
    print_table(("Parameter", "Value"), sorted(record.params.items()))
    if record.frame.metrics:
        print_table(
            ("Metric", "Value"), [(key, f"{value:.6g}") for key, value in sorted(record.frame.metrics.items())], right=(1,)
        )
    for path in stored.files():
        print(printable_lines(f"  file: {path}"))
