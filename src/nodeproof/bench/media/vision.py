"""The benchmark ``vision``: whether pictures are seen whole, by whom they were shown to, at their price."""

from collections.abc import Iterator
from typing import ClassVar

from nodeproof.bench.media.asker import Cell, Worth
from nodeproof.bench.media.fidelity import SHARED_PARAMETERS, Fidelity
from nodeproof.bench.media.geometry import LADDER, Price, declared_rule, infer
from nodeproof.bench.media.integrity import cost_of
from nodeproof.bench.media.items import Item, Make, colours_item, counts_item, number_item, number_picture, picture_part
from nodeproof.bench.trials import VISION
from nodeproof.runs.params import Int, ParamSpec

__all__ = ["VISION_PARAMETERS", "Vision"]

VISION_PARAMETERS = (
    ParamSpec("max_tokens", "Answer", "Tokens of an answer", Int(16, 2048), 128),
    ParamSpec("vision_max_pixels", "Largest picture", "Pixels beyond which it is scaled down; 0 = never", Int(0, 16777216), 0),
    ParamSpec("patch", "Patch", "Pixels of a patch's side, as the model says; 0 = find a rule in the prices", Int(0, 256), 0),
    ParamSpec("merge", "Merge", "Patches of a side that make one token", Int(1, 16), 2),
    ParamSpec("min_probes", "Probes", "So many of the three kinds of pictures must be read", Int(1, 3), 3),
    *SHARED_PARAMETERS,
)  # fmt: skip
_MAKERS: dict[str, Make] = {"number": number_item, "colours": colours_item, "counts": counts_item}


class Vision(Fidelity):
    """One run of it."""

    IDENTITY = VISION
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = VISION_PARAMETERS
    ABOUT = "Whether an endpoint sees the pictures it is shown, and no others"

    def legs(self) -> Iterator[str]:
        """Prices by size, what can be read, integrity, several at once, and the control."""
        first = self.asker.show(number_item(self.seed))
        if first.worth is Worth.SKIPPED:
            yield f"refused: {first.detail}"
            return
        yield "geometry"
        self._geometry()
        shown: dict[str, Item] = {}
        readable: list[Make] = []
        for name, make in _MAKERS.items():
            yield f"probe: {name}"
            shown[name] = make(self.seed)
            if self.probe(name, shown[name]).worth is Worth.PASS:
                readable.append(make)
        if readable:
            yield from self.together(readable[0])
        yield "control"
        self.control(shown)

    def needed_probes(self) -> int:
        """As asked for."""
        return self.values.int("min_probes")

    def more_metrics(self) -> dict[str, float]:
        """Of the ladder."""
        return {
            "geometry_cells": float(len(LADDER)),
            "geometry_asserted": float(getattr(self, "_asserted", 0)),
            "geometry_matched": float(getattr(self, "_matched", 0)),
        }

    def _geometry(self) -> None:
        """Show the ladder, and hold its prices against a rule."""
        self._asserted = self._matched = 0
        declared = self.values.int("patch") * self.values.int("merge")
        prices = self._prices()
        if prices is None:
            worth = Worth.ERROR if declared else Worth.SKIPPED
            self.add(
                "geometry", Cell("prices", worth, "the endpoint does not count prompt tokens, or not every picture was taken")
            )
            return
        if max(price.tokens for price in prices) <= 0:
            self.add("geometry", Cell("prices", Worth.FAIL, "pictures add no tokens: they do not reach the model"))
            return
        again = self._price(*LADDER[0])
        if again is None or again.tokens != prices[0].tokens:
            found = "none" if again is None else str(again.tokens)
            self.add(
                "geometry", Cell("same again", Worth.FAIL, f"the same picture costs {prices[0].tokens} tokens, then {found}")
            )
        limit = self.values.int("vision_max_pixels")
        if declared:
            rule, odd = declared_rule(prices, declared, limit)
            self._asserted, self._matched = len(prices), len(prices) - len(odd)
            for price in odd:
                wanted = rule.tokens(price.width, price.height)
                detail = f"{price.tokens} tokens where {rule} makes {wanted}"
                self.add("geometry", Cell(f"{price.width} x {price.height}", Worth.FAIL, detail))
            if not odd:
                self.add("geometry", Cell("prices", Worth.PASS, str(rule)))
            return
        found_rule = infer(prices, limit)
        if found_rule is None:
            told = ", ".join(f"{price.width} x {price.height}: {price.tokens}" for price in prices)
            self.add("geometry", Cell("prices", Worth.SKIPPED, f"no rule by size was found ({told}); declare patch and merge"))
            return
        self._asserted = self._matched = len(prices)
        self.add("geometry", Cell("prices", Worth.PASS, str(found_rule)))

    def _prices(self) -> list[Price] | None:
        prices = [self._price(width, height) for width, height in LADDER]
        known = [price for price in prices if price is not None]
        return known if len(known) == len(LADDER) else None

    def _price(self, width: int, height: int) -> Price | None:
        number = str(1000 + (width * 7 + height) % 9000)
        base = number_item(self.seed)
        item = base._replace(parts=(picture_part(number_picture(number, width, height)),), expected=(number,))
        cost, plain = cost_of(self.asker.show(item)), self.plain_cost(item)
        return None if cost is None or plain is None else Price(width, height, cost - plain)
