"""What the actions of ``nodeproof stress`` share: the manager out of configuration and environment, and how errors are told."""

import argparse
import sys
from collections.abc import Callable

from nodeproof.cli.options import load_config
from nodeproof.cli.table import printable_lines
from nodeproof.errors import ConfigError, NodeproofError, UsageError
from nodeproof.runs.ports import Switches
from nodeproof.stress.manager import Manager
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.sizing import Plan

__all__ = ["as_json", "complain", "make_manager", "plan_of", "told"]

_FAILED = 1


def make_manager(options: argparse.Namespace) -> Manager:
    """The manager of this machine. Raises ConfigError."""
    environ = dict(options.environ)
    settings = StressSettings.of(load_config(options), environ)
    return Manager(
        settings,
        environ=environ,
        switches=Switches(
            never_refuse=environ.get("NODEPROOF_NO_HW_PRECHECK", "") == "1",
            temperature_gate=environ.get("NODEPROOF_HW_TEMP_GATE", "") == "1",
        ),
    )


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan asked for."""
    return Plan(options.plan)


def as_json(options: argparse.Namespace) -> bool:
    """Whether a program reads the output: as asked, else unless a person is looking."""
    return bool(options.output == "json" or (options.output is None and not sys.stdout.isatty()))


def complain(action: str, text: str) -> None:
    """Say an error the way the reference does."""
    print(printable_lines(f"stress{'' if action == 'run' else ' ' + action}: {text}"), file=sys.stderr)


def told(action: str, function: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """``function`` with every error said, and exit code 1 for it; wrong arguments are the caller's, 2."""

    def run(options: argparse.Namespace) -> int:
        try:
            return function(options)
        except UsageError:
            raise
        except (NodeproofError, ConfigError) as error:
            complain(action, str(error))
            return _FAILED

    return run
