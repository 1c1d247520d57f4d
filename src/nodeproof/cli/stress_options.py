"""Options of ``nodeproof stress`` and of each thing that it does."""

import argparse
from collections.abc import Callable

from nodeproof.cli.common_options import add_root

__all__ = ["STRESS_ACTIONS", "Add", "Options", "add_stress"]

Options = argparse.Namespace
Add = Callable[[argparse.ArgumentParser], None]
_PLANS = ("quick", "standard", "soak")


def _output(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument(
        "-o", "-output", "--output", choices=formats, help="form of the output (default: table on a terminal, json elsewhere)"
    )


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plan", choices=_PLANS, default="standard", help="how much is proven by built-in workloads (default: standard)"
    )


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="items, in their order (default: stress.default_benchmarks)")
    parser.add_argument("-b", "-bench", "--bench", metavar="LIST", help="items with commas between them")
    parser.add_argument(
        "-timeout", "--timeout", metavar="TIME", help="limit of each item of this job, such as 90s; may only shorten"
    )
    parser.add_argument("--seconds", type=int, metavar="N", help="run each built-in workload for about so long")
    _plan(parser)
    _output(parser, "table", "json")


def _doctor(parser: argparse.ArgumentParser) -> None:
    _plan(parser)
    _output(parser, "table", "json")


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="item")
    _plan(parser)
    _output(parser, "table", "json")


def _status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-job", "--job", metavar="ID", help="job (default: the newest)")
    _output(parser, "table", "json")


def _cancel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-job", "--job", metavar="ID", help="job (default: the one that runs)")


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="newest jobs, 1 to 100 (default: 20)")
    _output(parser, "table", "json")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a job, or the run of an item; its files are checked against their hashes")
    _output(parser, "table", "json")


def _size(parser: argparse.ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument("names", nargs="*", metavar="NAME", help="stream, hpl or hpcg (default: all)")
    parser.add_argument("--ranks", type=int, default=0, metavar="N", help="MPI processes (default: 1)")
    _plan(parser)
    parser.add_argument(
        "-o",
        "-output",
        "--output",
        choices=("table", "json", "dat"),
        help="dat: the input file itself, of hpl or hpcg (default: table on a terminal, json elsewhere)",
    )


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", help="a job, or a report file")
    parser.add_argument("second", metavar="B", help="another one")
    _output(parser, "table", "json")


STRESS_ACTIONS: dict[str, tuple[str, Add, str]] = {
    "run": ("run items and wait for their end (the default)", _run, "nodeproof stress --plan quick stream hpl"),
    "doctor": ("which items could run here, and why not", _doctor, "nodeproof stress doctor"),
    "describe": ("what a start would run, with hashes", _describe, "nodeproof stress describe hpl -o json"),
    "status": ("the newest job, or another", _status, "nodeproof stress status"),
    "cancel": ("stop the job that runs, whichever process started it", _cancel, "nodeproof stress cancel"),
    "history": ("jobs that have ended, newest first", _history, "nodeproof stress history --limit 5"),
    "show": ("one job or run, with its evidence", _show, "nodeproof stress show 7f3a9c1d2b4e5f60"),
    "size": ("sizes of STREAM, HPL and HPCG that suit this box", _size, "nodeproof stress size hpl -o dat > HPL.dat"),
    "compare": ("two jobs, value by value", _compare, "nodeproof stress compare 7f3a9c1d2b4e5f60 0f3a9c1d2b4e5f61"),
}
"""Help, options and an example of each."""


def add_stress(
    parser: argparse.ArgumentParser,
    common: Callable[[argparse.ArgumentParser], None],
    run: Callable[[str], Callable[[Options], int]],
) -> None:
    """Put the actions below ``parser``; ``common`` adds what all commands have, ``run`` gives the function of an action."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, (text, add, example) in STRESS_ACTIONS.items():
        action = actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"Example: {example}", allow_abbrev=False
        )
        common(action)
        add(action)
        action.set_defaults(run=run(name), command="stress", action=name, parser=action)
