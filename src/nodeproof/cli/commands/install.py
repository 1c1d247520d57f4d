"""``nodeproof install``: units, users, directories, manuals and a first configuration, after they were shown."""

import argparse
import os
import shutil
import sys

from nodeproof import __version__
from nodeproof.cli.manual import pages
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import UsageError
from nodeproof.host.commands import HostCommands
from nodeproof.operate.install.layout import SERVICES, Site, check_program, found_devices, steps
from nodeproof.operate.install.steps import Change, InstallError, Journal, apply, plan

__all__ = ["root_of", "run", "show"]


def run(options: argparse.Namespace) -> int:
    """Show the changes, and make them unless only the plan was asked for; a plan is shown whatever stands in its way."""
    root = root_of(options)
    program = options.program or shutil.which(sys.argv[0]) or ""
    site = Site(
        program=os.path.abspath(program),
        root=root,
        services=tuple(options.services.split(",")) if options.services else tuple(SERVICES),
        devices=found_devices(),
        start=not options.no_start,
        pages=pages(),
    )
    refusal = _refusal(site) if not root else None
    if refusal is not None and not options.plan:
        raise refusal
    journal = Journal(root, __version__)
    journal.load()
    wanted = steps(site)
    if options.plan:
        show(options, plan(wanted, journal, force=options.force))
        if refusal is not None:
            raise InstallError(f"this would be refused: {refusal}")
        return 0
    if not root and os.geteuid() != 0:
        raise UsageError("an installation writes into /etc and /usr: run it as root, or see what it would do with --plan")
    commands = HostCommands()
    try:
        show(options, apply(wanted, journal, commands, force=options.force))
    finally:
        commands.close()
    return 0


def _refusal(site: Site) -> InstallError | None:
    """Why the program cannot be installed; None = it can."""
    try:
        check_program(site.program)
    except InstallError as error:
        return error
    return None


def root_of(options: argparse.Namespace) -> str:
    """The staging directory, without a slash at its end; empty = this machine. Raises UsageError."""
    root = str(options.into or "").rstrip("/")
    if root and not root.startswith("/"):
        raise UsageError(f"--into {root}: expected an absolute path")
    return root


def show(options: argparse.Namespace, changes: list[Change]) -> None:
    """What is changed, a line each."""
    if options.output == "json":
        print_json(changes, indent=2)
    elif changes:
        print_table(("action", "what", "why"), [(str(one.action), one.what, one.why) for one in changes])
    else:
        print(printable_lines("nothing to change"))
