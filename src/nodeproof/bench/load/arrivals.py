"""When requests begin in an open loop: seconds after the epoch, in order, the same for the same seed on every worker."""

import itertools
import random
from collections.abc import Iterator, Sequence

from nodeproof.bench.load.plan import Arrival
from nodeproof.errors import RunError

__all__ = ["arrivals"]


def arrivals(arrival: Arrival, seed: int, duration_s: float, trace_s: Sequence[float] = ()) -> Iterator[float]:
    """Intended starts, those before ``duration_s``. Raises RunError for a kind that is not known."""
    source = _SOURCES.get(arrival.kind)
    if source is None:
        raise RunError(f"arrival {arrival.kind!r}: expected one of {', '.join(_SOURCES)}")
    return itertools.takewhile(lambda at_s: at_s < duration_s, source(arrival, random.Random(seed), duration_s, trace_s))  # noqa: S311


def _constant(arrival: Arrival, _: random.Random, __: float, ___: Sequence[float]) -> Iterator[float]:
    return (number / arrival.rate for number in itertools.count())


def _poisson(arrival: Arrival, chance: random.Random, __: float, ___: Sequence[float]) -> Iterator[float]:
    at_s = 0.0
    while True:
        at_s += chance.expovariate(arrival.rate)
        yield at_s


def _gamma(arrival: Arrival, chance: random.Random, __: float, ___: Sequence[float]) -> Iterator[float]:
    shape, at_s = arrival.burstiness, 0.0
    while True:
        at_s += chance.gammavariate(shape, 1.0 / (shape * arrival.rate))
        yield at_s


def _ramp(arrival: Arrival, _: random.Random, duration_s: float, ___: Sequence[float]) -> Iterator[float]:
    """The n-th begins when the integral of the rate reaches n."""
    begin, slope = arrival.rate, (arrival.rate_end - arrival.rate) / duration_s
    for number in itertools.count():
        if abs(slope) < 1e-12:
            yield number / begin
            continue
        inside = begin * begin + 2 * slope * number
        if inside < 0:  # a falling ramp has come to rate 0
            return
        yield (inside**0.5 - begin) / slope


def _trace(arrival: Arrival, _: random.Random, __: float, trace_s: Sequence[float]) -> Iterator[float]:
    """As recorded; ``rate`` is how many times faster."""
    return (at_s / arrival.rate for at_s in trace_s)


_SOURCES = {"constant": _constant, "poisson": _poisson, "gamma": _gamma, "ramp": _ramp, "trace": _trace}
