"""Probes that can be told apart by a code word: drawn from a seed, so that a run can be repeated and no server can know them."""

import random
import re
from typing import NamedTuple

from nodeproof.bench.ask import Ask

__all__ = ["Probe", "foreign", "probes"]

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_PARTS = 3
_PREAMBLE = (
    "You are given a code word at the end of this message. Answer in this way and in no other: the first line is the code word "
    "alone. Then come three short sentences, one about tides, one about bread and one about bridges. The last line is the "
    "code word again, alone. Write the code word exactly as it stands, with its hyphens. The code word is "
)


class Probe(NamedTuple):
    """One of them."""

    name: str
    canary: str
    """Three made-up words with hyphens between them; no probe shares one with another."""

    def ask(self, max_tokens: int) -> Ask:
        """As it is asked: the same bytes up to the code word, so that state carried on wrongly shows."""
        message: dict[str, object] = {"role": "user", "content": f"{_PREAMBLE}{self.canary}"}
        return Ask(messages=(message,), max_tokens=max_tokens, extra={"temperature": 0})

    def in_text(self, text: str) -> bool:
        """Whether its whole code word stands in ``text``."""
        return self.canary in text.lower()


def probes(count: int, seed: int) -> tuple[Probe, ...]:
    """So many probes of ``seed``."""
    chance = random.Random(seed)  # noqa: S311 - to be told apart, not to be secret
    words: list[str] = []
    while len(words) < count * _PARTS:
        word = "".join(chance.choice(_CONSONANTS) + chance.choice(_VOWELS) for _ in range(3)) + chance.choice(_CONSONANTS)
        if word not in words:  # all have one length, so none holds another
            words.append(word)
    return tuple(Probe(f"probe-{n}", "-".join(words[n * _PARTS : (n + 1) * _PARTS])) for n in range(count))


def foreign(own: Probe, everybody: tuple[Probe, ...], text: str) -> str:
    """The first part of another probe's code word that stands in ``text`` as a word; empty when there is none."""
    said = set(re.findall(r"[a-z]+", text.lower()))
    for probe in everybody:
        if probe.name != own.name:
            for part in probe.canary.split("-"):
                if part in said:
                    return f"{part} of {probe.name}"
    return ""
