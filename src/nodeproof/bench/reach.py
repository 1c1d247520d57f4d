"""An endpoint that cannot be reached ends a run at once: a load on a closed port is thousands of failures and no number."""

from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.errors import RunError

__all__ = ["GONE", "EndpointLostError", "require_reached", "unreached"]

GONE = frozenset({Outcome.DNS, Outcome.CONNECT, Outcome.TLS})
"""Outcomes after which the next request would fare no better. A connection that takes too long is none: a server that is
overloaded takes none for a while."""
_NOT_REACHED = GONE | {Outcome.CONNECT_TIMEOUT}


class EndpointLostError(RunError):
    """No connection to the endpoint can be made, or none any more. ``answers``: requests that had ended before."""

    def __init__(self, detail: str, answers: int = 0) -> None:
        self.detail = detail
        self.answers = answers
        super().__init__(detail)


def unreached(base_url: str, detail: str, answers: int = 0) -> EndpointLostError:
    """The error for ``detail``, with place and remedy."""
    after = f" after {answers} requests" if answers else ""
    remedy = "see what became of the server" if answers else "start the server there, or give its address with --url"
    return EndpointLostError(f"{base_url} cannot be reached{after}: {detail}; {remedy}", answers)


def require_reached(exchange: Exchange, base_url: str) -> Exchange:
    """``exchange``, when a connection had come about. Raises EndpointLostError."""
    if exchange.outcome in _NOT_REACHED:
        raise unreached(base_url, exchange.detail)
    return exchange
