"""A recorded machine on disk, and the machine that reads it: what was once asked of a node, answered again.

::

    recorded.json           RecordedLook: when, and what no tree of files can say (absences, links, programs, space, NVML)
    proc/ sys/ etc/ ...     the files of the first look, below their own paths
    later/1/ later/2/ ...   the same for the looks after it, only what is new or other than in the look before

Links are texts in ``recorded.json``, never links on disk: nothing in a recording leads out of its folder.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nodeproof.clock import Instant
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData, RecordError
from nodeproof.host.commands import CommandResult
from nodeproof.host.files import legible
from nodeproof.host.filesystems import Space
from nodeproof.host.nvml import NvmlCard
from nodeproof.host.recorded import RecordedCommands, RecordedFiles
from nodeproof.host.recording import GatedMachine, Look, Question, cards_key

__all__ = ["RECORDED", "ReplayMachine", "pack_looks"]

RECORDED = "recorded.json"
_SCHEMA = 1
_MAX_BYTES = 64 << 20
_MAX_LOOKS = 16


class _Gone(msgspec.Struct, frozen=True, array_like=True):
    """Why there was no answer."""

    state: Absence
    reason: str
    remedy: str = ""


class _Ran(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a program left; bytes that are no UTF-8 are replaced, as every parser does."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    failure: CommandFailure | None = None
    detail: str = ""


class _RecordedLook(msgspec.Struct, omit_defaults=True, kw_only=True):
    """``recorded.json``."""

    schema: int = _SCHEMA
    wall_s: float
    mono_s: float
    absences: dict[str, _Gone] = {}
    """``read:/sys/...``, ``names:...``, ``link:...``, ``space:...``, ``sockets:2``, ``adjtimex:``, ``cards:...``."""
    names: dict[str, list[str]] = {}
    """Listings that the files beside it do not show: of later looks."""
    links: dict[str, str] = {}
    spaces: dict[str, list[int]] = {}
    unreadable: list[str] = []
    exist: list[str] = []
    """Seen."""
    gone: list[str] = []
    """Looked for, and not there."""
    sockets: dict[str, str] = {}
    """By address family, hexadecimal."""
    adjtimex: str = ""
    commands: dict[str, _Ran] = {}
    programs: dict[str, str] = {}
    cards: dict[str, list[NvmlCard]] = {}


def pack_looks(looks: Sequence[Look]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of a recording, in order of names a look."""
    before: dict[Question, object] = {}
    for number, look in enumerate(looks):
        folder = f"later/{number}/" if number else ""
        answers = {**look.answers, **_aliases(look.answers)}
        fresh = {question: answer for question, answer in answers.items() if not _same(before.get(question), answer)}
        yield folder + RECORDED, _document(look, fresh, later=bool(number))
        yield from _tree(folder, fresh, later=bool(number))
        before.update(fresh)


def _aliases(answers: Mapping[Question, object]) -> dict[Question, object]:
    """What a collector asks for in place of this below a moved root: there, its own mounts are not the machine's."""
    own, moved = ("read", "/proc/self/mountinfo"), ("read", "/proc/1/mountinfo")
    return {moved: answers[own]} if own in answers else {}


def _same(old: object, new: object) -> bool:
    return old is not None and (str(old) == str(new) if isinstance(new, NoData | CommandError) else old == new)


def _tree(folder: str, answers: Mapping[Question, object], *, later: bool) -> Iterator[tuple[str, bytes]]:
    """Files with their content; an empty one for each name of a listing that nothing more is known of."""
    files = {asked: answer for (kind, asked), answer in answers.items() if kind == "read" and isinstance(answer, bytes)}
    folders = {asked for (kind, asked), answer in answers.items() if kind == "names" and isinstance(answer, list)}
    known = {parent for path in (*files, *folders) for parent in _parents(path)} | folders
    if not later:
        listed = {
            f"{asked.rstrip('/')}/{name}"
            for (kind, asked), answer in answers.items()
            if kind == "names" and isinstance(answer, list)
            for name in answer
        }
        for path in listed - known - files.keys():
            files[path] = b""
    for path in sorted(files):
        if path not in known and not any(parent in files for parent in _parents(path)):
            yield folder + path.lstrip("/"), files[path]


def _parents(path: str) -> Iterator[str]:
    while (path := path.rpartition("/")[0]) not in {"", "/"}:
        yield path


def _document(look: Look, answers: Mapping[Question, object], *, later: bool) -> bytes:
    found = _RecordedLook(wall_s=look.at.wall_s, mono_s=look.at.mono_s)
    for (kind, asked), answer in sorted(answers.items()):
        if isinstance(answer, NoData):
            found.absences[f"{kind}:{asked}"] = _Gone(answer.state, answer.reason, answer.remedy)
        elif kind in _NOTE and (later or kind != "names" or not answer):
            _NOTE[kind](found, asked, answer)
    return msgspec.json.format(msgspec.json.encode(_printable(found)), indent=1) + b"\n"


def _note_exists(found: _RecordedLook, asked: str, answer: object) -> None:
    (found.exist if answer else found.gone).append(asked)


def _note_can_read(found: _RecordedLook, asked: str, answer: object) -> None:
    if not answer:
        found.unreadable.append(asked)


def _note_program(found: _RecordedLook, asked: str, answer: object) -> None:
    if answer is not None:
        found.programs[asked] = str(answer)


_NOTE: dict[str, Callable[[_RecordedLook, str, Any], None]] = {
    "adjtimex": lambda found, _, answer: setattr(found, "adjtimex", answer.decode("utf-8", "replace")),
    "can_read": _note_can_read,
    "cards": lambda found, asked, answer: found.cards.__setitem__(asked, answer),
    "exists": _note_exists,
    "find": _note_program,
    "link": lambda found, asked, answer: found.links.__setitem__(asked, answer),
    "names": lambda found, asked, answer: found.names.__setitem__(asked, answer),
    "run": lambda found, asked, answer: found.commands.__setitem__(asked, _ran(answer)),
    "sockets": lambda found, asked, answer: found.sockets.__setitem__(asked, answer.hex()),
    "space": lambda found, asked, answer: found.spaces.__setitem__(asked, list(answer)),
}
"""Where each kind of answer goes."""


def _printable(found: _RecordedLook) -> object:
    """With names that are no UTF-8 as messages show them: JSON holds no others."""

    def shown(value: object) -> object:
        if isinstance(value, str):
            return legible(value)
        if isinstance(value, list):
            return [shown(one) for one in value]
        if isinstance(value, dict):
            return {legible(str(key)): shown(one) for key, one in value.items()}
        return value

    return shown(msgspec.to_builtins(found))


def _ran(answer: object) -> _Ran:
    if isinstance(answer, CommandError):
        return _Ran(failure=answer.failure, detail=answer.detail)
    if not isinstance(answer, CommandResult):
        return _Ran(failure=CommandFailure.NOT_FOUND, detail="no answer was kept")
    out, err = (text.decode("utf-8", "replace") for text in (answer.stdout, answer.stderr))
    return _Ran(answer.exit_code, out, err, truncated=answer.truncated)


class _Playback:
    """The looks of a recording, and which of them is the present."""

    def __init__(self, root: str) -> None:
        self.looks = [_read_look(os.path.join(root, RECORDED))]
        self.roots = [root]
        while os.path.isdir(folder := os.path.join(root, "later", str(len(self.looks)))):
            if len(self.looks) == _MAX_LOOKS:
                raise RecordError(f"{folder}: a recording has at most {_MAX_LOOKS} looks")
            self.looks.append(_read_look(os.path.join(folder, RECORDED)))
            self.roots.append(folder)
        self.number = 0

    def now(self) -> Instant:
        """When the present look began."""
        look = self.looks[self.number]
        return Instant(look.wall_s, look.mono_s)

    def sleep(self, seconds: float) -> None:
        """Go on to the next look, if there is one; nobody waits."""
        del seconds
        self.number = min(self.number + 1, len(self.looks) - 1)

    def newest_first(self) -> Iterator[tuple[_RecordedLook, str]]:
        """The present look and those before it, each with its folder."""
        for number in range(self.number, -1, -1):
            yield self.looks[number], self.roots[number]


def _read_look(path: str) -> _RecordedLook:
    try:
        with open(path, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise RecordError(f"{path}: more than {_MAX_BYTES} bytes")
        look = msgspec.json.decode(raw, type=_RecordedLook)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}; expected the folder of a recorded machine") from None
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: {error}") from None
    if look.schema != _SCHEMA:
        raise RecordError(f"{path}: schema {look.schema}; this nodeproof reads {_SCHEMA}")
    return look


class _ReplayFiles(RecordedFiles):
    """Files of a recording, as they were in the present look."""

    def __init__(self, root: str, playback: _Playback) -> None:
        super().__init__(root)
        self._playback = playback

    def read(self, path: str) -> bytes:
        """As it was. Raises NoData."""
        for look, root in self._playback.newest_first():
            self._raise("read", path, look)
            real = f"{root}{path}"
            if os.path.isfile(real):
                return self._read_once(real)
        return super().read(path)

    def read_kept(self, path: str) -> bytes:
        """The same. Raises NoData."""
        return self.read(path)

    def names(self, path: str) -> list[str]:
        """As it was. Raises NoData."""
        for look, _ in self._playback.newest_first():
            self._raise("names", path, look)
            if path in look.names:
                return list(look.names[path])
        return super().names(path)

    def exists(self, path: str) -> bool:
        """As it was."""
        for look, root in self._playback.newest_first():
            if path in look.gone:
                return False
            if path in look.exist or os.path.exists(f"{root}{path}"):
                return True
        return False

    def can_read(self, path: str) -> bool:
        """As it was."""
        for look, _ in self._playback.newest_first():
            if path in look.unreadable:
                return False
        return self.exists(path)

    def link_target(self, path: str) -> str:
        """As it was. Raises NoData."""
        for look, _ in self._playback.newest_first():
            self._raise("link", path, look)
            if path in look.links:
                return look.links[path]
        return super().link_target(path)

    def statvfs(self, path: str) -> Space:
        """As it was. Raises NoData."""
        path = legible(path)
        for look, _ in self._playback.newest_first():
            self._raise("space", path, look)
            if path in look.spaces:
                return Space(*look.spaces[path])
        raise NoData(Absence.UNSUPPORTED, f"{path}: no numbers were recorded")

    def adjtimex(self) -> bytes:
        """As it was. Raises NoData."""
        for look, _ in self._playback.newest_first():
            self._raise("adjtimex", "", look)
            if look.adjtimex:
                return look.adjtimex.encode()
        raise NoData(Absence.UNSUPPORTED, "adjtimex(2): nothing was recorded")

    def tcp_sockets(self, family: int) -> bytes:
        """As they were. Raises NoData."""
        for look, _ in self._playback.newest_first():
            self._raise("sockets", str(family), look)
            if str(family) in look.sockets:
                return bytes.fromhex(look.sockets[str(family)])
        raise NoData(Absence.UNSUPPORTED, "sock_diag(7): nothing was recorded")

    @staticmethod
    def _raise(kind: str, path: str, look: _RecordedLook) -> None:
        gone = look.absences.get(f"{kind}:{legible(path)}")
        if gone is not None:
            raise NoData(gone.state, gone.reason, remedy=gone.remedy)


class _ReplayCommands(RecordedCommands):
    """Programs of a recording, as they answered in the present look."""

    def __init__(self, playback: _Playback) -> None:
        super().__init__({})
        self._playback = playback

    def find(self, program: str) -> str | None:
        """Where it was."""
        return next((look.programs[program] for look, _ in self._playback.newest_first() if program in look.programs), None)

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        """As it answered. Raises CommandError."""
        line = legible(" ".join(argv))
        for look, _ in self._playback.newest_first():
            ran = look.commands.get(line)
            if ran is not None:
                if ran.failure is not None:
                    raise CommandError(argv[0], ran.failure, ran.detail)
                return CommandResult(
                    tuple(argv), ran.exit_code, ran.stdout.encode(), ran.stderr.encode(), 0.01, truncated=ran.truncated
                )
        return super().run(argv, deadline_s=deadline_s, subject=subject)


class _ReplayNvml:
    """NVML of a recording."""

    def __init__(self, playback: _Playback) -> None:
        self._playback = playback

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:
        """As it answered. Raises NoData."""
        key = cards_key(addresses, deep=deep)
        for look, _ in self._playback.newest_first():
            gone = look.absences.get(f"cards:{key}")
            if gone is not None:
                raise NoData(gone.state, gone.reason, remedy=gone.remedy)
            if key in look.cards:
                return look.cards[key]
        raise NoData(Absence.UNSUPPORTED, "NVML: nothing was recorded")

    def close(self) -> None:
        """Nothing runs here."""


class ReplayMachine(GatedMachine):
    """The machine that was recorded in ``root``. Raises RecordError when that is no recording."""

    def __init__(self, root: str) -> None:
        playback = _Playback(root)
        cards = any(look.cards or any(key.startswith("cards:") for key in look.absences) for look in playback.looks)
        super().__init__(
            _ReplayFiles(root, playback), _ReplayCommands(playback), playback, _ReplayNvml(playback) if cards else None
        )
        self.looks = len(playback.looks)
