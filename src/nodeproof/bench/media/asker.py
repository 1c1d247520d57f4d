"""Asking about what is shown, and what an answer is worth."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.media.items import Item, Part
from nodeproof.bench.session import Session

__all__ = ["Asker", "Cell", "Seen", "Worth", "refused"]

_REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
_SAYS_SO = re.compile(r"not supported|unsupported|not implemented", re.IGNORECASE)
"""llama.cpp: status 500, "image input is not supported"."""
_QUOTE_CHARS = 60


class Worth(StrEnum):
    """What came of a check."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIPPED = "skipped"
    """The endpoint says that it cannot do this."""
    ERROR = "error"
    """It could not be told: no whole answer came."""

    @property
    def measured(self) -> bool:
        """Whether it says something of the endpoint's sight."""
        return self in {Worth.PASS, Worth.FAIL}


class Cell(msgspec.Struct, frozen=True):
    """One check."""

    name: str
    worth: Worth
    detail: str = ""


class Seen(NamedTuple):
    """One answer about something shown."""

    exchange: Exchange
    item: Item

    @property
    def worth(self) -> Worth:
        """Of the answer."""
        if refused(self.exchange):
            return Worth.SKIPPED
        if not self.exchange.ok:
            return Worth.ERROR
        return Worth.PASS if self.item.right(self.exchange.text) else Worth.FAIL

    @property
    def detail(self) -> str:
        """What was answered, and what would have been right; empty when it was."""
        if not self.exchange.ok:
            return f"{self.exchange.outcome}: {self.exchange.detail}"[:200]
        if self.worth is Worth.PASS:
            return ""
        said = " ".join(self.exchange.text.split())
        quoted = f"{said[:_QUOTE_CHARS]!r}" if said else "nothing"
        return f"answered {quoted} where {', '.join(self.item.expected)} was shown"


class Asker:
    """Asks with one set of limits."""

    def __init__(self, session: Session, model: str, max_tokens: int) -> None:
        self.session, self.model = session, model
        self._max_tokens = max_tokens

    def ask(
        self,
        content: Sequence[Part],
        *,
        before: Sequence[Mapping[str, object]] = (),
        stream: bool = True,
        extra: Mapping[str, object] | None = None,
    ) -> Ask:
        """A question with ``content``; ``before``: messages that were said earlier."""
        return Ask(
            messages=(*(dict(message) for message in before), {"role": "user", "content": list(content)}),
            max_tokens=self._max_tokens,
            stream=stream,
            extra={"temperature": 0, **(extra or {})},
        )

    def show(self, item: Item) -> Seen:
        """Show it alone and ask."""
        return Seen(self.session.send(self.ask(item.content)), item)

    def show_all(self, items: Sequence[Item]) -> list[Seen]:
        """Show them at once, each in a request of its own."""
        asks = [self.ask(item.content) for item in items]
        exchanges = self.session.send_all(asks, concurrency=len(asks))
        return [Seen(exchange, item) for exchange, item in zip(exchanges, items, strict=True)]

    def responses_ask(self, item: Item) -> Ask:
        """The same for the responses interface, which names parts otherwise."""
        parts: list[Part] = []
        for part in item.content:
            if part["type"] == "text":
                parts.append({"type": "input_text", "text": part["text"]})
            else:
                kind = str(part["type"]).removesuffix("_url")
                holder = part[str(part["type"])]
                url = holder["url"] if isinstance(holder, dict) else ""
                parts.append({"type": f"input_{kind}", f"{kind}_url": url})
        message: dict[str, object] = {"role": "user", "content": parts}
        return Ask(api=Api.RESPONSES, messages=(message,), max_tokens=self._max_tokens, extra={"temperature": 0})

    def choices_body(self, item: Item, count: int) -> bytes:
        """Body of a request for several answers at once."""
        ask = self.ask(item.content, stream=False, extra={"n": count})
        return ask.body(self.model)


def refused(exchange: Exchange) -> bool:
    """Whether the server says that it does not do this, rather than doing it wrong: by its status, or in words under a 500."""
    if exchange.outcome is not Outcome.STATUS:
        return False
    return exchange.status in _REFUSALS or _SAYS_SO.search(exchange.detail) is not None
