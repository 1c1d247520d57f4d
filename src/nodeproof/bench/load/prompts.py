"""Questions of a load run: synthesised to a length in tokens, or out of a file."""

import random
from typing import NamedTuple

from nodeproof.bench.load.data import Conversation
from nodeproof.bench.load.plan import Lengths, LoadPlan

__all__ = ["Question", "Questions", "draw", "filler"]

_WORDS = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "government",
    "number",
    "night",
    "point",
    "home",
    "water",
    "room",
    "mother",
    "area",
    "money",
    "story",
    "fact",
    "month",
    "lot",
    "right",
    "study",
    "book",
    "eye",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "house",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
    "car",
    "city",
    "community",
    "name",
    "president",
    "team",
    "minute",
    "idea",
    "kid",
    "body",
    "information",
    "back",
    "parent",
    "face",
    "others",
    "level",
    "office",
    "door",
    "health",
    "person",
    "art",
    "war",
    "history",
    "party",
    "result",
    "change",
    "morning",
    "reason",
    "research",
    "girl",
    "guy",
    "moment",
    "air",
    "teacher",
]
_POOL = 1 << 15
"""Words that fillers are cut from; longer ones begin again."""


class Question(NamedTuple):
    """One request of a plan."""

    number: int
    text: str
    input_target: int
    """Tokens it was made for; -1 = not made."""
    max_tokens: int
    messages: tuple[dict[str, object], ...] = ()
    """What was said before, for a question out of a file."""


def draw(lengths: Lengths, chance: random.Random) -> int:
    """A length."""
    match lengths.kind:
        case "uniform":
            value = chance.uniform(lengths.a, lengths.b + 1)
        case "normal":
            value = chance.gauss(lengths.a, lengths.b)
        case "lognormal":
            value = lengths.a * chance.lognormvariate(0.0, lengths.b)
        case _:
            value = lengths.a
    return max(lengths.low, min(int(value), lengths.high))


class _Pool:
    """Words drawn once, so that a filler of any length is a slice."""

    def __init__(self) -> None:
        words = random.Random(20261201).choices(_WORDS, k=_POOL)  # noqa: S311 - filler
        self.text = " ".join(words) + " "
        self.starts = [0]
        for word in words:
            self.starts.append(self.starts[-1] + len(word) + 1)

    def cut(self, start: int, count: int) -> str:
        """``count`` words from word ``start`` on, the pool being a ring."""
        pieces = []
        start %= _POOL
        while count > 0:
            end = min(_POOL, start + count)
            pieces.append(self.text[self.starts[start] : self.starts[end]])
            count -= end - start
            start = 0
        return "".join(pieces).rstrip()


_pool: list[_Pool] = []


def filler(start: int, words: int) -> str:
    """Words that mean nothing; the same for the same arguments."""
    if not _pool:
        _pool.append(_Pool())
    return _pool[0].cut(start, words)


class Questions:
    """The questions of a plan by number: the same on every worker."""

    def __init__(self, plan: LoadPlan, conversations: list[Conversation]) -> None:
        self._plan = plan
        self._conversations = conversations

    def question(self, number: int, turn: int = 0) -> Question:
        """Question ``turn`` of conversation ``number``."""
        if self._conversations:
            return self._from_file(number, turn)
        plan = self._plan.prompts
        place = number % plan.distinct if plan.distinct else number
        chance = random.Random((self._plan.seed << 40) ^ (place << 8) ^ turn)  # noqa: S311 - lengths and filler
        target, limit = draw(plan.inputs, chance), draw(plan.outputs, chance)
        words = plan.words or max(1, round((target - plan.overhead_tokens) * plan.words_per_token))
        start = chance.randrange(_POOL)
        shared = min(words - 1, round(plan.prefix_tokens * plan.words_per_token)) if turn == 0 else 0
        text = f"{plan.nonce}{place:0{plan.tag_digits}d}.{turn} {filler(start, words - shared)}"
        if shared > 0:
            text = f"{filler(place % plan.prefix_groups * 7919, shared)} {text}"
        if plan.task:
            text = f"{text}\n\n{plan.task}"
        return Question(number, text, target, limit)

    @property
    def turns(self) -> int:
        """Turns of a conversation; those of a file have their own number."""
        return 1 if self._conversations else self._plan.prompts.turns

    def turns_of(self, number: int) -> int:
        """Turns of conversation ``number``."""
        if self._conversations:
            return len(self._conversations[number % len(self._conversations)].questions)
        return self._plan.prompts.turns

    def _from_file(self, number: int, turn: int) -> Question:
        conversation = self._conversations[number % len(self._conversations)]
        asked = conversation.questions[turn]
        limit = asked.max_tokens
        if limit is None:
            limit = draw(self._plan.prompts.outputs, random.Random((self._plan.seed << 40) ^ number))  # noqa: S311 - a length
        if asked.blocks:
            return Question(number, self._of_blocks(number, asked.blocks, asked.input_tokens), asked.input_tokens, limit)
        return Question(number, asked.text, asked.input_tokens, limit, conversation.before if turn == 0 else ())

    def _of_blocks(self, number: int, blocks: tuple[int, ...], tokens: int) -> str:
        """A prompt whose 512-token blocks are the same wherever their ids are."""
        scale = self._plan.prompts.words_per_token
        pieces, left = [], max(1, round(tokens * scale))
        size = max(1, round(512 * scale))
        for block in blocks:
            pieces.append(filler(block * 104729, min(size, left)))
            left -= size
            if left <= 0:
                break
        if left > 0:
            pieces.append(filler(number * 15485863, left))
        return " ".join(pieces)
