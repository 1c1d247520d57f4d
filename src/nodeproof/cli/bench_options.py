"""Options of ``nodeproof bench`` and of each thing that it does."""

import argparse
from collections.abc import Callable

from nodeproof.cli.bench_gate_options import GATE_ACTIONS, endpoint
from nodeproof.cli.bench_gate_options import output as _output

__all__ = ["BENCH_ACTIONS", "Add", "Options", "add_bench"]

Options = argparse.Namespace
Add = Callable[[argparse.ArgumentParser], None]


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="ID", help="show this benchmark with its parameters")
    _output(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="ID", help="benchmark; see nodeproof bench list")
    endpoint(parser)
    parser.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE", help="parameter; may be given again; see bench list ID"
    )
    parser.add_argument("--timeout", metavar="TIME", help="end the whole run after so long, such as 10m")
    parser.add_argument("--no-save", action="store_true", help="keep no record")
    parser.add_argument("--no-fail-on-verdict", action="store_true", help="exit 0 also when the verdict is fail or inconclusive")
    parser.add_argument("--yes", action="store_true", help="agree to side effects of a benchmark that has some")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error; warnings stay")
    _output(parser)


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="RUN", help="a run; its files are checked against their hashes")
    _output(parser)


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--id", metavar="ID", default="", help="of this benchmark alone")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="newest runs (default: 20)")
    _output(parser)


def _stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="RUN", help="a run, or a directory that holds its samples")
    _output(parser)


BENCH_ACTIONS: dict[str, tuple[str, Add, str]] = {
    "list": ("benchmarks, or one with its parameters", _list, "nodeproof bench list load"),
    "run": (
        "run one and wait for its end",
        _run,
        "nodeproof bench run load --url http://127.0.0.1:8000 --model m --param concurrency=16",
    ),
    "show": ("one run with its evidence", _show, "nodeproof bench show run-1796092761531823400"),
    "history": ("runs that have ended, newest first", _history, "nodeproof bench history --limit 5"),
    "stats": (
        "the figures of a load run computed anew from its raw samples, and whether these were changed",
        _stats,
        "nodeproof bench stats run-1796092761531823400",
    ),
    **GATE_ACTIONS,
}
"""Help, options and an example of each."""


def add_bench(
    parser: argparse.ArgumentParser,
    common: Callable[[argparse.ArgumentParser], None],
    run: Callable[[str], Callable[[Options], int]],
) -> None:
    """Put the actions below ``parser``; ``common`` adds what all commands have, ``run`` gives the function of an action."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, (text, add, example) in BENCH_ACTIONS.items():
        action = actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"Example: {example}", allow_abbrev=False
        )
        common(action)
        add(action)
        action.set_defaults(run=run(name), command="bench", action=name, parser=action)
