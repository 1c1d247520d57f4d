"""Whether replies that are set against each other are answers at all: before that, their being equal proves nothing."""

from collections.abc import Iterable, Mapping, Sequence

from nodeproof.bench.equality.replies import Reply
from nodeproof.bench.guards import GuardResult, liveness, repeat_equality
from nodeproof.bench.guards import Reply as Judged

__all__ = ["alive", "same_again"]


def alive(replies: Mapping[str, Reply] | Iterable[tuple[str, Reply]]) -> GuardResult:
    """The guard over replies by question; those that did not come are no business of it."""
    pairs = replies.items() if isinstance(replies, Mapping) else replies
    return liveness([Judged(name, _said(reply), reply.tokens if reply.counted else None) for name, reply in pairs if reply.ok])


def same_again(first: Sequence[Reply], second: Sequence[Reply]) -> GuardResult:
    """The guard over a control: the same asked twice in the same way."""
    return repeat_equality([_whole(reply) for reply in first], [_whole(reply) for reply in second])


def _said(reply: Reply) -> str:
    """All that a reply says, without how it ended."""
    return "".join((reply.reasoning, reply.text, *(f"{name}{arguments}" for name, arguments in reply.calls)))


def _whole(reply: Reply) -> str | None:
    if not reply.ok:
        return None
    return reply.canonical().decode("utf-8", "replace") + (f"\x1e{reply.tokens}" if reply.counted else "")
