"""Every command with its options, as argparse sees them; the reference in ``docs/cli.md`` is printed from here."""

import argparse
import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from nodeproof import __version__
from nodeproof.cli.common_options import add_config, add_root
from nodeproof.cli.stress_options import add_stress
from nodeproof.cli.table import printable_lines

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = ["COMMANDS", "Options", "make_parser"]

Options = argparse.Namespace

_TABLE_OR_JSON = ("table", "json")


_COLUMNS = 80
_LOOKING = frozenset(
    ("up", "daemon", "collect", "health", "list", "explain", "doctor", "config", "web", "bundle", "compare", "dispatch")
)
"""Commands that look at the machine themselves; the others ask a daemon, or read what one has left."""


def _formatter(prog: str) -> argparse.HelpFormatter:
    """As wide as the terminal. Left to itself argparse asks shutil for that, with every option, which loads bzip2 and LZMA."""
    columns = os.environ.get("COLUMNS", "")
    if not columns.isdecimal() or columns == "0":
        try:
            columns = str(os.get_terminal_size(1).columns or _COLUMNS)
        except OSError:
            columns = str(_COLUMNS)
    return argparse.HelpFormatter(prog, width=int(columns) - 2)


class _Parser(argparse.ArgumentParser):
    """An argument parser that repeats no control character to the terminal."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        super()._print_message(printable_lines(message), file)


def _lazily(module: str) -> Callable[[Options], int]:
    """Run ``module.run`` of the commands, imported at that moment."""

    def run(options: Options) -> int:
        command = import_module(f"nodeproof.cli.commands.{module}")
        return int(command.run(options))

    return run


def _options(module: str, function: str) -> Callable[[argparse.ArgumentParser], None]:
    """Options that a module of their own has, imported when they are asked for."""

    def add(parser: argparse.ArgumentParser) -> None:
        getattr(import_module(f"nodeproof.cli.{module}_options"), function)(parser)

    return add


def _output(parser: argparse.ArgumentParser, *formats: str, default: str) -> None:
    parser.add_argument(
        "-o", "-output", "--output", choices=formats, default=default, help=f"form of the output (default: {default})"
    )


def _up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="lines to log")


def _collect(parser: argparse.ArgumentParser) -> None:
    _output(parser, "json", "table", "prom", default="json")
    parser.add_argument("--component", action="append", metavar="NAME", help="only this component; may be given again")
    parser.add_argument(
        "--missing", action="store_true", help="with -o json: print readings that are missing, with their reason, as lines too"
    )


def _rule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", nargs="?", help="id of the rule or text of the deduction; without one, all are listed")
    _output(parser, *_TABLE_OR_JSON, default="table")


def _plain(parser: argparse.ArgumentParser) -> None:
    _output(parser, *_TABLE_OR_JSON, default="table")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("check", "show"), help="check: judge the file; show: print what is in force, and why")
    _output(parser, *_TABLE_OR_JSON, default="table")


def _stress(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}. Each action has its own --help, and takes --config FILE."
    add_stress(parser, add_config, lambda action: _lazily(f"stress_{action}"))


def _faults(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}. Each action has its own --help, and takes --config FILE."
    from nodeproof.cli.faults_options import add_faults  # noqa: PLC0415 - only for this command

    add_faults(parser, add_config, lambda action: _lazily(f"faults_{_FAULT_MODULES.get(action, action)}"))


_FAULT_MODULES = dict.fromkeys(("ack", "hold", "release", "clear"), "order")


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}. Each action has its own --help, and takes --config FILE."
    from nodeproof.cli.bench_options import add_bench  # noqa: PLC0415 - only for this command

    add_bench(parser, add_config, lambda action: _lazily(f"bench_{action}"))


def _assets(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}. Each action has its own --help, and takes --config FILE."
    from nodeproof.cli.assets_options import add_assets  # noqa: PLC0415 - only for this command

    add_assets(parser, add_config, _lazily)


def _deploy(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{parser.epilog}. Each action has its own --help, and takes --config FILE."
    from nodeproof.cli.deploy_options import add_deploy  # noqa: PLC0415 - only for this command

    add_deploy(parser, add_config, lambda action: _lazily(f"deploy_{_DEPLOY_MODULES.get(action, action)}"))


_DEPLOY_MODULES = dict.fromkeys(("plan", "up", "status", "doctor", "down"), "site")


def _web(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-addr", "--addr", "--address", dest="address", metavar="HOST:PORT", help="where to listen (default: web.address)"
    )
    parser.add_argument("-snapshot-dir", "--snapshot-dir", metavar="DIR", help="files to serve (default: snapshot.dir)")


def _straggler(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", default="", metavar="DIR", help="KPI files to read (default: straggler_output.data_dir)")
    parser.add_argument("--days", type=int, default=1, metavar="N", help="newest files to read (default: 1)")
    _output(parser, *_TABLE_OR_JSON, default="table")


def _version(parser: argparse.ArgumentParser) -> None:
    del parser


COMMANDS: tuple[tuple[str, str, str, Callable[[argparse.ArgumentParser], None], str], ...] = (
    ("up", "observe", "start observing this node, say the first verdict, and serve it", _up, "nodeproof up"),
    ("daemon", "observe", "the same, for a service manager: logs only", _up, "nodeproof daemon -c /etc/nodeproof/nodeproof.yaml"),
    (
        "collect",
        "collect",
        "read everything once and print it",
        _collect,
        "nodeproof collect -o table --component cpu --component memory",
    ),
    ("health", "health", "read everything once and judge it", _plain, "nodeproof health -o json"),
    (
        "check",
        "check",
        "the daemon's last verdict in one line; exit 0 sound, 1 warning, 2 critical, 3 unknown, stale or no daemon",
        _plain,
        "nodeproof check || scontrol update nodename=$(hostname) state=drain reason=nodeproof",
    ),
    ("list", "list_collectors", "collectors, their cadence and whether they are on", _plain, "nodeproof list"),
    (
        "explain",
        "explain",
        "what a rule means, what it reads now and what would clear it",
        _rule,
        "nodeproof explain 'usage>90%'",
    ),
    ("doctor", "doctor", "what cannot be read here, why, the remedy, and what it costs", _plain, "nodeproof doctor"),
    ("config", "config", "judge or show the configuration", _config, "nodeproof config check -c ./nodeproof.yaml"),
    (
        "stress",
        "",
        "load this box and prove what it computes: STREAM, HPL, HPCG, known answers; exit 0 healthy, 1 not, 2 wrong arguments",
        _stress,
        "nodeproof stress --plan quick",
    ),
    ("faults", "", "what is broken, what happened, and a drill of the alarm", _faults, "nodeproof faults active"),
    (
        "bench",
        "",
        "measure an inference endpoint, with evidence for each number; exit 0 done, 2 verdict fail, 3 inconclusive, 4 refused",
        _bench,
        "nodeproof bench run load --url http://127.0.0.1:8000 --model m",
    ),
    (
        "straggler",
        "straggler",
        "which NPU lags behind its peers, by KPI files; exit 0 none, 1 found, 3 not enough to tell",
        _straggler,
        "nodeproof straggler --dir /var/lib/nodeproof/straggler",
    ),
    ("web", "web", "serve the page alone, from the files of a daemon", _web, "nodeproof web"),
    (
        "bundle",
        "bundle",
        "a support archive of this node without names, addresses, serial numbers and secrets, and a test host made of one",
        _options("operate", "add_bundle"),
        "nodeproof bundle --output-file ./node.tar.gz",
    ),
    (
        "telemetry",
        "telemetry",
        "alert rules for Prometheus and a dashboard for Grafana, made of the health rules and the catalogue",
        _options("operate", "add_telemetry"),
        "nodeproof telemetry alerts > nodeproof-alerts.yml",
    ),
    (
        "audit",
        "audit",
        "licences, notices, hashes and manifests of a release, and its list of parts (SBOM); exit 1 when a check failed",
        _options("operate", "add_audit"),
        "nodeproof audit --source . --sbom nodeproof.cdx.json",
    ),
    (
        "compare",
        "compare",
        "what differs between two nodes, or this one now and on its last green day; exit 0 nothing, 1 something, 3 unknown",
        _options("operate", "add_compare"),
        "nodeproof compare ./sound-node.tar.gz ./odd-node.tar.gz",
    ),
    (
        "state",
        "state",
        "whether everything that is kept can be read; mend, prune and change the form of it",
        _options("operate", "add_state"),
        "nodeproof state check",
    ),
    (
        "assets",
        "",
        "build STREAM, HPL and HPCG from sources of your own, see that they are still what was built, and build images",
        _assets,
        "nodeproof assets build --stream-src ./stream.c --only stream --output-root /opt/nodeproof-stress/runtime",
    ),
    (
        "deploy",
        "",
        "stress items and containers of this node: generate, install, plan, up, status, doctor, down",
        _deploy,
        "nodeproof deploy generate --control-image nodeproof/control:1",
    ),
    (
        "dispatch",
        "dispatch",
        "one stress item by the variables of a dispatcher script; what a generated adapter calls, not for people",
        _options("deploy", "add_dispatch"),
        "nodeproof dispatch describe stream",
    ),
    (
        "install",
        "install",
        "install daemon, page, runner and privileged reader as services of systemd, with manuals and completions",
        _options("operate", "add_install"),
        "nodeproof install --plan",
    ),
    (
        "uninstall",
        "uninstall",
        "take back what install did; records and history stay",
        _options("operate", "add_uninstall"),
        "nodeproof uninstall --plan",
    ),
    (
        "runner",
        "runner",
        "own the stress jobs of this machine, and run them by name for whoever may ask at a Unix socket",
        _options("operate", "add_runner"),
        "nodeproof runner --operators %nodeproof-jobs",
    ),
    (
        "reader",
        "reader",
        "read for the daemon what only root may read: a fixed list of files and commands; a service, not for people",
        _options("operate", "add_reader"),
        "nodeproof reader --user nodeproof",
    ),
    ("version", "version", "print the version", _version, "nodeproof version"),
)
"""Name, module (empty = the options name one an action), one line of help, options and an example of each command."""


def make_parser(only: str = "") -> argparse.ArgumentParser:
    """The parser of the whole command line; with the name of a command, of that ``only``: each costs a third of a millisecond."""
    parser = _Parser(
        prog="nodeproof",
        description="Prove a node before you trust it, or any number it gives you.",
        epilog="Without a command: up. Each command has its own --help.",
        allow_abbrev=False,
        formatter_class=_formatter,
    )
    parser.add_argument("--version", action="version", version=f"nodeproof {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, prog="nodeproof")
    one = [command for command in COMMANDS if command[0] == only]
    for name, module, text, add_options, example in one or COMMANDS:
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=f"Example: {example}",
            allow_abbrev=False,
            formatter_class=_formatter,
        )
        command.set_defaults(command=name, parser=command)
        if module:
            add_config(command)
            if name in _LOOKING:
                add_root(command)
            command.set_defaults(run=_lazily(module))
        add_options(command)
    return parser
