"""The questions that equality is tried with: the golden draw of BFCL, or made up here from a seed."""

import hashlib
import random
from typing import NamedTuple

import msgspec

from nodeproof.bench.ask import Ask
from nodeproof.bench.bfcl.dataset import Row, read_draw
from nodeproof.bench.bfcl.environment import GOLDEN_ENVIRONMENT, provide
from nodeproof.bench.bfcl.subsets import GOLDEN, WHOLE
from nodeproof.bench.stepwise import Desk
from nodeproof.runs.params import Choice, ParamSpec

__all__ = ["QUESTION_SPEC", "Question", "Questions", "made_up", "questions_for"]

BFCL, SYNTHETIC = "bfcl", "synthetic"
_MADE_UP = 64
_SEED = 20261201

QUESTION_SPEC = ParamSpec(
    "questions",
    "Questions",
    f"{BFCL}: the golden draw of the BFCL data, installed on first use; {SYNTHETIC}: {_MADE_UP} made-up ones, nothing to install",
    Choice((BFCL, SYNTHETIC)),
    BFCL,
)


class Question(NamedTuple):
    """One of them."""

    name: str
    messages: tuple[dict[str, object], ...]
    tools: tuple[dict[str, object], ...] = ()
    tool_choice: str = "auto"

    def ask(self, max_tokens: int) -> Ask:
        """As it is asked: greedy, as a stream."""
        extra: dict[str, object] = {"temperature": 0}
        if self.tools:
            extra |= {"tools": self.tools, "tool_choice": self.tool_choice}
        return Ask(messages=self.messages, max_tokens=max_tokens, extra=extra)


class Questions(NamedTuple):
    """A set of them."""

    items: tuple[Question, ...]
    fingerprint: str
    """Where they come from, and the digest of what is asked."""


def questions_for(desk: Desk) -> Questions:
    """What parameters ``questions`` and ``sample_cap`` ask for. Raises RunError where they cannot be had, RunCancelled."""
    cap = desk.values.usize("sample_cap")
    if desk.values.text("questions") == SYNTHETIC:
        items, source = made_up(_MADE_UP), f"synthetic-{_SEED}"
    else:
        ready = provide(desk.handle, GOLDEN_ENVIRONMENT)
        drawn = read_draw(ready.dataset_path, GOLDEN, WHOLE)
        items, source = tuple(_of_row(row) for row in drawn.rows), f"file-sha256:{ready.dataset_sha256}"
    items = items[:cap] if cap else items
    return Questions(items, f"{source};draw-sha256:{_digest(items)}")


def _of_row(row: Row) -> Question:
    return Question(row.sample_id, row.messages, row.tools, row.tool_choice)


def _digest(items: tuple[Question, ...]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(msgspec.json.encode(item) + b"\n")
    return digest.hexdigest()


_TASKS = (
    "Write three short sentences about {one}, then one about {two}.",
    "Name five things that {one} and {two} have in common, one a line.",
    "Explain to a child, in at most sixty words, how {one} and {two} differ.",
    "Make a list of four questions that somebody could ask about {one}; mention {two} in the last one.",
    "Write a four-line poem in which {one} meets {two}.",
    "Give the plural of these words and a sentence with each: {one}, {two}.",
)
_THINGS = (
    "a lighthouse", "a ferry", "a bakery", "a glacier", "an orchard", "a violin", "a printing press", "a market hall", "a canal",
    "a beehive", "a railway yard", "a telescope", "a vineyard", "a windmill", "a library", "a quarry",
)  # fmt: skip


def made_up(count: int) -> tuple[Question, ...]:
    """So many questions, the same every time; no two alike."""
    chance = random.Random(_SEED)  # noqa: S311 - questions, no secrets
    items = []
    for number in range(count):
        one, two = chance.sample(_THINGS, 2)
        text = f"Task {number + 1}. {_TASKS[number % len(_TASKS)].format(one=one, two=two)}"
        items.append(Question(f"made-up-{number}", ({"role": "user", "content": text},)))
    return tuple(items)
