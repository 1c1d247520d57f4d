"""A recording without what must not be told."""

from typing import Any

import msgspec

from nodeproof.errors import CommandError, NoData
from nodeproof.host.commands import CommandResult
from nodeproof.host.nvml import NvmlCard
from nodeproof.host.recording import Look
from nodeproof.operate.bundle.redact import Redactor

__all__ = ["learn_look", "redacted_look"]


def learn_look(redactor: Redactor, look: Look) -> None:
    """Everything that ``look`` tells by its places."""
    for (kind, asked), answer in look.answers.items():
        for name, data in _texts(kind, asked, answer):
            redactor.learn_from(name, data)


def _texts(kind: str, asked: str, answer: object) -> list[tuple[str, bytes]]:
    if isinstance(answer, CommandResult):
        return [(f"$ {asked}", answer.stdout), (f"$ {asked}", answer.stderr)]
    if kind == "cards" and isinstance(answer, list):
        return [("", msgspec.json.encode(answer))]
    return [(asked, answer)] if kind == "read" and isinstance(answer, bytes) else []


def redacted_look(redactor: Redactor, look: Look) -> Look:
    """``look`` with stand-ins in the place of what must not be told, in names and answers alike."""
    bare = Look(look.at)
    for (kind, asked), answer in look.answers.items():
        bare.answers[kind, redactor.text(asked)] = _redacted(redactor, kind, asked, answer)
    return bare


def _redacted(redactor: Redactor, kind: str, asked: str, answer: object) -> object:
    found: Any = answer
    if isinstance(answer, NoData):
        found = NoData(answer.state, redactor.text(answer.reason), remedy=redactor.text(answer.remedy))
    elif isinstance(answer, CommandError):
        found = CommandError(answer.program, answer.failure, redactor.text(answer.detail))
    elif isinstance(answer, CommandResult):
        stdout, stderr = (redactor.redact(f"$ {asked}", text) for text in (answer.stdout, answer.stderr))
        found = answer._replace(stdout=stdout, stderr=stderr)
    elif kind == "cards":
        text = redactor.redact("", msgspec.json.encode(answer))
        found = msgspec.json.decode(text, type=list[NvmlCard])
    elif kind == "read" and isinstance(answer, bytes):
        found = redactor.redact(asked, answer)
    elif kind == "names" and isinstance(answer, list):
        found = sorted(map(redactor.text, answer))
    elif isinstance(answer, str):
        found = redactor.text(answer)
    return found
