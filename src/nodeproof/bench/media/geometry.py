"""How many tokens a picture costs, against what its size says.

Most servers cut a picture into squares and count one token for each (a patch of 14 or 16 pixels, of which 2 x 2 are merged),
after rounding width and height; some resize every picture to one size. With a rule that is known, every size of the ladder must
cost exactly what the rule says: a picture that is scaled down on the way, or cut, is found by its price.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["LADDER", "Price", "Rule", "declared_rule", "infer"]

LADDER = ((224, 224), (448, 224), (336, 448), (512, 512), (640, 480), (1024, 768), (1280, 720))
"""Width and height of the pictures that are shown."""
_SIDES = (28, 32, 14, 16, 56, 64)
_ROUNDINGS: dict[str, Callable[[float], int]] = {"nearest": round, "up": math.ceil, "down": math.floor}


class Price(NamedTuple):
    """What a picture cost."""

    width: int
    height: int
    tokens: int
    """Of the picture alone."""


class Rule(NamedTuple):
    """Tokens by size."""

    side: int
    """Pixels of the square that is one token."""
    rounding: str
    constant: int = 0
    """Tokens around each picture."""
    max_pixels: int = 0
    """Larger pictures are scaled down; 0 = none are."""

    def tokens(self, width: int, height: int) -> int:
        """Of a picture."""
        return self._squares(width, height) + self.constant

    def _squares(self, width: int, height: int) -> int:
        fit = _ROUNDINGS[self.rounding]
        columns, rows = max(1, fit(width / self.side)), max(1, fit(height / self.side))
        if self.max_pixels and columns * rows * self.side**2 > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            columns, rows = max(1, int(width / shrink / self.side)), max(1, int(height / shrink / self.side))
        return columns * rows

    def __str__(self) -> str:
        most = f", at most {self.max_pixels} pixels" if self.max_pixels else ""
        return f"one token for {self.side} x {self.side} pixels, sizes rounded {self.rounding}, {self.constant} around{most}"


def declared_rule(prices: Sequence[Price], side: int, max_pixels: int) -> tuple[Rule, list[Price]]:
    """The rule for a declared ``side``, with the constant that most prices agree on, and the prices that break it."""
    bare = Rule(side, "nearest", 0, max_pixels)
    differences = sorted(price.tokens - bare.tokens(price.width, price.height) for price in prices)
    constant = max(set(differences), key=lambda value: (differences.count(value), -abs(value))) if differences else 0
    rule = bare._replace(constant=constant if 0 <= constant <= 16 else 0)
    return rule, [price for price in prices if price.tokens != rule.tokens(price.width, price.height)]


def infer(prices: Sequence[Price], max_pixels: int = 0) -> Rule | None:
    """A rule that all prices keep; None when there is none."""
    if len(prices) < 3 or len({price.tokens for price in prices}) < 3:
        return None
    for rule in _candidates(max_pixels):
        constants = {price.tokens - rule.tokens(price.width, price.height) for price in prices}
        constant = next(iter(constants))
        if len(constants) == 1 and 0 <= constant <= 16:
            return rule._replace(constant=constant)
    return None


def _candidates(max_pixels: int) -> Iterator[Rule]:
    for side, rounding in itertools.product(_SIDES, _ROUNDINGS):
        yield Rule(side, rounding, 0, max_pixels)
