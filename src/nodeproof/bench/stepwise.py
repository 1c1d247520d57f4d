"""What benchmarks of answers share: a course written as a generator, a session that heeds a cancel, and the asking.

A dead endpoint ends the run and not a thousand requests::

    class Sample(Stepwise):
        def steps(self, desk: Desk) -> Iterator[Frame]:
            yield desk.running("ask")
            exchange = desk.ask(Ask(prompt="2+2?"))
            yield desk.completed(verdict=..., metrics=...)
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from nodeproof import __version__
from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Timeouts
from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.features import list_models
from nodeproof.bench.session import Session
from nodeproof.errors import RunError
from nodeproof.model.run import Frame, ResultTable, Stat, Verdict
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import ParamSpec, ParamValues

__all__ = ["UNREACHABLE", "Desk", "Stepwise"]

UNREACHABLE = frozenset({Outcome.DNS, Outcome.CONNECT, Outcome.TLS, Outcome.CONNECT_TIMEOUT})
"""Outcomes of a request that never got to a server."""
_PROBE_S = 10.0
_GIVE_UP_AFTER = 16
"""So many requests in a row without a connection: nobody is there any more."""
_NEVER_AFTER = 32
"""So many requests and not one answer: there will be none."""
_REFUSALS = {
    401: "give a key that it takes (--api-key-env, --api-key-file)",
    403: "give a key that it takes",
    404: "see --url, --model",
}


class Desk:
    """One run at work: its endpoint, its parameters, and the requests that are made."""

    def __init__(self, handle: PluginHandle, target: TargetEndpoint, values: ParamValues) -> None:
        """``request_timeout_s`` of ``values`` is the limit of each request."""
        self.handle = handle
        self.values = values
        self.target = target
        self.include_usage = True
        """Whether streams may be asked for their usage; :meth:`probe` finds it out."""
        self._timeout_s = float(values.usize("request_timeout_s"))
        self._started_s = time.monotonic()
        self._out = contextlib.ExitStack()
        self._session: Session | None = None
        self._beside: list[Desk] = []
        self._in_vain = 0
        self._failed = 0
        self._answered = False

    @property
    def session(self) -> Session:
        """The open session of the run's endpoint. Raises UsageError."""
        if self._session is None:
            self._session = self._out.enter_context(Session.of(self.target, _limits(self._timeout_s)))
            if self.handle.is_cancelled():  # the order came while it was opened, and found nothing to end
                self._session.cancel()
        return self._session

    def beside(self, target: TargetEndpoint) -> "Desk":
        """Another one for the same run, at another endpoint; a cancel ends what is under way there, too."""
        desk = Desk(self.handle, target, self.values)
        self._beside.append(desk)
        return desk

    def close(self) -> None:
        """Close all connections."""
        for desk in self._beside:
            desk.close()
        self._out.close()

    def cancel(self) -> None:
        """End whatever is under way; from any thread."""
        for desk in list(self._beside):
            desk.cancel()
        if self._session is not None:
            self._session.cancel()

    # Frames

    @property
    def elapsed_s(self) -> float:
        """Since the run was configured."""
        return time.monotonic() - self._started_s

    def running(self, phase: str, progress: tuple[int, int] | None = None) -> Frame:
        """A frame after which more will come."""
        return Frame.running(phase, self.elapsed_s, progress=progress)

    def completed(
        self,
        verdict: Verdict,
        metrics: Mapping[str, float],
        *,
        summary: Iterable[Stat] = (),
        table: ResultTable | None = None,
        fingerprint: str | None = None,
    ) -> Frame:
        """The last frame."""
        frame = Frame.completed("done", self.elapsed_s, verdict=verdict, metrics=metrics, summary=summary)
        return msgspec.structs.replace(frame, table=table, dataset_fingerprint=fingerprint)

    # Requests

    def probe(self) -> None:
        """See that somebody is there, and whether streams may be asked for their usage. Raises RunError, RunCancelled."""
        session = self.session
        models, problem = list_models(session)
        if models is None:
            self.handle.warn(f"endpoint: its list of models cannot be read: {problem}")
        ask = Ask(prompt="Answer with the word yes.", max_tokens=4, extra={"temperature": 0})
        first = session.send(ask)
        if first.outcome in UNREACHABLE:
            raise RunError(f"{self.target.base_url} cannot be reached: {first.detail}; start the server, or mend --url")
        if first.outcome is Outcome.STATUS and first.status in _REFUSALS:
            raise RunError(f"{self.target.base_url} refuses: {first.detail}; {_REFUSALS[first.status]}")
        if first.outcome is Outcome.STATUS and first.status in {400, 422}:
            self.include_usage = not session.send(msgspec.structs.replace(ask, include_usage=False)).ok
        if not self.include_usage:
            self.handle.warn("endpoint: it refuses stream_options; tokens are counted by chunks")

    def ask(self, ask: Ask) -> Exchange:
        """Ask one question. Raises RunCancelled, and RunError when nobody has been there for many questions."""
        exchange = self.session.send(self._fitted(ask))
        self._note([exchange])
        return exchange

    def ask_all(
        self, asks: Sequence[Ask], concurrency: int, on_done: Callable[[int, Exchange], None] | None = None
    ) -> list[Exchange]:
        """Ask them, so many at once. ``on_done`` is told each answer as it comes, on another thread."""
        found = self.session.send_all([self._fitted(ask) for ask in asks], concurrency=concurrency, on_done=on_done)
        self._note(found)
        return found

    def _fitted(self, ask: Ask) -> Ask:
        return ask if self.include_usage else msgspec.structs.replace(ask, include_usage=False)

    def _note(self, exchanges: Iterable[Exchange]) -> None:
        """Keep an eye on how it goes. Raises RunError when it is of no use to go on."""
        for exchange in exchanges:
            self._in_vain = self._in_vain + 1 if exchange.outcome in UNREACHABLE else 0
            if self._in_vain >= _GIVE_UP_AFTER:
                text = f"the last {self._in_vain} requests got no connection ({exchange.detail})"
                raise RunError(f"{self.target.base_url} is gone: {text}; see what became of the server")
            self._answered |= exchange.ok or exchange.outcome is Outcome.EMPTY
            self._failed += 1
            if not self._answered and self._failed >= _NEVER_AFTER:
                text = f"none of {self._failed} requests was answered (the last: {exchange.outcome}, {exchange.detail})"
                raise RunError(f"{self.target.base_url}: {text}; see what the server says of them")


def _limits(timeout_s: float) -> Timeouts:
    """One limit for a whole request; that for a connection is never longer than ten seconds."""
    return Timeouts(min(_PROBE_S, timeout_s), timeout_s, timeout_s, timeout_s)


class Stepwise:
    """A benchmark whose course is a generator of frames; see the module."""

    def __init__(self, descriptor: Descriptor, specs: Sequence[ParamSpec]) -> None:
        self._descriptor = descriptor
        self._specs = tuple(specs)
        self._handle: PluginHandle | None = None
        self._desk: Desk | None = None
        self._steps: Iterator[Frame] = iter(())

    def steps(self, desk: Desk) -> Iterator[Frame]:
        """The course of the run; the last frame is terminal."""
        raise NotImplementedError

    def check(self, values: ParamValues) -> None:
        """Whether parameters go together. Raises ParamError."""

    def descriptor(self) -> Descriptor:
        """Its own."""
        return self._descriptor

    def metadata(self) -> PluginMetadata:
        """Ours."""
        return PluginMetadata(self._descriptor.summary, __version__, license="Apache-2.0", official=True)

    def parameters(self) -> tuple[ParamSpec, ...]:
        """All of them."""
        return self._specs

    def load(self, handle: PluginHandle) -> None:
        """Take the endpoint over."""
        if handle.target is None:
            raise RunError(f"{self._descriptor.id} needs an endpoint: give --url and --model")
        self._handle = handle

    def configure(self, values: ParamValues) -> None:
        """Check that the parameters go together, and begin from nothing."""
        if self._handle is None or self._handle.target is None:
            raise RunError(f"{self._descriptor.id}: configure() before load()")
        self.check(values)
        self.cleanup()
        self._desk = Desk(self._handle, self._handle.target, values)
        self._steps = self.steps(self._desk)

    def next(self) -> Frame:
        """One step, which a cancel ends at once."""
        handle, desk = self._handle, self._desk
        if handle is None or desk is None:
            raise RunError(f"{self._descriptor.id}: next() before load() and configure()")
        handle.check_cancelled()
        with handle.on_cancel(desk.cancel):
            return next(self._steps)

    def cleanup(self) -> None:
        """Close what is open."""
        close = getattr(self._steps, "close", None)
        if close is not None:
            with contextlib.suppress(ValueError):  # a thread that was given up is still in it
                close()
        if self._desk is not None:
            self._desk.close()
