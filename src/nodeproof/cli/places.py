"""Where the configuration file and the snapshot directory are; as light as ``check`` needs it."""

import argparse
import contextlib
import os
from collections.abc import Mapping

from nodeproof.config.places import default_directories, find

__all__ = ["config_file", "snapshot_directory", "with_home"]


def config_file(options: argparse.Namespace, environ: Mapping[str, str]) -> str | None:
    """The file that holds; None = built-in defaults."""
    return find(options.config, environ, os.path.exists)


def snapshot_directory(options: argparse.Namespace) -> str:
    """``snapshot.dir`` of the configuration in force, all of which is judged. Raises ConfigError."""
    environ = with_home(options.environ)
    path = config_file(options, environ)
    directory = default_directories(environ)["snapshot"]["dir"]
    if path is None:
        return directory
    from nodeproof.config.judge import read  # noqa: PLC0415 - a YAML parser only where there is YAML

    section = read(path).tree.get("snapshot")
    return str(section.get("dir", directory)) if isinstance(section, dict) else directory


def with_home(environ: Mapping[str, str]) -> Mapping[str, str]:
    """``environ`` with a HOME: services are started without one, and their default directories must not be somebody else's."""
    if environ.get("HOME", "").startswith("/"):
        return environ
    import pwd  # noqa: PLC0415 - seldom needed

    with contextlib.suppress(KeyError):
        return {**environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir}
    return {name: text for name, text in environ.items() if name != "HOME"}
