"""Options of ``nodeproof faults`` and of each thing that it does."""

import argparse
from collections.abc import Callable

__all__ = ["FAULT_ACTIONS", "Add", "Options", "add_faults"]

Options = argparse.Namespace
Add = Callable[[argparse.ArgumentParser], None]


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "-output", "--output", choices=("table", "json"), default="table", help="form of the output (default: table)"
    )


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="newest entries, 1 to 100000 (default: 50)")
    parser.add_argument("--type", metavar="TYPE", help="only this type")
    parser.add_argument("--component", metavar="NAME", help="only this component")
    parser.add_argument("--since", metavar="TIME", help="only later ones, RFC 3339")
    _output(parser)


def _fault(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fault", metavar="ID", help="fault, as nodeproof faults active names it")
    parser.add_argument("--note", default="", metavar="TEXT", help="what others should know")


def _inject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", help="rule, as nodeproof faults list names it")
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="N", help="the drill ends by itself after so long, 5 to 3600 (default: 60)"
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="what others should know")
    _output(parser)


def _redeliver(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--subscription", metavar="ID", help="only to this one (default: to all)")
    parser.add_argument(
        "--number", action="append", type=int, metavar="N", help="only the event of this number; may be repeated (default: all)"
    )


FAULT_ACTIONS: dict[str, tuple[str, Add, str]] = {
    "active": (
        "what is broken now; exit 0 nothing, 1 warnings, 2 critical ones, 3 it cannot be told",
        _output,
        "nodeproof faults active",
    ),
    "history": ("what happened, oldest first", _history, "nodeproof faults history --limit 20 --component gpu"),
    "list": ("every rule that makes a fault", _output, "nodeproof faults list"),
    "ack": ("say that somebody knows of it", _fault, "nodeproof faults ack f12 --note 'replacement ordered'"),
    "hold": ("keep it standing, whatever is read, until it is released or cleared", _fault, "nodeproof faults hold f12"),
    "release": ("let it end as it would have", _fault, "nodeproof faults release f12"),
    "clear": ("end it: for what the kernel told and what can no longer be read", _fault, "nodeproof faults clear f12"),
    "dead": ("events that subscribers did not take and that were given up", _output, "nodeproof faults dead"),
    "redeliver": (
        "send events that were given up once more; exit 1 when there are none",
        _redeliver,
        "nodeproof faults redeliver --number 17",
    ),
    "inject": (
        "a drill: pretend a fault, prove that everybody who should be told is told, and end it",
        _inject,
        "nodeproof faults inject xid.79",
    ),
}
"""Help, options and an example of each."""


def add_faults(
    parser: argparse.ArgumentParser,
    common: Callable[[argparse.ArgumentParser], None],
    run: Callable[[str], Callable[[Options], int]],
) -> None:
    """Put the actions below ``parser``; ``common`` adds what all commands have, ``run`` gives the function of an action."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, (text, add, example) in FAULT_ACTIONS.items():
        action = actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"Example: {example}", allow_abbrev=False
        )
        common(action)
        add(action)
        action.set_defaults(run=run(name), command="faults", action=name, parser=action)
