"""A reply as it is compared: byte for byte, with its end and its count of tokens.

Two replies are equal when everything that a reader or a tool would get is the same bytes, and both ended for the same reason.
Counts of tokens are compared where the server gave both. A reply that did not come whole is not compared at all: it is
unmeasured.
"""

import hashlib
from enum import StrEnum
from typing import NamedTuple

import msgspec

from nodeproof.bench.exchange import Exchange, Outcome

__all__ = ["Comparison", "Kind", "Reply", "common_prefix", "compare", "reply_of"]

_FIELD, _PART = "\x1e", "\x1f"


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer."""

    outcome: str
    ok: bool
    """It came whole; an empty one may have, too."""
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments of each tool call, as they came."""
    finish: str = ""
    tokens: int = 0
    """Completion tokens: the server's count, else chunks."""
    counted: bool = False
    """Whether the server counted them."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    detail: str = ""

    @property
    def empty(self) -> bool:
        """Whether it says nothing at all."""
        return not (self.text.strip() or self.reasoning.strip() or self.calls)

    def canonical(self) -> bytes:
        """What is compared."""
        calls = _FIELD.join(f"{name}{_PART}{arguments}" for name, arguments in self.calls)
        whole = _FIELD.join((self.reasoning, self.text, calls, self.finish))
        return whole.encode("utf-8", "surrogatepass")

    def digest(self) -> str:
        """SHA-256 of :meth:`canonical`."""
        return hashlib.sha256(self.canonical()).hexdigest()


def reply_of(exchange: Exchange) -> Reply:
    """What came of a request."""
    return Reply(
        outcome=str(exchange.outcome),
        ok=exchange.ok or exchange.outcome is Outcome.EMPTY,
        text=exchange.text,
        reasoning=exchange.reasoning,
        calls=tuple((call.name, call.arguments) for call in exchange.tool_calls),
        finish=exchange.finish_reason or "",
        tokens=exchange.tokens,
        counted=exchange.usage.completion_tokens is not None,
        prompt_tokens=exchange.usage.prompt_tokens,
        cached_tokens=exchange.usage.cached_prompt_tokens,
        detail=" ".join(exchange.detail.split())[:300],
    )


class Kind(StrEnum):
    """What a comparison found."""

    EQUAL = "equal"
    DIVERGED = "diverged"
    UNMEASURED = "unmeasured"
    """One of the two did not come whole."""


class Comparison(NamedTuple):
    """Two replies set against each other."""

    kind: Kind
    common_bytes: int = 0
    """Of diverged ones: bytes from the beginning that are the same."""
    why: str = ""


def compare(reference: Reply, other: Reply) -> Comparison:
    """Set ``other`` against ``reference``."""
    for name, reply in (("the reference", reference), ("the other", other)):
        if not reply.ok:
            return Comparison(Kind.UNMEASURED, why=f"{name}: {reply.outcome}")
    one, two = reference.canonical(), other.canonical()
    if one != two:
        return Comparison(Kind.DIVERGED, common_prefix(one, two), "the bytes differ")
    if reference.counted and other.counted and reference.tokens != other.tokens:
        return Comparison(Kind.DIVERGED, len(one), f"{reference.tokens} tokens against {other.tokens}")
    return Comparison(Kind.EQUAL, len(one))


def common_prefix(one: bytes, two: bytes) -> int:
    """How many bytes from the beginning are the same."""
    return next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
