"""Whether what is shown reaches the answer, and only its own: the checks that pictures and videos share."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from nodeproof.bench.load.prompts import filler
from nodeproof.bench.media.asker import Asker, Cell, Seen, Worth
from nodeproof.bench.media.items import Make, Part

__all__ = ["INTEGRITY", "concurrent_cell", "cost_of", "integrity_cells"]

_AT_ONCE = 6
_LONG_WORDS = 1500
_CHOICES = 2


def integrity_cells(asker: Asker, make: Make, seed: int) -> Iterator[Cell]:
    """One check after the other. ``make`` draws what the model was seen to read."""
    for number, (name, check) in enumerate(INTEGRITY.items()):
        yield msgspec.structs.replace(check(asker, make, seed + 1000 * (number + 1)), name=name)


def concurrent_cell(asker: Asker, make: Make, seed: int, at_once: int) -> Cell:
    """So many different ones in flight: each must get its own answer."""
    seen = asker.show_all([make(seed + number) for number in range(at_once)])
    foreign = [one for one in seen if one.worth is Worth.FAIL and _belongs_to_another(one, seen)]
    cell = _together(f"at once {at_once}", seen)
    if foreign:
        return msgspec.structs.replace(cell, detail=f"another request's picture was answered: {foreign[0].detail}")
    return cell


def cost_of(seen: Seen) -> int | None:
    """Prompt tokens by the server's count."""
    return seen.exchange.usage.prompt_tokens


def _heterogeneous(asker: Asker, make: Make, seed: int) -> Cell:
    return concurrent_cell(asker, make, seed, _AT_ONCE)


def _prefix(asker: Asker, make: Make, seed: int) -> Cell:
    """The same words with another picture, and with the first again: a cache must not mistake one for the other."""
    first, second = make(seed), make(seed + 1)
    return _together("", [asker.show(item) for item in (first, second, first)])


def _long_prompt(asker: Asker, make: Make, seed: int) -> Cell:
    """Behind a text that is longer than what a server takes in one piece."""
    item = make(seed)
    text: Part = {"type": "text", "text": f"Pay no heed to these words: {filler(seed % 997, _LONG_WORDS)}."}
    return _together("", [Seen(asker.session.send(asker.ask((text, *item.content))), item)])


def _history(asker: Asker, make: Make, seed: int) -> Cell:
    """Shown in an earlier turn, with another after it, and asked for the earlier one."""
    item = make(seed)
    before: tuple[Mapping[str, object], ...] = (
        {"role": "user", "content": [*item.parts, {"type": "text", "text": "Look at this; a question follows."}]},
        {"role": "assistant", "content": "I have looked at it."},
    )
    content: tuple[Part, ...] = ({"type": "text", "text": item.question},)
    return _together("", [Seen(asker.session.send(asker.ask(content, before=before)), item)])


def _parity(asker: Asker, make: Make, seed: int) -> Cell:
    """As a stream and in one piece: both right, at the same cost."""
    item = make(seed)
    exchanges = [asker.session.send(asker.ask(item.content, stream=stream)) for stream in (True, False)]
    seen = [Seen(exchange, item) for exchange in exchanges]
    cell = _together("", seen)
    costs = [cost_of(one) for one in seen]
    if cell.worth is Worth.PASS and None not in costs and costs[0] != costs[1]:
        return Cell("", Worth.FAIL, f"{costs[0]} prompt tokens as a stream, {costs[1]} in one piece")
    return cell


def _choices(asker: Asker, make: Make, seed: int) -> Cell:
    """Several answers to one request: all must have seen it."""
    item = make(seed)
    status, body = asker.session.post_json("/v1/chat/completions", asker.choices_body(item, _CHOICES))
    if status in {400, 404, 422, 501}:
        return Cell("", Worth.SKIPPED, f"several choices: status {status}")
    texts = _choice_texts(body) if status == 200 else None
    if texts is None:
        return Cell("", Worth.ERROR, f"several choices: status {status}: {body[:120].decode('utf-8', 'replace')}")
    if len(texts) != _CHOICES:
        return Cell("", Worth.SKIPPED, f"{_CHOICES} choices were asked for, {len(texts)} came")
    wrong = [text for text in texts if not item.right(text)]
    return Cell("", Worth.FAIL, f"one choice says {wrong[0][:60]!r}") if wrong else Cell("", Worth.PASS)


def _responses(asker: Asker, make: Make, seed: int) -> Cell:
    """Through the responses interface."""
    item = make(seed)
    return _together("", [Seen(asker.session.send(asker.responses_ask(item)), item)])


def _thinking(asker: Asker, make: Make, seed: int) -> Cell:
    """With and without thinking aloud first."""
    item = make(seed)
    seen = []
    for thinks in (False, True):
        extra = {"chat_template_kwargs": {"enable_thinking": thinks}}
        seen.append(Seen(asker.session.send(asker.ask(item.content, extra=extra)), item))
    if any(not one.exchange.text.strip() and one.exchange.reasoning for one in seen):
        return Cell("", Worth.SKIPPED, "max_tokens was used up by thinking")
    return _together("", seen)


INTEGRITY: Mapping[str, Callable[[Asker, Make, int], Cell]] = {
    "heterogeneous": _heterogeneous,
    "prefix-isolation": _prefix,
    "long-prompt": _long_prompt,
    "history": _history,
    "stream-parity": _parity,
    "choices": _choices,
    "responses": _responses,
    "thinking": _thinking,
}
"""By name, in their order."""


def _together(name: str, seen: list[Seen]) -> Cell:
    """The worst of them: wrong before unknown before refused."""
    for worth in (Worth.FAIL, Worth.ERROR, Worth.SKIPPED):
        bad = [one for one in seen if one.worth is worth]
        if bad:
            return Cell(name, worth, bad[0].detail)
    return Cell(name, Worth.PASS)


def _belongs_to_another(one: Seen, seen: list[Seen]) -> bool:
    return any(other.item.right(one.exchange.text) for other in seen if other.item.expected != one.item.expected)


def _choice_texts(body: bytes) -> list[str] | None:
    """Texts of all choices of a chat answer."""
    try:
        found = msgspec.json.decode(body)
        return [str(choice["message"]["content"]) for choice in found["choices"]]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
