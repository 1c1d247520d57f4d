"""Plug-ins that installed distributions offer.

``importlib.metadata`` answers the same question for 3.3 MiB of memory and 10 ms of start-up, since it loads the mail and zip
libraries; the daemon reads the ``entry_points.txt`` files themselves. Format: the entry points specification of the Python
Packaging User Guide.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

from nodeproof.errors import NodeproofError

__all__ = ["EntryPoint", "entry_points", "offers", "parse_entry_points"]


class EntryPoint(NamedTuple):
    """One offer: ``name = module:attribute``."""

    name: str
    target: str
    distribution: str
    """Folder of its metadata, for messages."""

    def load(self) -> object:
        """Import what it names. Raises NodeproofError naming the plug-in."""
        module, _, attributes = self.target.partition(":")
        try:
            found: object = import_module(module)
            for attribute in attributes.split(".") if attributes else ():
                found = getattr(found, attribute)
        except (Exception, SystemExit) as error:
            text = f"plug-in {self.name} ({self.target} of {self.distribution}) cannot be loaded: {error}"
            raise NodeproofError(text) from error
        return found


def entry_points(group: str, folders: Iterable[str] | None = None) -> list[EntryPoint]:
    """All offers of ``group`` on the module search path, sorted by name; of two with one name the first found counts."""
    found: dict[str, EntryPoint] = {}
    for point in offers(group, folders):
        found.setdefault(point.name, point)
    return sorted(found.values())


def offers(group: str, folders: Iterable[str] | None = None) -> list[EntryPoint]:
    """All offers of ``group`` in the order of the module search path, rivals for one name included.

    One distribution that is found twice (a folder that stands twice on the path, an editable install) offers once.
    """
    found: dict[tuple[str, str], EntryPoint] = {}
    for folder in sys.path if folders is None else folders:
        for metadata in _metadata_folders(folder):
            try:
                with open(os.path.join(metadata, "entry_points.txt"), encoding="utf-8", errors="replace") as file:
                    text = file.read()
            except OSError:
                continue
            for name, target in parse_entry_points(text, group):
                found.setdefault((name, target), EntryPoint(name, target, os.path.basename(metadata)))
    return list(found.values())


def parse_entry_points(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Name and target of each line in section ``[group]``; extras in brackets are left out."""
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            yield name.strip(), target.partition("[")[0].strip()


def _metadata_folders(folder: str) -> list[str]:
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return sorted(os.path.join(folder or ".", name) for name in names if name.endswith((".dist-info", ".egg-info")))
