"""The configuration in force: what a file says, over what holds where it says nothing.

Kept apart from the loader: a daemon on built-in defaults never loads a YAML parser.
"""

from collections.abc import Mapping
from typing import cast

import msgspec

from nodeproof.config.places import default_directories
from nodeproof.config.schema import Config

__all__ = ["build", "defaults"]


def defaults(environ: Mapping[str, str]) -> Config:
    """What holds where no file says otherwise. Raises ConfigError as :func:`build`."""
    return build({}, "built-in defaults", (), environ)


def build(tree: dict[str, object], source: str, warnings: tuple[str, ...], environ: Mapping[str, str]) -> Config:
    """Put the default directories under what the file says, and convert the whole to structs at once.

    Raises ConfigError for a variable that names no absolute path.
    """
    plain: dict[str, object] = dict(tree)
    for section, default in default_directories(environ).items():
        plain[section] = default | cast("dict[str, str]", tree.get(section, {}))
    data_dir = cast("dict[str, str]", plain["storage"])["data_dir"]
    plain["faultsub"] = {"dir": f"{data_dir}/faults"} | cast("dict[str, str]", tree.get("faultsub", {}))
    return msgspec.convert(plain | {"source": source, "warnings": warnings}, Config)
