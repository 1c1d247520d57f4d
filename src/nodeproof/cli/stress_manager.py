"""What the actions of ``nodeproof stress`` share: the manager out of configuration and environment, and how errors are told."""

import argparse
from collections.abc import Callable, Mapping

from nodeproof.cli import told as say
from nodeproof.cli.options import load_config
from nodeproof.cli.told import read_by_a_program
from nodeproof.config.schema import Config
from nodeproof.errors import UsageError
from nodeproof.runs.ports import Switches
from nodeproof.stress.facade import StressFacade
from nodeproof.stress.manager import Manager
from nodeproof.stress.runner.place import SOCKET_VARIABLE, may_own
from nodeproof.stress.selection import no_item
from nodeproof.stress.settings import BENCHMARKS, StressSettings
from nodeproof.stress.sizing import Plan

__all__ = ["as_json", "complain", "item_name", "make_manager", "manager_of", "owner_of", "plan_of", "told"]


def make_manager(options: argparse.Namespace) -> StressFacade:
    """Whoever owns stress jobs on this machine.

    Raises ConfigError, and RunError where that is a runner which this user may not ask.
    """
    return owner_of(load_config(options), options.environ)


def owner_of(config: Config, variables: Mapping[str, str]) -> StressFacade:
    """The runner, when one runs here; else a manager of this process. Raises as :func:`make_manager`."""
    named = variables.get(SOCKET_VARIABLE, "")
    if not may_own(named):
        return manager_of(config, variables)
    from nodeproof.stress.runner.remote import RemoteManager, runner_socket  # noqa: PLC0415 - brings an HTTP client along

    path = runner_socket(named)
    return RemoteManager(path) if path is not None else manager_of(config, variables)


def manager_of(config: Config, variables: Mapping[str, str]) -> Manager:
    """The manager by ``config``. Raises ConfigError."""
    environ = dict(variables)
    return Manager(
        StressSettings.of(config, environ),
        environ=environ,
        switches=Switches.of(environ),
    )


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan asked for."""
    return Plan(options.plan)


def item_name(text: str) -> str:
    """The item that ``text`` names. Raises UsageError where there is none of that name."""
    name = text.strip().lower()
    if name not in BENCHMARKS:
        raise UsageError(no_item(name))
    return name


def as_json(options: argparse.Namespace) -> bool:
    """Whether a program reads the output."""
    return read_by_a_program(options.output)


def complain(action: str, text: str) -> None:
    """Say an error the way the reference does."""
    say.complain(_words(action), text)


def told(action: str, function: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """``function`` with every error said, see :func:`nodeproof.cli.told.told`."""
    return say.told(_words(action), function)


def _words(action: str) -> str:
    return "stress" if action == "run" else f"stress {action}"
