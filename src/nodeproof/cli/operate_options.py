"""Options of the commands that install, deploy and look after nodeproof itself."""

import argparse

__all__ = [
    "Output",
    "add_audit",
    "add_bundle",
    "add_compare",
    "add_install",
    "add_output",
    "add_reader",
    "add_runner",
    "add_state",
    "add_telemetry",
    "add_uninstall",
]

Output = argparse._ActionsContainer  # noqa: SLF001 - a parser or a group of its options


def add_output(parser: argparse.ArgumentParser) -> None:
    """Table or JSON."""
    parser.add_argument(
        "-o", "-output", "--output", choices=("table", "json"), default="table", help="form of the output (default: table)"
    )


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plan", action="store_true", help="say what would be changed, and change nothing")
    parser.add_argument("--into", metavar="DIR", help="a staging directory in place of /; no program is run then")
    add_output(parser)


def add_install(parser: argparse.ArgumentParser) -> None:
    """``install``."""
    parser.add_argument(
        "--services", metavar="LIST", help="parts with commas between them: daemon, reader, runner, web (default: all)"
    )
    parser.add_argument("--program", metavar="FILE", help="the nodeproof that services run (default: this one)")
    parser.add_argument("--no-start", action="store_true", help="write everything and start nothing")
    parser.add_argument("--force", action="store_true", help="replace files that were changed by hand; a copy is kept")
    _place(parser)


def add_uninstall(parser: argparse.ArgumentParser) -> None:
    """``uninstall``."""
    _place(parser)


def add_reader(parser: argparse.ArgumentParser) -> None:
    """``reader``."""
    parser.add_argument(
        "--user", action="append", default=[], metavar="NAME", help="user who may ask beside root; may be given again"
    )
    parser.add_argument("--socket", metavar="FILE", help="where to listen when no service manager hands a socket over")


def add_runner(parser: argparse.ArgumentParser) -> None:
    """``runner``."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=("serve", "describe", "run", "health"),
        default="serve",
        help="serve is the default; the others ask; health: whether the runner answers",
    )
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="stream, hpl or hpcg: what to describe or run")
    parser.add_argument("-socket", "--socket", metavar="FILE", help="the socket (default: /run/nodeproof-runner/runner.sock)")
    parser.add_argument(
        "-socket-mode", "--socket-mode", default="0660", metavar="OCTAL", help="mode of the socket (default: 0660)"
    )
    parser.add_argument(
        "--operators",
        metavar="LIST",
        help="users, and groups with a %% before them, who may start and cancel beside root and the runner's own user",
    )
    parser.add_argument("--viewers", metavar="LIST", help="the same for those who may only look")


def add_telemetry(parser: argparse.ArgumentParser) -> None:
    """``telemetry``."""
    parser.add_argument("what", choices=("alerts", "dashboard"), help="alerts: rules for Prometheus; dashboard: JSON for Grafana")


def add_audit(parser: argparse.ArgumentParser) -> None:
    """``audit``."""
    parser.add_argument("--source", default="", metavar="DIR", help="a checkout or unpacked sdist: its licence, notices and sums")
    parser.add_argument("--cpu-manifest", default="", metavar="FILE", help="of assets build: are its files still those files?")
    parser.add_argument("--deployment-manifest", default="", metavar="FILE", help="of a deployment: the same")
    parser.add_argument("--require-runtime-manifests", action="store_true", help="a manifest that is not given is a failure")
    parser.add_argument("--sbom", default="", metavar="FILE", help="write the list of parts there, as CycloneDX JSON")
    parser.add_argument(
        "--timestamp", action="store_true", help="with the time in it; without, the same parts give the same bytes"
    )
    add_output(parser)


def add_bundle(parser: argparse.ArgumentParser) -> None:
    """``bundle``."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=("make", "show", "fixture", "replay"),
        default="make",
        help="make is the default; show: what is in one; fixture: make a recorded machine out of one; replay: read that machine",
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="show: BUNDLE; fixture: BUNDLE and the folder to make; replay: that folder"
    )
    parser.add_argument("--output-file", metavar="FILE", help="of make (default: nodeproof-bundle-TIME.tar.gz here)")
    add_output(parser)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """``compare``."""
    parser.add_argument(
        "sides",
        nargs="*",
        metavar="PATH",
        help="a bundle, a folder made of one, or a snapshot directory; one alone is held against this node now, none: the last"
        " green day of this node against now",
    )
    parser.add_argument("--all", action="store_true", help="every difference, not only the first ones of each kind")
    add_output(parser)


def add_state(parser: argparse.ArgumentParser) -> None:
    """``state``."""
    parser.add_argument(
        "action",
        choices=("check", "repair", "prune", "upgrade", "downgrade"),
        help="check: what cannot be read; repair: mend it; prune: remove runs beyond the limits; upgrade, downgrade: its form",
    )
    parser.add_argument("--deep", action="store_true", help="of check and repair: hash every file of every run anew")
    parser.add_argument("--most", type=int, default=1_000_000, metavar="N", help="of prune: remove at most so many runs")
    parser.add_argument("--rate", type=float, default=100.0, metavar="N", help="of prune: runs a second (default: 100)")
    parser.add_argument("--to", type=int, default=1, metavar="FORM", help="of downgrade: the form to make (default: 1)")
    add_output(parser)
