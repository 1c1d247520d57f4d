"""``nodeproof uninstall``: take back what ``install`` did, newest first."""

import argparse
import os
import sys

from nodeproof import __version__
from nodeproof.cli.commands.install import root_of, show
from nodeproof.cli.table import printable_lines
from nodeproof.errors import UsageError
from nodeproof.host.commands import HostCommands
from nodeproof.operate.install.steps import Journal, undo, undo_plan

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Show the changes, and make them unless only the plan was asked for. Records, history and users stay."""
    root = root_of(options)
    journal = Journal(root, __version__)
    if not journal.load():
        raise UsageError(f"{journal.folder} has no journal: nothing was installed by nodeproof install")
    if options.plan:
        show(options, undo_plan(journal))
        return 0
    if not root and os.geteuid() != 0:
        raise UsageError("taking an installation back writes into /etc and /usr: run it as root, or see it with --plan")
    commands = HostCommands()
    try:
        done, troubles = undo(journal, commands)
    finally:
        commands.close()
    show(options, done)
    for trouble in troubles:
        print(printable_lines(f"uninstall: {trouble}"), file=sys.stderr)
    return 1 if troubles else 0
