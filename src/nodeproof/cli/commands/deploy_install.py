"""``nodeproof deploy install``: directories with their owners, adapter and manifests, after they were shown."""

import argparse
import os

from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table
from nodeproof.errors import UsageError
from nodeproof.operate.deploy.layout import Change, Installation, install
from nodeproof.operate.deploy.manifest import load

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Show the changes, and make them unless only the plan was asked for."""
    root = str(options.into or "").rstrip("/")
    if root and not root.startswith("/"):
        raise UsageError(f"--into {root}: expected an absolute path")
    wanted = Installation(
        deployment=load(options.deployment), runtime_source=options.runtime_source, root=root, force=options.force
    )
    if not options.plan and not root and os.geteuid() != 0:
        raise UsageError("directories get owners of their own: run it as root, or see what it would do with --plan")
    _show(options, install(wanted, only_plan=options.plan))
    return 0


def _show(options: argparse.Namespace, changes: list[Change]) -> None:
    if options.output == "json":
        print_json(changes, indent=2)
    elif changes:
        print_table(("action", "what", "why"), [(one.action, one.what, one.why) for one in changes])
    else:
        print("nothing to change")
