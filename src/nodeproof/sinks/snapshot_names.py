"""Names of the files in a snapshot directory; apart from their writer, so that who only reads need not load it."""

import re

from nodeproof.errors import SnapshotError

__all__ = ["GLOBAL_FILE", "component_file", "component_of_file"]

GLOBAL_FILE = "snapshot.json"
_COMPONENT = re.compile(r"[a-z][a-z0-9_]{0,63}")
_COMPONENT_FILE = re.compile(r"snapshot_([a-z][a-z0-9_]{0,63})\.json")


def component_file(component: str) -> str:
    """Name of the file of ``component``. Raises SnapshotError for a name that cannot be part of a file name."""
    if _COMPONENT.fullmatch(component) is None:
        raise SnapshotError(f"component {component[:80]!r} cannot have a snapshot: its name must match {_COMPONENT.pattern}")
    return f"snapshot_{component}.json"


def component_of_file(name: str) -> str | None:
    """The component whose file is called ``name``; None for any other file."""
    match = _COMPONENT_FILE.fullmatch(name)
    return match[1] if match else None
