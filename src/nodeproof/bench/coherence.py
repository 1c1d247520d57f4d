"""Whether an endpoint answers sensibly before it is measured: its list of models, and questions whose answers are known.

The probe describes and never forbids: numbers of an endpoint that talks nonsense are still numbers, and its record says so.
"""

import re
from typing import NamedTuple

from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.features import list_models
from nodeproof.bench.session import Session
from nodeproof.errors import RunCancelled
from nodeproof.runs.endpoint import ModelExpectation, TargetEndpoint
from nodeproof.runs.ports import CancelSignal, CoherenceReport

__all__ = ["QUESTIONS", "EndpointProbe", "Known", "accepts"]

_TIMEOUT_S = 30.0
_TOKENS = 96
_QUOTE_CHARS = 60
_ERROR_CHARS = 280
_EXTRA: dict[str, object] = {"temperature": 0, "chat_template_kwargs": {"enable_thinking": False}}


class Known(NamedTuple):
    """A question and the words that answer it."""

    label: str
    question: str
    terms: tuple[str, ...]


QUESTIONS = (
    Known("arithmetic", "What is the sum of two and two? Answer with the number alone.", ("4", "four")),
    Known("recall", "What is the capital of France? Answer with the name of the city alone.", ("paris",)),
)


def accepts(terms: tuple[str, ...], text: str) -> bool:
    """Whether one of ``terms`` stands in ``text`` as a whole word."""
    lowered = text.lower()
    return any(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", lowered) is not None for term in terms)


class EndpointProbe:
    """Implements the executor's port."""

    def probe(self, target: TargetEndpoint, intended_for: ModelExpectation | None, cancel: CancelSignal) -> CoherenceReport:
        """Ask the endpoint; the gravest concern is told. Raises what makes asking impossible (an address of no use)."""
        limits = Timeouts(min(10.0, _TIMEOUT_S), _TIMEOUT_S, _TIMEOUT_S, _TIMEOUT_S)
        with Session.of(target, limits) as session:
            watch = _Watch(session, cancel)
            models, problem = watch.models()
            exchanges: list[tuple[Known, Exchange]] = []
            for known in QUESTIONS:
                exchange = watch.ask(known)
                exchanges.append((known, exchange))
                if not exchange.ok and exchange.outcome is not Outcome.LENGTH:
                    break
            return _judge(target, intended_for, models, exchanges, problem)


class _Watch:
    """Asks in such a way that a cancel is heeded."""

    def __init__(self, session: Session, cancel: CancelSignal) -> None:
        self._session, self._cancel = session, cancel

    def models(self) -> tuple[list[str] | None, str]:
        self._heed()
        return list_models(self._session)

    def ask(self, known: Known) -> Exchange:
        self._heed()
        plain = Ask(prompt=known.question, max_tokens=_TOKENS, include_usage=False, extra=_EXTRA)
        exchange = self._session.send(plain)
        if exchange.outcome is Outcome.STATUS and exchange.status in {400, 422}:
            # A server that knows no template settings is no worse for it.
            exchange = self._session.send(Ask(prompt=known.question, max_tokens=_TOKENS, include_usage=False))
        return exchange

    def _heed(self) -> None:
        if self._cancel.is_cancelled():
            raise RunCancelled("the run is to stop")


def _judge(
    target: TargetEndpoint,
    intended_for: ModelExpectation | None,
    models: list[str] | None,
    exchanges: list[tuple[Known, Exchange]],
    problem: str,
) -> CoherenceReport:
    failed = [(known, exchange) for known, exchange in exchanges if not exchange.ok]
    if failed:
        known, exchange = failed[0]
        detail = " ".join(exchange.detail.split())[:_ERROR_CHARS]
        return CoherenceReport(f"the endpoint did not answer the question {known.label} ({exchange.outcome}): {detail}")
    served = target.model if models is None or target.model in models or not models else models[0]
    if intended_for is not None and not intended_for.accepts(served):
        return CoherenceReport(f"{served} is not a model that this benchmark is meant for: {intended_for.note}")
    if models is not None and not models:
        return CoherenceReport("the endpoint lists no model: nothing is loaded, and the run will produce no numbers")
    if models is not None and target.model not in models:
        return CoherenceReport(f"{target.model} is not served: the numbers will be those of {', '.join(models[:3])}")
    wrong = [(known, exchange) for known, exchange in exchanges if not _passes(known, exchange)]
    if wrong:
        said = "; ".join(f"{known.label}: {_quoted(exchange)}" for known, exchange in wrong)
        return CoherenceReport(f"odd answers, though the run is valid as far as speed goes: {said}")
    answers = tuple(f"{known.label}: {_quoted(exchange)}" for known, exchange in exchanges)
    return CoherenceReport("", answers if models is not None else (*answers, f"models: not listed ({problem})"))


def _passes(known: Known, exchange: Exchange) -> bool:
    return accepts(known.terms, exchange.text) or accepts(known.terms, exchange.reasoning)


def _quoted(exchange: Exchange) -> str:
    text = " ".join((exchange.text if exchange.text.strip() else exchange.reasoning).split())
    if not text:
        return "an empty answer"
    return f"{text[:_QUOTE_CHARS]!r}" + ("..." if len(text) > _QUOTE_CHARS else "")
