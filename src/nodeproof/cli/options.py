"""What the common options mean."""

import argparse
import os
import sys

import msgspec

from nodeproof.cli.places import config_file, with_home
from nodeproof.config.resolve import defaults
from nodeproof.config.schema import Config
from nodeproof.errors import CommandError, ConfigError, UsageError

__all__ = ["load_config", "load_config_apart", "machine_root"]

_CHILD_DEADLINE_S = 20.0
_CHILD_REFUSES = 2


def load_config(options: argparse.Namespace) -> Config:
    """The configuration in force. Raises ConfigError."""
    environ = with_home(options.environ)
    path = config_file(options, environ)
    if path is None:
        return defaults(environ)
    from nodeproof.config.loader import load  # noqa: PLC0415 - a YAML parser only where there is YAML

    return load(path, environ)


def load_config_apart(options: argparse.Namespace) -> Config:
    """The configuration in force, its file read by a child process: for a process that lives long. Raises ConfigError."""
    environ = with_home(options.environ)
    path = config_file(options, environ)
    if path is None:
        return defaults(environ)
    from nodeproof.host.commands import HostCommands  # noqa: PLC0415 - the other commands need no subprocess

    try:
        child = HostCommands().run([sys.executable, "-m", "nodeproof.cli.config_child", path], deadline_s=_CHILD_DEADLINE_S)
        if child.exit_code == 0:
            return msgspec.json.decode(child.stdout, type=Config)
    except (CommandError, msgspec.MsgspecError):
        return load_config(options)
    if child.exit_code == _CHILD_REFUSES:
        raise ConfigError("", child.stdout.decode("utf-8", "replace"))
    return load_config(options)


def machine_root(options: argparse.Namespace) -> str:
    """Root of the machine to observe. Raises UsageError when it has no ``/proc``."""
    root = str(options.root)
    if not os.path.isdir(os.path.join(root, "proc")):
        raise UsageError(f"--root {root}: has no folder proc; mount the host's root there, or leave the option out")
    return root
