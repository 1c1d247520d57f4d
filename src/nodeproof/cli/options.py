"""What the common options mean."""

import argparse
import contextlib
import os
from collections.abc import Mapping

from nodeproof.config.resolve import defaults, find
from nodeproof.config.schema import Config
from nodeproof.errors import UsageError

__all__ = ["load_config", "machine_root"]


def load_config(options: argparse.Namespace) -> Config:
    """The configuration in force. Raises ConfigError."""
    environ = _with_home(options.environ)
    path = find(options.config, environ, os.path.exists)
    if path is None:
        return defaults(environ)
    from nodeproof.config.loader import load  # noqa: PLC0415 - a YAML parser only where there is YAML

    return load(path, environ)


def _with_home(environ: Mapping[str, str]) -> Mapping[str, str]:
    """``environ`` with a HOME: services are started without one, and their default directories must not be somebody else's."""
    if environ.get("HOME", "").startswith("/"):
        return environ
    import pwd  # noqa: PLC0415 - seldom needed

    with contextlib.suppress(KeyError):
        return {**environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir}
    return {name: text for name, text in environ.items() if name != "HOME"}


def machine_root(options: argparse.Namespace) -> str:
    """Root of the machine to observe. Raises UsageError when it has no ``/proc``."""
    root = str(options.root)
    if not os.path.isdir(os.path.join(root, "proc")):
        raise UsageError(f"--root {root}: has no folder proc; mount the host's root there, or leave the option out")
    return root
