"""A benchmark that goes its course step by step: what those of this room share that ask an endpoint themselves.

::

    class Chaos(Course):
        IDENTITY, PARAMETERS, ABOUT = CHAOS, CHAOS_PARAMETERS, "Faults of clients, and how long a server takes to recover"

        def course(self) -> Iterator[Frame]:
            yield self.running("baseline")
            ...
            yield self.done(Verdict(VerdictKind.PASS, "..."), metrics={"recovery_s": 0.2})
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import msgspec

from nodeproof import __version__
from nodeproof.bench.client import Timeouts
from nodeproof.bench.session import Session
from nodeproof.errors import RunError
from nodeproof.host.atomic import store_file
from nodeproof.model.run import Elapsed, Frame, ResultTable, RunStatus, Stat, Verdict
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import ParamSpec, ParamValues

__all__ = ["Course", "slug"]


class Course:
    """One run of a benchmark. Who makes one names :attr:`IDENTITY`, :attr:`PARAMETERS`, :attr:`ABOUT` and :meth:`course`."""

    IDENTITY: ClassVar[Descriptor]
    PARAMETERS: ClassVar[tuple[ParamSpec, ...]]
    ABOUT: ClassVar[str]
    """A line for those who ask what it is."""

    def __init__(self) -> None:
        self._handle: PluginHandle | None = None
        self._values: ParamValues | None = None
        self._steps: Iterator[Frame] | None = None
        self._stack = contextlib.ExitStack()
        self._started_s = time.monotonic()

    def descriptor(self) -> Descriptor:
        """Its identity."""
        return self.IDENTITY

    def metadata(self) -> PluginMetadata:
        """Ours."""
        return PluginMetadata(self.ABOUT, __version__, license="Apache-2.0", official=True)

    def parameters(self) -> tuple[ParamSpec, ...]:
        """Its own."""
        return self.PARAMETERS

    def load(self, handle: PluginHandle) -> None:
        """Take the endpoint over. Raises RunError when there is none."""
        if handle.target is None:
            raise RunError("this benchmark needs an endpoint: give --url and --model")
        self._handle = handle

    def configure(self, values: ParamValues) -> None:
        """Take ``values`` over, after :meth:`check`."""
        self.check(values)
        self._values, self._steps = values, None
        self._started_s = time.monotonic()

    def check(self, values: ParamValues) -> None:
        """Raise ParamError when ``values`` contradict each other."""

    def next(self) -> Frame:
        """The next step of the course."""
        if self._steps is None:
            self._steps = self.course()
        return next(self._steps)

    def cleanup(self) -> None:
        """Give back what was taken on the way."""
        if self._steps is not None:
            with contextlib.suppress(RuntimeError, ValueError):  # its thread may still be in it
                self._steps.close()  # type: ignore[attr-defined]  # a course is a generator
        self._stack.close()

    def course(self) -> Iterator[Frame]:
        """All frames, the terminal one last."""
        raise NotImplementedError

    # What a course makes use of

    @property
    def handle(self) -> PluginHandle:
        """Of the run. Raises RunError before :meth:`load`."""
        if self._handle is None:
            raise RunError(f"{self.IDENTITY.id}: next() before load()")
        return self._handle

    @property
    def values(self) -> ParamValues:
        """The configuration. Raises RunError before :meth:`configure`."""
        if self._values is None:
            raise RunError(f"{self.IDENTITY.id}: next() before configure()")
        return self._values

    @property
    def target(self) -> TargetEndpoint:
        """The endpoint."""
        target = self.handle.target
        if target is None:
            raise RunError("this benchmark needs an endpoint: give --url and --model")
        return target

    def held(self) -> contextlib.ExitStack:
        """What is put on this stack is closed by :meth:`cleanup`."""
        return self._stack

    def session(self, timeouts: Timeouts, target: TargetEndpoint | None = None) -> Session:
        """A session that a cancel ends, and :meth:`cleanup` closes."""
        session = self._stack.enter_context(Session.of(target or self.target, timeouts))
        self._stack.enter_context(self.handle.on_cancel(session.cancel))
        return session

    def elapsed_s(self) -> float:
        """Since it was configured."""
        return time.monotonic() - self._started_s

    def running(self, phase: str, done: int | None = None, total: int = 0) -> Frame:
        """A frame on the way; also the place where a cancel is heeded."""
        self.handle.check_cancelled()
        return Frame.running(phase, self.elapsed_s(), progress=None if done is None else (done, total))

    def done(
        self,
        verdict: Verdict,
        *,
        metrics: Mapping[str, float] | None = None,
        summary: Iterable[Stat] = (),
        table: ResultTable | None = None,
        dataset: str | None = None,
    ) -> Frame:
        """The last frame of a course that came to its end."""
        return Frame(
            status=RunStatus.COMPLETED,
            phase="done",
            elapsed=Elapsed.of(self.elapsed_s()),
            summary=tuple(summary),
            table=table,
            verdict=verdict,
            metrics=dict(metrics or {}),
            dataset_fingerprint=dataset,
        )

    def keep(self, name: str, value: object) -> None:
        """Store ``value`` as JSON with the record."""
        store_file(self.handle.file_path(name), msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def slug(text: str) -> str:
    """``text`` as part of a file's name."""
    kept = "".join(char if char.isalnum() and char.isascii() else "-" for char in text.lower())
    return "-".join(part for part in kept.split("-") if part)[:64] or "unnamed"
