"""``nodeproof stress compare A B``: two jobs, value by value."""

import argparse
import os

import msgspec

from nodeproof.cli.output import print_json
from nodeproof.cli.stress_manager import as_json, make_manager, told
from nodeproof.cli.stress_report import value_text
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import RecordError
from nodeproof.model.job import Report
from nodeproof.stress.compare import compare_reports
from nodeproof.stress.facade import StressFacade

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    manager = make_manager(options)
    comparison = compare_reports(_report(manager, options.first), _report(manager, options.second))
    if as_json(options):
        print_json(comparison, indent=2)
        return 0
    rows = [
        (
            one.benchmark,
            one.metric,
            value_text(one.first),
            value_text(one.second),
            f"{one.change:+.1%}" if one.change is not None else "-",
        )
        for one in comparison.rows
    ]
    print_table(("Benchmark", "Metric", comparison.first, comparison.second, "Change"), rows, right=(2, 3, 4))
    for note in comparison.notes:
        print(printable_lines(f"  {note}"))
    return 0


run = told("compare", _run)


def _report(manager: StressFacade, name: str) -> Report:
    """A job by its id, or out of a file. Raises JobNotFound and RecordError."""
    if os.sep not in name and not name.endswith(".json"):
        return manager.job(name)
    try:
        with open(name, "rb") as file:
            return msgspec.json.decode(file.read(), type=Report)
    except OSError as error:
        raise RecordError(f"{name}: {os.strerror(error.errno or 0)}") from None
    except msgspec.DecodeError as error:
        raise RecordError(f"{name} is no stress report: {error}") from None
