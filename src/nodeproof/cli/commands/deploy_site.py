"""``nodeproof deploy plan|up|status|doctor|down``: the containers of a deployment."""

import argparse
import os
import sys
from collections.abc import Callable

from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import UsageError
from nodeproof.host.commands import HostCommands
from nodeproof.model.job import CheckStatus
from nodeproof.operate.deploy import doctor, lifecycle
from nodeproof.operate.deploy.engine import Engine
from nodeproof.operate.deploy.lifecycle import PlanLine, Site
from nodeproof.operate.deploy.manifest import load

__all__ = ["run"]

_MOST_WAIT_S = 600


def run(options: argparse.Namespace) -> int:
    """Do what the action says."""
    deployment = load(options.deployment)
    site = Site(
        deployment=deployment,
        profile=options.profile,
        project=options.project_name,
        acknowledged_socket=getattr(options, "acknowledged_socket", False),
    )
    commands = HostCommands()
    try:
        engine = Engine(commands, options.engine, options.engine_option)
        return _ACTIONS[options.action](options, site, engine)
    finally:
        commands.close()


def _plan(options: argparse.Namespace, site: Site, engine: Engine) -> int:
    lines, rights = lifecycle.plan(site, engine), lifecycle.rights(site)
    if options.output == "json":
        print_json({"containers": lines, "rights": [{"container": name, "right": right} for name, right in rights]}, indent=2)
        return 0
    _show_plan(lines)
    print()
    print_table(("container", "may"), rights)
    return 0


def _up(options: argparse.Namespace, site: Site, engine: Engine) -> int:
    if not 1 <= options.runner_wait <= _MOST_WAIT_S:
        raise UsageError(f"--runner-wait {options.runner_wait}: expected 1 to {_MOST_WAIT_S}")
    if os.geteuid() != 0:
        raise UsageError("directories get owners of their own: run it as root, or see what it would do with deploy plan")
    lines = lifecycle.up(site, engine, wait_s=float(options.runner_wait), say=_say)
    if options.output == "json":
        print_json(lines, indent=2)
    if options.skip_doctor:
        return 0
    return _doctor(argparse.Namespace(**{**vars(options), "output": "table"}), site, engine) if options.output != "json" else 0


def _status(options: argparse.Namespace, site: Site, engine: Engine) -> int:
    lines = lifecycle.status(site, engine)
    if options.output == "json":
        print_json(lines, indent=2)
    else:
        rows = [(one.container, one.state, one.health or "-", one.message) for one in lines]
        print_table(("container", "state", "health", "what it is"), rows)
    return 0 if all(one.state == "running" and one.as_generated for one in lines) else 1


def _doctor(options: argparse.Namespace, site: Site, engine: Engine) -> int:
    findings = doctor.examine(site, engine)
    verdict = doctor.worst(findings)
    if options.output == "json":
        print_json({"status": verdict, "checks": findings}, indent=2)
    else:
        print_table(
            ("check", "status", "what", "remedy"), [(one.check, one.status.upper(), one.message, one.fix) for one in findings]
        )
        print(printable_lines(f"deployment: {verdict.upper()}"))
    return 1 if verdict is CheckStatus.FAIL else 0


def _down(options: argparse.Namespace, site: Site, engine: Engine) -> int:
    del options
    if not lifecycle.down(site, engine, say=_say):
        print("nothing to take down")
    return 0


_ACTIONS: dict[str, Callable[[argparse.Namespace, Site, Engine], int]] = {
    "plan": _plan,
    "up": _up,
    "status": _status,
    "doctor": _doctor,
    "down": _down,
}


def _show_plan(lines: list[PlanLine]) -> None:
    print_table(("container", "action", "image", "why"), [(one.container, one.action, one.image, one.why) for one in lines])


def _say(text: str) -> None:
    print(printable_lines(text), file=sys.stderr)
