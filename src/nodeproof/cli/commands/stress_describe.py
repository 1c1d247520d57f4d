"""``nodeproof stress describe NAME``: what a start would run, with hashes."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.stress_manager import as_json, item_name, make_manager, plan_of, told
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.stress.profile import identity_hash

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    plan, name = plan_of(options), item_name(options.name)
    profile = make_manager(options).describe(name, plan=plan)
    if as_json(options):
        print_json(profile, indent=2)
        return 0
    print(printable_lines(f"\n{profile.benchmark}: preflight {profile.preflight.status}: {profile.preflight.message}\n"))
    print_table(("Setting", "Value"), [(one.label, f"{one.value} {one.unit}".strip()) for one in profile.parameters])
    print()
    rows = [(one.name, str(one.status), one.message, one.sha256[:16], one.path) for one in profile.assets]
    print_table(("Asset", "Status", "Message", "sha256", "Path"), rows)
    print(printable_lines(f"\nMPI: {profile.mpi.message}\nLimit: {profile.timeout_seconds} s"))
    print(f"Configuration: {profile.configuration_sha256}\nIdentity:      {identity_hash(profile, str(plan))}")
    return 0


run = told("describe", _run)
