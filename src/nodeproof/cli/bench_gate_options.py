"""Options of the actions of ``nodeproof bench`` that judge, compare and hand on what was measured."""

import argparse
from collections.abc import Callable

__all__ = ["GATE_ACTIONS", "endpoint", "output"]

_Add = Callable[[argparse.ArgumentParser], None]


def output(parser: argparse.ArgumentParser) -> None:
    """Form of the output."""
    parser.add_argument(
        "-o",
        "-output",
        "--output",
        choices=("table", "json"),
        help="form of the output (default: table on a terminal, json elsewhere)",
    )
    parser.add_argument("--format", choices=("text", "json"), help="the same by the reference's name; text is table")


def endpoint(parser: argparse.ArgumentParser) -> None:
    """Where the endpoint is and how it is asked."""
    parser.add_argument("--url", metavar="URL", help="base address of the endpoint, http:// or https://")
    parser.add_argument("--model", metavar="NAME", help="model to ask for")
    parser.add_argument(
        "--serve-override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="setting that the server was started with, for the record",
    )
    parser.add_argument(
        "--api-key-env", metavar="NAME", help="variable that holds the bearer key (default: NODEPROOF_API_KEY, when it is set)"
    )
    parser.add_argument("--api-key-file", metavar="FILE", help="file that holds the bearer key; it is sent and never stored")
    parser.add_argument("--ca-file", metavar="FILE", help="certificate authorities to trust (default: the system's)")
    parser.add_argument(
        "--skip-coherence-probe", action="store_true", help="do not ask the endpoint questions with known answers first"
    )


def _thresholds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", default="bench.toml", metavar="FILE", help="what must be proven (default: bench.toml)")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="this benchmark alone; may be given again")


def _gate(parser: argparse.ArgumentParser) -> None:
    _thresholds(parser)
    parser.add_argument(
        "--records", metavar="DIR", help="judge run directories copied to DIR, from whatever node, instead of those of this node"
    )
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit report there as well")
    parser.add_argument("--explain", action="store_true", help="show each bound, and each record that was passed over, with why")
    output(parser)


def _certify(parser: argparse.ArgumentParser) -> None:
    _thresholds(parser)
    parser.add_argument("--plan", action="store_true", help="say what would be run, and run nothing")
    parser.add_argument("--again", action="store_true", help="also run what has a failing record; by itself a failure stands")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--yes", action="store_true", help="agree to side effects of benchmarks that have some")
    parser.add_argument(
        "--timeout-factor",
        type=float,
        default=3.0,
        metavar="X",
        help="give a run up after X times what it should take (3)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error; warnings stay")
    endpoint(parser)
    output(parser)


def _key(parser: argparse.ArgumentParser) -> None:
    output(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="RUN", help="a run")
    parser.add_argument("second", metavar="RUN", nargs="?", help="another; without one, the first is held against its reference")
    output(parser)


def _pin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="RUN", nargs="?", help="the run; without one, what is pinned is listed")
    parser.add_argument("--note", default="", metavar="TEXT", help="why, for whoever reads it later")
    parser.add_argument(
        "--unproven-box", action="store_true", help="accept a run during which the box could not be seen to be fit"
    )
    output(parser)


def _aggregate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", metavar="ID|RUN", help="a benchmark, whose newest shards are taken, or the shards")
    parser.add_argument("--model", default="", metavar="NAME", help="shards of this model alone")
    output(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="runs; without any, the newest")
    parser.add_argument("--id", metavar="ID", default="", help="the newest of this benchmark alone")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many of the newest (default: 20)")
    parser.add_argument(
        "--format",
        choices=("json", "csv", "junit", "openmetrics", "md", "html"),
        required=True,
        help="html is a page with plots that needs nothing else",
    )
    parser.add_argument("--file", metavar="FILE", help="write there instead of standard output")


GATE_ACTIONS: dict[str, tuple[str, _Add, str]] = {
    "gate": (
        "whether stored, signed records prove what bench.toml requires; exit 0 proven, 2 failed, 3 not proven",
        _gate,
        "nodeproof bench gate --file bench.toml --explain",
    ),
    "certify": (
        "run what bench.toml requires and no record proves yet, then judge; exit codes as gate",
        _certify,
        "nodeproof bench certify --file bench.toml --url http://127.0.0.1:8000 --plan",
    ),
    "compare": (
        "two runs, or a run and its pinned reference: what differs and what it means; exit 0 nothing worse, 2 worse, 3 unknown",
        _compare,
        "nodeproof bench compare run-1796092761531823400 run-1796092861531823400",
    ),
    "pin": (
        "make a run the reference that later ones are held against; nothing else ever moves it",
        _pin,
        "nodeproof bench pin run-1796092761531823400 --note 'after the driver update'",
    ),
    "aggregate": (
        "add the counts of the shards of a work, and make its ratios of the sums; exit 0 complete, 3 not",
        _aggregate,
        "nodeproof bench aggregate bfcl-subset",
    ),
    "export": (
        "runs as JSON, CSV, JUnit, OpenMetrics, Markdown or a self-contained HTML page with plots",
        _export,
        "nodeproof bench export run-1796092761531823400 --format html --file report.html",
    ),
    "key": ("the public key that this node signs its records with", _key, "nodeproof bench key"),
}
"""Help, options and an example of each."""
