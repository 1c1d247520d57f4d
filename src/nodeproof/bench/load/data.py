"""Conversations and traces out of files: ShareGPT-like JSON, JSON lines, and request traces with block hashes.

Understood are, as elements of one JSON list or one a line::

    {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}
    {"messages": [{"role": "user", "content": "..."}], "max_tokens": 128}
    {"prompt": "...", "output_tokens": 128}
    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}

``timestamp`` is in milliseconds. What is none of these is refused with its line.
"""

import itertools
import json
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from nodeproof.errors import ParseError, RunError

__all__ = ["Asked", "Conversation", "read_conversations", "trace_times"]

_MAX_BYTES = 2 << 30
_MAX_ENTRIES = 1_000_000
_QUESTION_ROLES = frozenset({"human", "user"})
_KEPT_ROLES = {"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant"}


class Asked(NamedTuple):
    """One question of a file."""

    text: str
    max_tokens: int | None = None
    input_tokens: int = -1
    """As the file says; -1 = it does not."""
    blocks: tuple[int, ...] = ()


class Conversation(NamedTuple):
    """Questions that follow one another; the answers in between are the server's own."""

    questions: tuple[Asked, ...]
    before: tuple[dict[str, object], ...] = ()
    """Messages before the first question (a system prompt, an example)."""
    at_s: float = 0.0
    """Of a trace: when it began."""


def read_conversations(path: str) -> list[Conversation]:
    """Everything in ``path``. Raises RunError when it cannot be read, ParseError naming the line that is none of the shapes."""
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise RunError(f"data {path} is no plain file: each worker process reads it anew")
        if facts.st_size > _MAX_BYTES:
            raise RunError(f"{path} is larger than {_MAX_BYTES >> 30} GiB; give a part of it")
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise RunError(f"data {path}: {error.strerror}; name a file with conversations or a trace") from None
    found = []
    for line_no, entry in _entries(path, raw):
        conversation = _conversation(entry)
        if conversation is None:
            raise ParseError(path, line_no, json.dumps(entry), "conversations, messages, prompt or a trace's input_length")
        if conversation.questions:
            found.append(conversation)
        if len(found) >= _MAX_ENTRIES:
            break
    if not found:
        raise RunError(f"data {path} holds no question")
    return found


def trace_times(conversations: list[Conversation]) -> list[float]:
    """When the entries of a trace began, counted from its first. Raises RunError when it goes back in time."""
    first_s = conversations[0].at_s if conversations else 0.0
    times = [conversation.at_s - first_s for conversation in conversations]
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        raise RunError("the timestamps of the trace go back; sort it")
    return times


def _entries(path: str, raw: bytes) -> Iterator[tuple[int, object]]:
    """Elements with their line, counted from 1 (of a list: their place)."""
    text = raw.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        try:
            elements = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ParseError(path, getattr(error, "lineno", 0), str(error), "a JSON list") from None
        yield from enumerate(elements, 1)
        return
    for line_no, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            try:
                yield line_no, json.loads(line.removeprefix(b"\xef\xbb\xbf"))
            except (ValueError, RecursionError):
                raise ParseError(path, line_no, line[:120].decode("utf-8", "replace"), "one JSON object a line") from None


def _conversation(entry: object) -> Conversation | None:
    if not isinstance(entry, dict):
        return None
    turns = entry.get("conversations", entry.get("conversation", entry.get("messages")))
    if isinstance(turns, list):
        return _of_turns(turns, _limit(entry))
    prompt = entry.get("prompt", entry.get("question"))
    if isinstance(prompt, str) and prompt:
        return Conversation((Asked(prompt, _limit(entry), _length(entry.get("input_tokens"))),))
    if _length(entry.get("input_length")) > 0:
        blocks = entry.get("hash_ids")
        ids = tuple(block for block in blocks if isinstance(block, int)) if isinstance(blocks, list) else ()
        asked = Asked("", _limit(entry), _length(entry.get("input_length")), ids or (-1,))
        stamp = entry.get("timestamp", 0)
        return Conversation((asked,), at_s=float(stamp) / 1000 if isinstance(stamp, int | float) else 0.0)
    return None


def _of_turns(turns: list[object], limit: int | None) -> Conversation:
    before: list[dict[str, object]] = []
    questions: list[Asked] = []
    for turn in turns:
        if not isinstance(turn, dict):
            continue
        role = str(turn.get("from", turn.get("role", ""))).lower()
        text = turn.get("value", turn.get("content"))
        if not isinstance(text, str) or not text:
            continue
        if role in _QUESTION_ROLES:
            questions.append(Asked(text, limit))
        elif not questions and role in _KEPT_ROLES:
            before.append({"role": _KEPT_ROLES[role], "content": text})
    return Conversation(tuple(questions), tuple(before))


def _limit(entry: dict[str, object]) -> int | None:
    for key in ("max_tokens", "output_tokens", "output_length"):
        if _length(entry.get(key)) > 0:
            return _length(entry.get(key))
    return None


def _length(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1
