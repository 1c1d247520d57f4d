"""The snapshot directory as viewers see it: each file decoded once when it changes, however many ask.

A file counts as changed when inode, size or time of change do. What cannot be believed (half a file, a schema from the future, a
name that does not match) is told as a problem of that file, and its neighbours are shown.
"""

import os
import stat
from typing import NamedTuple

import msgspec

from nodeproof.clock import Clock, SystemClock
from nodeproof.model.metric import Metric
from nodeproof.model.snapshot import SCHEMA_VERSION, CompSnapshot, DaemonState, GlobalSnapshot
from nodeproof.sinks.snapshot_names import GLOBAL_FILE, component_of_file
from nodeproof.sinks.snapshot_reader import read_state

__all__ = ["WHOLE", "Feed", "Part", "Stamp", "View", "all_specs"]

WHOLE = "snapshot"
"""Key of ``snapshot.json`` among the parts; no component may be called so in it."""
_LOOK_EVERY_S = 0.2
_MAX_BYTES = 64 * 1024 * 1024
_encode = msgspec.json.Encoder().encode

Stamp = tuple[int, int, int]


class Part(NamedTuple):
    """One file."""

    content: GlobalSnapshot | CompSnapshot
    json: bytes
    """The content on one line, with nothing in it that is not of the format."""
    version: int
    """Grows with each change of any file."""


class View(NamedTuple):
    """The directory at one moment."""

    whole: GlobalSnapshot | None
    components: dict[str, CompSnapshot]
    parts: dict[str, Part]
    problems: dict[str, str]
    """What was wrong with a file, by its name."""
    state: DaemonState
    version: int
    """Changes when a file, a problem, or what may be believed does; ages alone do not change it."""


class _Schema(msgspec.Struct):
    schema: int = SCHEMA_VERSION


class Feed:
    """Looks at ``directory`` when asked, at most five times a second. For one thread."""

    def __init__(self, directory: str, clock: Clock | None = None) -> None:
        self.directory = directory
        self.decoded = 0
        """Files decoded so far."""
        self._clock = clock or SystemClock()
        self._stamps: dict[str, Stamp] = {}
        self._parts: dict[str, Part] = {}
        self._problems: dict[str, str] = {}
        self._belief: object = None
        self._version = 0
        self._view: View | None = None
        self._looked_s = 0.0

    def look(self) -> View:
        """The directory now. Never raises: what is wrong stands in the view."""
        now_s = self._clock.now().mono_s
        if self._view is not None and 0 <= now_s - self._looked_s < _LOOK_EVERY_S:
            return self._view
        self._looked_s = now_s
        changed = self._read_changes()
        state = read_state(self.directory, self._clock)
        belief = (state.verdict, tuple(name for name, age in state.components.items() if age.fresh))
        if changed or belief != self._belief:
            self._belief = belief
            self._version += 1
        contents = {name: part.content for name, part in self._parts.items()}
        whole = contents.pop(WHOLE, None)
        self._view = View(
            whole=whole if isinstance(whole, GlobalSnapshot) else None,
            components={name: content for name, content in contents.items() if isinstance(content, CompSnapshot)},
            parts=dict(self._parts),
            problems=dict(self._problems),
            state=state,
            version=self._version,
        )
        return self._view

    def _read_changes(self) -> bool:
        """Read files that changed, forget those that went; whether there were any."""
        stamps, problems = self._list()
        changed = problems != {name: text for name, text in self._problems.items() if name not in stamps}
        for name in self._stamps.keys() - stamps.keys():
            self._parts.pop(_key(name), None)
            changed = True
        self._problems = problems | {name: text for name, text in self._problems.items() if name in stamps}
        for name in sorted(stamps):
            if self._stamps.get(name) == stamps[name]:
                continue
            changed = True
            self._problems.pop(name, None)
            self._parts.pop(_key(name), None)
            try:
                self._parts[_key(name)] = self._decode(name)
            except (OSError, ValueError, msgspec.MsgspecError) as error:
                self._problems[name] = str(error)
        self._stamps = stamps
        return changed

    def _list(self) -> tuple[dict[str, Stamp], dict[str, str]]:
        """Marks of the snapshot files there, and what is wrong with the folder or with what only looks like one."""
        stamps: dict[str, Stamp] = {}
        try:
            names = [name for name in os.listdir(self.directory) if _is_ours(name)]
        except OSError as error:
            return {}, {self.directory: error.strerror or str(error)}
        problems: dict[str, str] = {}
        for name in names:
            try:
                found = os.stat(os.path.join(self.directory, name), follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                problems[name] = error.strerror or str(error)
                continue
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
                problems[name] = "it is no regular file of at most 64 MiB"
                continue
            stamps[name] = (found.st_ino, found.st_size, found.st_mtime_ns)
        return stamps, problems

    def _decode(self, name: str) -> Part:
        """Raises OSError, ValueError, msgspec.MsgspecError."""
        with open(os.path.join(self.directory, name), "rb", buffering=0) as file:
            raw = file.read()
        self.decoded += 1
        schema = msgspec.json.decode(raw, type=_Schema).schema
        if schema != SCHEMA_VERSION:
            raise ValueError(f"it is of schema {schema}, and this program knows {SCHEMA_VERSION}")
        content: GlobalSnapshot | CompSnapshot
        if name == GLOBAL_FILE:
            content = msgspec.json.decode(raw, type=GlobalSnapshot)
        else:
            content = msgspec.json.decode(raw, type=CompSnapshot)
            if content.component != component_of_file(name):
                raise ValueError(f"it is of component {content.component[:80]!r}, which its name does not say")
        return Part(content, _encode(content), self._version + 1)


def _is_ours(name: str) -> bool:
    return name == GLOBAL_FILE or component_of_file(name) not in {None, WHOLE}


def _key(name: str) -> str:
    return WHOLE if name == GLOBAL_FILE else component_of_file(name) or name


def all_specs(view: View) -> list[Metric]:
    """What the node is made of: the whole first, then by component."""
    specs = list(view.whole.system_specs) if view.whole is not None else []
    for component in view.components.values():
        specs += component.specs
    return specs
