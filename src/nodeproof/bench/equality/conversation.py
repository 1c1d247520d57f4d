"""The fixed conversation of ``state-poisoning``, and the ways to one tool call."""

from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.bench.ask import Ask
from nodeproof.bench.load.prompts import filler

__all__ = ["TURNS", "Path", "Turn", "ask_turn", "tool_paths"]

_GREEDY: dict[str, object] = {"temperature": 0}
_FILL_WORDS = 400
"""Long enough that a cache by blocks or snapshots holds some of it."""


class Turn(NamedTuple):
    """A question and the words of which one must stand in a sensible answer."""

    label: str
    text: str
    anchors: tuple[str, ...]


TURNS = (
    Turn(
        "noted",
        "Three facts about a harbour town: the lighthouse is green, the bridge is 40 metres long, and the ferry is called "
        "Miranda. Answer with the word noted.",
        ("noted",),
    ),
    Turn("colour", "Which colour is the lighthouse? Answer in one sentence.", ("green",)),
    Turn("length", "How long is the bridge? Answer in one sentence, with the number in digits.", ("40", "forty")),
    Turn("name", "What is the ferry called? Answer in one sentence, then say which two facts remain.", ("miranda",)),
)


def ask_turn(history: Sequence[str], max_tokens: int) -> Ask:
    """The turn that comes after answers ``history``."""
    messages: list[dict[str, object]] = [_system()]
    for place, turn in enumerate(TURNS[: len(history) + 1]):
        messages.append({"role": "user", "content": turn.text})
        if place < len(history):
            messages.append({"role": "assistant", "content": history[place]})
    return Ask(messages=tuple(messages), max_tokens=max_tokens, extra=_GREEDY)


def _system() -> dict[str, object]:
    text = f"You answer questions about a harbour town, briefly. Pass over what follows: {filler(7, _FILL_WORDS)}"
    return {"role": "system", "content": text}


_TOOL: dict[str, object] = {
    "type": "function",
    "function": {
        "name": "book_ferry",
        "description": "Book seats on a ferry.",
        "parameters": {
            "type": "object",
            "properties": {
                "ferry": {"type": "string", "description": "Name of the ferry."},
                "seats": {"type": "integer", "description": "How many seats."},
            },
            "required": ["ferry", "seats"],
        },
    },
}
_TARGET = "Book three seats on the ferry Miranda."
_DETOUR = "Which ferry sails to the island, and how many seats has it?"


class Path(NamedTuple):
    """A way to the target: what is asked before it. The target itself is always the same bytes."""

    name: str
    leads: tuple[tuple[str, ...], ...]
    """Conversations before it, each as texts of user and assistant in turn, ending with a question."""

    def before(self, max_tokens: int) -> list[Ask]:
        """What is asked first."""
        return [_tool_ask(texts, min(64, max_tokens)) for texts in self.leads]

    def target(self, max_tokens: int) -> Ask:
        """What is asked then."""
        return _tool_ask((_TARGET,), max_tokens)


def tool_paths() -> tuple[Path, ...]:
    """All ways; the first is the reference."""
    return (
        Path("alone", ()),
        Path("again", ((_TARGET,),)),
        Path("after another question", ((_DETOUR,),)),
        Path("after a longer conversation", ((_TARGET, "Done.", _DETOUR),)),
        Path(
            "after two that part",
            ((_TARGET, "Which day?", "On Monday."), (_TARGET, "Which day?", "On Friday, four seats instead.")),
        ),
    )


def _tool_ask(texts: Sequence[str], max_tokens: int) -> Ask:
    roles = ("user", "assistant")
    messages = [_system()]
    messages += [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    extra = {**_GREEDY, "tools": [_TOOL], "tool_choice": "auto"}
    return Ask(messages=tuple(messages), max_tokens=max_tokens, extra=extra)
