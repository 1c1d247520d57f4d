"""Before the first cell: what the endpoint can do, which fields it takes, and how many words make a prompt of a length."""

import secrets
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.features import Features, count_tokens
from nodeproof.bench.load.measure import discover_features
from nodeproof.bench.load.plan import LoadPlan, PromptPlan
from nodeproof.bench.load.prompts import Questions
from nodeproof.bench.session import Session
from nodeproof.errors import RunError
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.handle import PluginHandle

__all__ = ["Prepared", "accepted_fields", "calibrated", "limits_of", "prepare"]

_REFUSED = frozenset({400, 422})
_OPTIONAL = ("reasoning_effort", "presence_penalty", "frequency_penalty", "seed")
_ROUNDS = 3
_FAR = 0.1
_DETAIL_CHARS = 280


class Prepared(NamedTuple):
    """What the probe found out."""

    features: Features
    extra: dict[str, object]
    """Fields of the body that the endpoint takes."""


def limits_of(request_timeout_s: int) -> Timeouts:
    """Limits of a request that may take so long altogether."""
    limit_s = float(request_timeout_s)
    return Timeouts(min(10.0, limit_s), limit_s, limit_s, limit_s)


def prepare(
    handle: PluginHandle, target: TargetEndpoint, timeouts: Timeouts, extra: Mapping[str, object], *, ignore_eos: str
) -> Prepared:
    """Ask what it can do, and leave out what it refuses of ``extra``. Raises RunError when it answers nothing."""
    with Session.of(target, timeouts) as session, handle.on_cancel(session.cancel):
        found = accepted_fields(session, extra, target.base_url)
    for key in sorted(extra.keys() - found.keys()):
        handle.warn(f"endpoint: it refuses the field {key}; requests are sent without it")
    features = discover_features(handle, target, Api.CHAT, timeouts, ignore_eos=ignore_eos)
    if ignore_eos == "yes" or (ignore_eos == "auto" and features.ignore_eos == "honoured"):
        found["ignore_eos"] = True
    return Prepared(features, found)


def accepted_fields(session: Session, extra: Mapping[str, object], address: str) -> dict[str, object]:
    """``extra`` less the optional fields that the endpoint refuses. Raises RunError when it answers nothing."""
    kept = dict(extra)
    exchange = _short(session, kept)
    for key in _OPTIONAL:
        if not _refused(exchange):
            break
        if key in kept:
            del kept[key]
            exchange = _short(session, kept)
    if not exchange.ok:
        detail = " ".join(exchange.detail.split())[:_DETAIL_CHARS]
        hint = "" if exchange.status else "; is the server up, and is this its address?"
        raise RunError(f"{address} does not answer a short question ({exchange.outcome}): {detail}{hint}")
    return kept


def calibrated(
    handle: PluginHandle, target: TargetEndpoint, timeouts: Timeouts, features: Features, plan: LoadPlan, tokens: int
) -> PromptPlan:
    """The prompts of ``plan`` with so many words that they hold ``tokens`` tokens by the server's own count.

    Where it counts nothing, words are those of the estimate, and a warning says so.
    """
    prompts = plan.prompts
    if prompts.nonce:
        prompts = msgspec.structs.replace(prompts, nonce=f"{secrets.token_hex(4)}-")
    words = max(1, round((tokens - features.tokens.overhead) * features.tokens.words_per_token) - len(prompts.task.split()))
    best: tuple[int, int] | None = None
    with Session.of(target, timeouts) as session, handle.on_cancel(session.cancel):
        for _ in range(_ROUNDS):
            counted = _count(session, target.model, features, plan, msgspec.structs.replace(prompts, words=words))
            if counted is None:
                break
            if best is None or abs(counted - tokens) < abs(best[1] - tokens):
                best = (words, counted)
            missing = round((tokens - counted) * features.tokens.words_per_token)
            if missing == 0 or words + missing < 1:
                break
            words += missing
    if best is None:
        handle.warn(f"prompts of {tokens} tokens: the endpoint does not count them; they hold about as many words")
    elif abs(best[1] - tokens) > _FAR * tokens:
        handle.warn(f"prompts of {tokens} tokens cannot be made: with template and task they hold {best[1]}")
    return msgspec.structs.replace(plan.prompts, words=words if best is None else best[0])


def _count(session: Session, model: str, features: Features, plan: LoadPlan, prompts: PromptPlan) -> int | None:
    """Tokens of a prompt as the server counts them: in its usage, else by its ``/tokenize``; None when it does not."""
    text = Questions(msgspec.structs.replace(plan, prompts=prompts), []).question(0).text
    ask = Ask(prompt=text, max_tokens=1, stream=bool(features.include_usage), include_usage=plan.include_usage, extra=plan.extra)
    counted = session.send(ask).usage.prompt_tokens
    if not counted and features.tokenize:
        counted = count_tokens(session, model, text, features.tokenize)
    return counted or None


def _short(session: Session, extra: Mapping[str, object]) -> Exchange:
    """A short question with these fields; without ``stream_options`` where that is what is refused."""
    ask = Ask(prompt="Name one colour.", max_tokens=4, extra={**extra})
    exchange = session.send(ask)
    if _refused(exchange) and "stream_options" in exchange.detail:
        exchange = session.send(msgspec.structs.replace(ask, include_usage=False))
    return exchange


def _refused(exchange: Exchange) -> bool:
    return exchange.outcome is Outcome.STATUS and exchange.status in _REFUSED
