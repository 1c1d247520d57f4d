"""What is shown and asked: each picture and clip is drawn by a seed, with a question that only who sees it can answer."""

import base64
import functools
import math
import random
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from nodeproof.bench.media.canvas import COLOURS, Canvas
from nodeproof.bench.media.gif import encode_gif
from nodeproof.bench.media.mp4 import encode_mp4
from nodeproof.bench.media.png import encode_png

__all__ = [
    "CLIP_FRAMES_PER_S",
    "Item",
    "Make",
    "Part",
    "clip_item",
    "colours_item",
    "counts_item",
    "mixed_item",
    "number_item",
    "number_picture",
    "picture_part",
    "video_part",
]

Part = dict[str, object]
"""A piece of a message's content, as the chat interface has it."""
_SIDE: Final = 224
_STRIPES: Final = 4
_CLIP_SIDE: Final = 224
_CLIP_COLOURS: Final = 4
_COLOUR_S: Final = 2
CLIP_FRAMES_PER_S: Final = 4
_WORDS = re.compile("|".join(COLOURS))


class Item(NamedTuple):
    """Something shown, with its question."""

    parts: tuple[Part, ...]
    question: str
    expected: tuple[str, ...]
    """The answer, word by word."""
    read: Callable[[str], tuple[str, ...]]
    """The answer that a text gives."""
    chance: float
    """Of being right without having seen anything."""

    def right(self, text: str) -> bool:
        """Whether ``text`` is the answer."""
        return self.read(text) == self.expected

    @property
    def content(self) -> tuple[Part, ...]:
        """A message that shows it and asks."""
        return (*self.parts, {"type": "text", "text": self.question})


Make = Callable[[int], Item]
"""Draws by a seed; two seeds differ in their answers nearly always."""


def picture_part(canvas: Canvas) -> Part:
    """A picture as content."""
    return {"type": "image_url", "image_url": {"url": _data_url("image/png", encode_png(canvas))}}


def video_part(frames: list[Canvas], form: str = "mp4") -> Part:
    """A clip as content; ``form``: ``mp4`` or ``gif``."""
    data = encode_mp4(frames, CLIP_FRAMES_PER_S) if form == "mp4" else encode_gif(frames, 1 / CLIP_FRAMES_PER_S)
    return {"type": "video_url", "video_url": {"url": _data_url("video/mp4" if form == "mp4" else "image/gif", data)}}


def number_picture(number: str, width: int = _SIDE, height: int = _SIDE) -> Canvas:
    """Digits in black on white."""
    canvas = Canvas(width, height)
    canvas.digits(number)
    return canvas


@functools.lru_cache(maxsize=64)
def number_item(seed: int) -> Item:
    """Four digits to be read."""
    number = str(_chance("number", seed).randint(1000, 9999))
    question = "Which number is written in the picture? Answer with its four digits alone."
    return Item((picture_part(number_picture(number)),), question, (number,), _numbers, 1 / 9000)


@functools.lru_cache(maxsize=64)
def colours_item(seed: int) -> Item:
    """Four stripes of colour, to be told from left to right."""
    colours = tuple(_chance("colours", seed).sample(COLOURS, _STRIPES))
    canvas = Canvas(_SIDE, _SIDE)
    for place, colour in enumerate(colours):
        canvas.rectangle(place * _SIDE // _STRIPES, 0, _SIDE // _STRIPES, _SIDE, colour)
    question = (
        "The picture shows four upright stripes. Name their colours from left to right, with commas between and nothing else. "
        f"Use these words: {', '.join(COLOURS)}."
    )
    return Item((picture_part(canvas),), question, colours, _colours, 1 / math.perm(len(COLOURS), _STRIPES))


@functools.lru_cache(maxsize=64)
def counts_item(seed: int) -> Item:
    """Squares and discs to be counted."""
    chance = _chance("counts", seed)
    squares, discs = chance.randint(1, 6), chance.randint(1, 6)
    places = chance.sample(range(16), squares + discs)
    canvas, step = Canvas(_SIDE, _SIDE), _SIDE // 4
    for turn, place in enumerate(places):
        left, top = place % 4 * step, place // 4 * step
        if turn < squares:
            canvas.rectangle(left + 12, top + 12, step - 24, step - 24, "blue")
        else:
            canvas.disc(left + step // 2, top + step // 2, step // 2 - 10, "red")
    question = (
        "How many blue squares and how many red circles are in the picture? "
        "Answer with two numbers alone, squares first, a comma between them."
    )
    return Item((picture_part(canvas),), question, (str(squares), str(discs)), _numbers, 1 / 36)


@functools.lru_cache(maxsize=16)
def clip_item(seed: int, *, reverse: bool = False, form: str = "mp4", colour_s: int = _COLOUR_S) -> Item:
    """A clip of four colours one after the other, to be told in their order."""
    parts = (video_part(_clip(seed, reverse, colour_s), form),)
    question = (
        "The video shows four colours, one after the other. Name them in the order in which they appear, with commas between "
        f"and nothing else. Use these words: {', '.join(COLOURS)}."
    )
    colours = _clip_colours(seed)[:: -1 if reverse else 1]
    return Item(parts, question, colours, _colours, 1 / math.perm(len(COLOURS), _CLIP_COLOURS))


def mixed_item(seed: int) -> Item:
    """A picture with a number and a clip with colours in one message."""
    number = number_item(seed).expected
    question = (
        "Write the number in the picture, then the four colours of the video in the order in which they appear, with commas "
        f"between and nothing else. Use these words: {', '.join(COLOURS)}."
    )
    clip = clip_item(seed)
    return Item(
        (*number_item(seed).parts, *clip.parts),
        question,
        (*number, *clip.expected),
        lambda text: (*_numbers(text), *_colours(text)),
        number_item(seed).chance * clip.chance,
    )


@functools.lru_cache(maxsize=32)
def _clip(seed: int, reverse: bool, colour_s: int) -> list[Canvas]:  # noqa: FBT001 - a key of the cache
    frames: list[Canvas] = []
    for colour in _clip_colours(seed)[:: -1 if reverse else 1]:
        frames += [Canvas(_CLIP_SIDE, _CLIP_SIDE, colour)] * (colour_s * CLIP_FRAMES_PER_S)
    return frames


def _clip_colours(seed: int) -> tuple[str, ...]:
    return tuple(_chance("clip", seed).sample(COLOURS, _CLIP_COLOURS))


def _chance(kind: str, seed: int) -> random.Random:
    return random.Random(f"{kind}-{seed}")  # noqa: S311 - to be the same again is the point


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _numbers(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\d+", text))


def _colours(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text.lower()))
