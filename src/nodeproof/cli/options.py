"""What the common options mean."""

import argparse
import os

from nodeproof.config.resolve import defaults, find
from nodeproof.config.schema import Config
from nodeproof.errors import UsageError

__all__ = ["load_config", "machine_root"]


def load_config(options: argparse.Namespace) -> Config:
    """The configuration in force. Raises ConfigError."""
    path = find(options.config, options.environ, os.path.exists)
    if path is None:
        return defaults(options.environ)
    from nodeproof.config.loader import load  # noqa: PLC0415 - a YAML parser only where there is YAML

    return load(path, options.environ)


def machine_root(options: argparse.Namespace) -> str:
    """Root of the machine to observe. Raises UsageError when it has no ``/proc``."""
    root = str(options.root)
    if not os.path.isdir(os.path.join(root, "proc")):
        raise UsageError(f"--root {root}: has no folder proc; mount the host's root there, or leave the option out")
    return root
