"""The benchmark ``video``: whether clips are seen in their order, to their end, by whom they were shown to."""

from collections.abc import Iterator
from typing import ClassVar

from nodeproof.bench.media.asker import Cell, Worth
from nodeproof.bench.media.fidelity import SHARED_PARAMETERS, Fidelity
from nodeproof.bench.media.integrity import cost_of
from nodeproof.bench.media.items import Item, clip_item, mixed_item
from nodeproof.bench.trials import VIDEO
from nodeproof.runs.params import Choice, Int, ParamSpec

__all__ = ["VIDEO_PARAMETERS", "Video"]

_FORMS = ("mp4", "gif")
VIDEO_PARAMETERS = (
    ParamSpec("max_tokens", "Answer", "Tokens of an answer", Int(16, 2048), 320),
    ParamSpec("form", "Form", "Of the clips; where a server cannot decode it, the other one is tried", Choice(_FORMS), "mp4"),
    *SHARED_PARAMETERS,
)
_TWICE = (1.5, 2.5)
_SAME = (0.9, 1.1)


class Video(Fidelity):
    """One run of it."""

    IDENTITY = VIDEO
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]] = VIDEO_PARAMETERS
    ABOUT = "Whether an endpoint sees the videos it is shown, in their order, and no others"
    THING = "video"

    def legs(self) -> Iterator[str]:
        """Price by length, order both ways, both forms, a picture beside a clip, integrity, several at once, the control."""
        form = self._accepted_form()
        if form is None:
            yield f"refused: {self._refusal}"
            return
        if form != self.values.text("form"):
            self.handle.warn(f"the endpoint takes no {self.values.text('form')} ({self._refusal}); {form} is shown")
        yield "length"
        self._length(form)
        shown = {
            "order": clip_item(self.seed, form=form),
            "order, backwards": clip_item(self.seed, reverse=True, form=form),
        }
        readable = True
        for name, item in shown.items():
            yield f"probe: {name}"
            readable &= self.probe(name, item).worth is Worth.PASS
        if readable:
            yield "forms"
            self._parity(form)
            yield "picture and video"
            mixed = self.asker.show(_in_form(mixed_item(self.seed), form, self.seed))
            self.add("mixed", Cell("picture and video", mixed.worth, mixed.detail))
            yield from self.together(lambda seed: clip_item(seed, form=form))
        yield "control"
        self.control(shown)

    def more_metrics(self) -> dict[str, float]:
        """Of the price by length."""
        ratio = getattr(self, "_ratio", None)
        return {} if ratio is None else {"group_count_ratio": ratio}

    def _accepted_form(self) -> str | None:
        """The form that is taken, the wanted one first; None and the reason when none is."""
        self._refusal = ""
        wanted = self.values.text("form")
        for form in sorted(_FORMS, key=lambda name: name != wanted):
            seen = self.asker.show(clip_item(self.seed, form=form))
            if seen.worth is not Worth.SKIPPED:
                return form
            self._refusal = self._refusal or seen.detail
        return None

    def _length(self, form: str) -> None:
        """A clip twice as long costs twice as much, or the same where a fixed number of frames is taken; never less."""
        short, long = clip_item(self.seed, form=form), clip_item(self.seed, form=form, colour_s=4)
        plain = self.plain_cost(short)
        costs = [cost_of(self.asker.show(item)) for item in (short, long)]
        if plain is None or costs[0] is None or costs[1] is None:
            self.add("geometry", Cell("length", Worth.SKIPPED, "the endpoint does not count prompt tokens"))
            return
        once, twice = costs[0] - plain, costs[1] - plain
        if once <= 0:
            self.add("geometry", Cell("length", Worth.FAIL, "a video adds no tokens: it does not reach the model"))
            return
        self._ratio = twice / once
        detail = f"{once} tokens, {twice} for one twice as long"
        if _TWICE[0] <= self._ratio <= _TWICE[1]:
            self.add("geometry", Cell("length", Worth.PASS, detail))
        elif self._ratio < _SAME[0]:
            self.add("geometry", Cell("length", Worth.FAIL, detail))
        else:
            kind = "a fixed number of frames" if self._ratio <= _SAME[1] else "a rule that is not known"
            self.add("geometry", Cell("length", Worth.SKIPPED, f"{detail}: {kind}"))

    def _parity(self, form: str) -> None:
        """The same clip in the other form."""
        other = next(name for name in _FORMS if name != form)
        seen = self.asker.show(clip_item(self.seed, form=other))
        worth = seen.worth
        detail = f"no decoder for {other}: {seen.detail}" if worth is Worth.SKIPPED else seen.detail
        self.add("forms", Cell(f"{other} as {form}", worth, detail))


def _in_form(item: Item, form: str, seed: int) -> Item:
    """The mixed item with its clip in ``form``."""
    return item._replace(parts=(item.parts[0], *clip_item(seed, form=form).parts))
