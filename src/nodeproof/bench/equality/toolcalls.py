"""Tool calls set against each other by what they mean: names and arguments as JSON, not the blanks between them."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.bench.equality.replies import Reply

__all__ = ["ToolLeg", "same_calls"]


class ToolLeg(NamedTuple):
    """What several ways to one call found."""

    paths: int
    """Ways that were compared, the reference with them; 0 = none."""
    diverged: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    why: str = ""

    @classmethod
    def left_out(cls) -> "ToolLeg":
        """Nobody asked for it."""
        return cls(0, why="they were left out")


def same_calls(replies: Sequence[tuple[str, Reply]]) -> ToolLeg:
    """Set every way's call against the first one's."""
    name, first = replies[0]
    if not first.ok:
        return ToolLeg(0, why=f"the server answers {first.outcome} {first.detail}".strip())
    if not first.calls:
        return ToolLeg(0, why="the model calls no tool when it should")
    wanted = _meant(first)
    diverged, unmeasured, why = [], [], ""
    for name, reply in replies[1:]:
        if not reply.ok:
            unmeasured.append(name)
            why = why or f"{reply.outcome} {reply.detail}".strip()
        elif _meant(reply) != wanted:
            diverged.append(name)
            why = f"{_shown(reply)}, not {_shown(first)}"
    return ToolLeg(len(replies) - len(unmeasured), tuple(diverged), tuple(unmeasured), why)


def _meant(reply: Reply) -> list[tuple[str, object]]:
    return [(name, _arguments(arguments)) for name, arguments in reply.calls]


def _arguments(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _shown(reply: Reply) -> str:
    return ", ".join(f"{name}({arguments[:80]})" for name, arguments in reply.calls) or "no call"
