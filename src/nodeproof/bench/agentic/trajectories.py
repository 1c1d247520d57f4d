"""Recorded sessions of agents, read from a file of JSON lines.

One session a line::

    {"id": "s1", "kind": "coding", "messages": [{"role": "user", "content": "..."}, {"role": "assistant", ...}], "tools": [...]}

``messages`` are those of the chat interface. Every answer of the assistant that calls a tool, or names an intent, is a turn to be
predicted from what was said before it. ``kind``: ``workflow`` (the code of the intent counts: ``intent`` of the message, else the
names of its tools) or ``coding`` (the shell commands count: argument ``command`` of its calls).
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from nodeproof.bench.exchange import ToolCall
from nodeproof.errors import RunError

__all__ = ["KINDS", "Trajectories", "Turn", "commands_of", "intents_of", "iou", "read_trajectories"]

KINDS = ("workflow", "coding")
_MAX_BYTES = 1 << 30


class _Session(msgspec.Struct):
    id: str
    kind: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []


class Turn(NamedTuple):
    """One answer to be predicted."""

    session: str
    place: int
    """Of the answer in its session."""
    kind: str
    before: tuple[dict[str, Any], ...]
    """What was said until then, as it was recorded."""
    tools: tuple[dict[str, Any], ...]
    wanted: Counter[str]
    """Intents or commands of the recorded answer."""


class Trajectories(NamedTuple):
    """What a file holds."""

    turns: list[Turn]
    sessions: int
    file_sha256: str

    def draw(self, count: int) -> "Trajectories":
        """The first ``count`` turns of each kind in turn; 0 = all."""
        if not count:
            return self
        by = [[turn for turn in self.turns if turn.kind == kind] for kind in KINDS]
        mixed = [turn for pair in itertools.zip_longest(*by) for turn in pair if turn is not None]
        return self._replace(turns=mixed[:count])

    @property
    def fingerprint(self) -> str:
        """Of the file, and of what is drawn of it."""
        drawn = "\n".join(f"{turn.session}:{turn.place}" for turn in self.turns)
        return f"file-sha256:{self.file_sha256};draw-sha256:{hashlib.sha256(drawn.encode()).hexdigest()}"


def read_trajectories(path: str) -> Trajectories:
    """Read them. Raises RunError that names file, line and what is wrong."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; give a file of recorded sessions with dataset=FILE") from None
    if len(data) > _MAX_BYTES:
        raise RunError(f"{path}: larger than {_MAX_BYTES >> 20} MiB")
    turns: list[Turn] = []
    sessions = 0
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            session = msgspec.json.decode(line, type=_Session)
        except msgspec.MsgspecError as error:
            raise RunError(f"{path}: line {number}: no recorded session: {error}") from None
        if session.kind not in KINDS:
            raise RunError(f"{path}: line {number}: kind {session.kind[:40]!r} is none of {', '.join(KINDS)}")
        sessions += 1
        turns += _turns(session)
    if not turns:
        raise RunError(f"{path}: no answer of an assistant in it calls a tool or names an intent: there is nothing to predict")
    return Trajectories(turns, sessions, hashlib.sha256(data).hexdigest())


def _turns(session: _Session) -> Iterator[Turn]:
    for place, message in enumerate(session.messages):
        if message.get("role") != "assistant" or place == 0:
            continue
        wanted = _wanted(session.kind, message)
        if wanted:
            before = tuple(_plain(earlier) for earlier in session.messages[:place])
            yield Turn(session.id, place, session.kind, before, tuple(session.tools), wanted)


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what only the recording knows."""
    return {key: value for key, value in message.items() if key != "intent"}


def _wanted(kind: str, message: dict[str, Any]) -> Counter[str]:
    calls = [_call(call) for call in message.get("tool_calls") or [] if isinstance(call, dict)]
    if kind == "coding":
        return commands_of(calls)
    intent = message.get("intent")
    return Counter([intent]) if isinstance(intent, str) and intent else intents_of(calls)


def _call(found: dict[str, Any]) -> ToolCall:
    call, function = ToolCall(), found.get("function")
    if isinstance(function, dict):
        call.name, call.arguments = str(function.get("name") or ""), str(function.get("arguments") or "")
    return call


def intents_of(calls: Sequence[ToolCall]) -> Counter[str]:
    """Names of the tools that are called."""
    return Counter(call.name for call in calls if call.name)


def commands_of(calls: Sequence[ToolCall]) -> Counter[str]:
    """Shell commands of calls, blanks made one."""
    found: Counter[str] = Counter()
    for call in calls:
        try:
            fields = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError:
            continue
        command = fields.get("command", fields.get("cmd"))
        if isinstance(command, str) and command.strip():
            found[" ".join(command.split())] += 1
    return found


def iou(found: Counter[str], wanted: Counter[str]) -> float:
    """What two multisets share, of what they have together; 0 when either has nothing."""
    together = sum((found | wanted).values())
    return sum((found & wanted).values()) / together if together else 0.0
