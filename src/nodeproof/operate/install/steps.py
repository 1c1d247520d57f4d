"""Steps of an installation: what each would change, said before, made in order, and undone from a journal.

The journal is written before a step is made, so an installation that was killed half-way is undone as one that came to its end.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from nodeproof.errors import CommandError, NodeproofError, RecordError, WriteError
from nodeproof.host.atomic import make_directory, store_file, write_error
from nodeproof.host.commands import Commands

__all__ = ["Action", "Change", "FileStep", "InstallError", "Journal", "RunStep", "Step", "apply", "plan", "undo", "undo_plan"]

_SCHEMA = 1
_MAX_JOURNAL_BYTES = 4 * 1024 * 1024
_COMMAND_S = 60.0
_PUBLIC_FILE = 0o644
_PUBLIC_DIRECTORY = 0o755


class InstallError(NodeproofError):
    """An installation cannot be made or undone; what was done is undone."""


class Action(StrEnum):
    """What a step does to the machine."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    RESTORE = "restore"
    REMOVE = "remove"
    RUN = "run"


class Change(msgspec.Struct, frozen=True):
    """One line of a plan."""

    action: Action
    what: str
    """A path, or a command line."""
    why: str


class FileStep(msgspec.Struct, frozen=True, kw_only=True):
    """Put ``text`` at ``path``."""

    path: str
    text: str
    why: str
    keep: bool = False
    """The administrator's once it is there: never replaced."""


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """Run a program that makes what was written count."""

    argv: tuple[str, ...]
    """Empty = only :attr:`undo` runs one."""
    why: str
    undo: tuple[str, ...] = ()
    """What takes it back; empty = nothing need be."""


Step = FileStep | RunStep


class _Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one step did."""

    path: str = ""
    sha256: str = ""
    """Of what was put there."""
    before: str = ""
    """Copy of what was there; empty = nothing was."""
    mode: int = 0
    owner: tuple[int, int] = (0, 0)
    """Mode, user and group of what was there."""
    folders: list[str] = []
    """Directories that were made for it, outermost first."""
    keep: bool = False
    undo: list[str] = []
    why: str = ""


class _Record(msgspec.Struct, kw_only=True):
    schema: int = _SCHEMA
    version: str
    entries: list[_Entry] = []


class Journal:
    """What was done to the machine below ``root``, kept in ``<root>/var/lib/nodeproof-install/journal.json``."""

    FOLDER = "/var/lib/nodeproof-install"

    def __init__(self, root: str, version: str) -> None:
        self.root = root.rstrip("/")
        self.folder = f"{self.root}{self.FOLDER}"
        self._path = f"{self.folder}/journal.json"
        self._record = _Record(version=version)
        self._version = version

    def load(self) -> bool:
        """Read what an earlier installation wrote; False when there is none. Raises RecordError."""
        try:
            with open(self._path, "rb") as file:
                data = file.read(_MAX_JOURNAL_BYTES)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise RecordError(f"{self._path}: {os.strerror(error.errno or 0)}") from None
        try:
            self._record = msgspec.json.decode(data, type=_Record)
        except msgspec.DecodeError as error:
            raise RecordError(f"{self._path}: {error}; put it right or move it away, and remove the files by hand") from None
        if self._record.schema != _SCHEMA:
            raise RecordError(f"{self._path}: schema {self._record.schema}; the nodeproof that wrote it can undo it")
        return True

    def entry(self, path: str) -> _Entry | None:
        """What is known of ``path``."""
        return next((entry for entry in self._record.entries if entry.path == path), None)

    def note(self, entry: _Entry) -> None:
        """Remember before it is done. Raises WriteError."""
        kept = [one for one in self._record.entries if not (one.path and one.path == entry.path) and one != entry]
        self._record = _Record(version=self._version, entries=[*kept, entry])
        self._save()

    def forget(self, entry: _Entry) -> None:
        """It is undone. Raises WriteError."""
        self._record.entries = [one for one in self._record.entries if one is not entry]
        self._save()

    def entries(self) -> list[_Entry]:
        """In the order in which they were done."""
        return list(self._record.entries)

    def close(self) -> None:
        """Nothing is left to be undone: remove the journal itself."""
        if not self._record.entries:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
                os.rmdir(self.folder)

    def keep_copy(self, path: str) -> str:
        """A copy of the file at ``path``; where it lies. Raises WriteError."""
        copy = f"{self.folder}/{hashlib.sha256(path.encode()).hexdigest()[:16]}.before"
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            raise write_error(path, error) from None
        store_file(copy, data)
        return copy

    def _save(self) -> None:
        store_file(self._path, msgspec.json.format(msgspec.json.encode(self._record), indent=1))


def plan(steps: Sequence[Step], journal: Journal, *, force: bool = False) -> list[Change]:
    """What :func:`apply` would do. Raises InstallError for a file that is somebody else's."""
    changes = []
    for step in steps:
        if isinstance(step, RunStep):
            changes += [Change(Action.RUN, " ".join(step.argv), step.why)] if step.argv else []
            continue
        action = _action(step, journal, force=force)
        if action is not None:
            changes.append(Change(action, step.path, step.why))
    return changes


def apply(steps: Sequence[Step], journal: Journal, commands: Commands, *, force: bool = False) -> list[Change]:
    """Make all steps; what was done. Raises InstallError or WriteError, and then this call's steps are undone."""
    plan(steps, journal, force=force)
    done: list[Change] = []
    noted: list[_Entry] = []
    try:
        for step in steps:
            if isinstance(step, RunStep):
                done += _run(step, journal, commands, noted)
            elif (action := _action(step, journal, force=force)) is not None:
                done.append(Change(action, step.path, step.why))
                if action is not Action.KEEP:
                    _put(step, journal, action, noted)
    except NodeproofError as error:
        left = []
        for entry in reversed(noted):
            try:
                _take_back(entry, journal, commands)
            except NodeproofError as trouble:
                left.append(str(trouble))
        journal.close()
        if left:
            raise InstallError(f"{error}; and what was done could not all be taken back: {'; '.join(left)}") from None
        raise
    return done


def undo_plan(journal: Journal) -> list[Change]:
    """What :func:`undo` would do."""
    return [_undoing(entry) for entry in reversed(journal.entries())]


def undo(journal: Journal, commands: Commands) -> tuple[list[Change], list[str]]:
    """Take everything back, newest first; what was done, and what could not be."""
    done, troubles = [], []
    for entry in reversed(journal.entries()):
        try:
            done.append(_take_back(entry, journal, commands))
        except NodeproofError as error:
            troubles.append(str(error))
    journal.close()
    return done, troubles


def _action(step: FileStep, journal: Journal, *, force: bool) -> Action | None:
    """What happens to the file; None = it is there already. Raises InstallError."""
    there = _digest(step.path)
    if there is None:
        return Action.CREATE
    if there == _sha256(step.text.encode()):
        return None
    known = journal.entry(step.path)
    if step.keep:
        return Action.KEEP
    if force or (known is not None and known.sha256 == there):
        return Action.REPLACE
    raise InstallError(
        f"{step.path} is there and is not as nodeproof wrote it; move your changes to a drop-in, or replace it with --force"
        " (a copy is kept, and uninstall puts it back)"
    )


def _put(step: FileStep, journal: Journal, action: Action, noted: list[_Entry]) -> None:
    known = journal.entry(step.path)
    before = known.before if known is not None else ""
    mode, owner = (known.mode, known.owner) if known is not None else (0, (0, 0))
    if action is Action.REPLACE and known is None:
        facts = os.lstat(step.path)
        mode, owner = stat.S_IMODE(facts.st_mode), (facts.st_uid, facts.st_gid)
        before = journal.keep_copy(step.path)
    folder = os.path.dirname(step.path)
    made = known.folders if known is not None else _missing(folder, journal.root or "/")
    entry = _Entry(
        path=step.path,
        sha256=_sha256(step.text.encode()),
        before=before,
        mode=mode,
        owner=owner,
        folders=made,
        keep=step.keep,
        why=step.why,
    )
    journal.note(entry)
    if known is None:
        noted.append(entry)
    make_directory(folder)
    for one in made:
        with contextlib.suppress(OSError):
            os.chmod(one, _PUBLIC_DIRECTORY)
    store_file(step.path, step.text.encode(), mode=_PUBLIC_FILE)


def _run(step: RunStep, journal: Journal, commands: Commands, noted: list[_Entry]) -> list[Change]:
    if step.undo:
        entry = _Entry(undo=list(step.undo), why=step.why)
        journal.note(entry)
        noted.append(entry)
    if not step.argv:
        return []
    _command(step.argv, commands)
    return [Change(Action.RUN, " ".join(step.argv), step.why)]


def _command(argv: Sequence[str], commands: Commands) -> None:
    try:
        result = commands.run(argv, deadline_s=_COMMAND_S)
    except CommandError as error:
        raise InstallError(f"{' '.join(argv)}: {error}") from None
    if result.exit_code != 0:
        raise InstallError(f"{' '.join(argv)}: exit status {result.exit_code}: {result.first_error_line() or 'it said nothing'}")


def _undoing(entry: _Entry) -> Change:
    if entry.undo:
        return Change(Action.RUN, " ".join(entry.undo), f"takes back: {entry.why}")
    there = _digest(entry.path)
    if there is not None and there != entry.sha256:
        return Change(Action.KEEP, entry.path, "it was changed since it was installed")
    if entry.before:
        return Change(Action.RESTORE, entry.path, "as it was before")
    return Change(Action.REMOVE, entry.path, entry.why)


def _take_back(entry: _Entry, journal: Journal, commands: Commands) -> Change:
    change = _undoing(entry)
    try:
        if change.action is Action.RUN:
            if commands.find(entry.undo[0]) is not None:  # what is not there has done nothing either
                _command(entry.undo, commands)
        elif change.action is Action.RESTORE:
            _restore(entry)
        elif change.action is Action.REMOVE:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.path)
    except OSError as error:
        raise write_error(entry.path, error) from None
    for folder in reversed(entry.folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    journal.forget(entry)
    return change


def _restore(entry: _Entry) -> None:
    """Put back what was there, with its mode and owner; the copy may lie on another file system. Raises OSError, WriteError."""
    with open(entry.before, "rb") as file:
        store_file(entry.path, file.read(), mode=entry.mode)
    os.chown(entry.path, *entry.owner)
    os.unlink(entry.before)


def _missing(folder: str, root: str) -> list[str]:
    """Directories that are not there yet, outermost first."""
    found: list[str] = []
    while folder not in {root, "/"} and not os.path.isdir(folder):
        found.insert(0, folder)
        folder = os.path.dirname(folder)
    return found


def _digest(path: str) -> str | None:
    """Of a regular file; None when nothing is there. Raises InstallError for anything else: nothing is written through a link."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InstallError(f"{path}: {os.strerror(error.errno or 0)}") from None
    if not stat.S_ISREG(facts.st_mode):
        raise InstallError(f"{path} is no regular file; move it away")
    try:
        with open(path, "rb") as file:
            return _sha256(file.read())
    except OSError as error:
        raise WriteError(path, os.strerror(error.errno or 0)) from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
