"""What a benchmark is: the interface that ours and everybody else's implement alike.

A distribution offers one by an entry point of the group ``nodeproof.benchmarks`` that names its :class:`Descriptor`. The executor
calls, in this order and never two at the same time: ``build``, ``load``, ``configure``, ``next`` until a frame is terminal, and
``cleanup`` once, whatever happened. One object serves one run. All calls but ``cleanup`` come on one thread. A call that does not
come back after a cancel loses its thread; ``cleanup`` is then called on another one.

Heavy work belongs into a child process. A call may block, as long as it returns soon after the handle says that the run is
cancelled: look at ``handle.check_cancelled()``, wait with ``handle.wait()``, or register with ``handle.on_cancel()`` what ends
the waiting (kill the child, close the socket).
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from nodeproof.errors import RunError
from nodeproof.model.hardware import Sensitivity
from nodeproof.model.run import Frame, is_final
from nodeproof.runs.endpoint import ModelExpectation
from nodeproof.runs.params import ParamSpec, ParamValues

if TYPE_CHECKING:
    from nodeproof.runs.handle import PluginHandle

__all__ = ["UNRUNNABLE", "Benchmark", "Descriptor", "PluginMetadata", "drive", "metadata_of"]

_ID = re.compile(r"[a-z0-9-]{1,64}")
UNRUNNABLE = "unrunnable"
"""A duration hint that begins so is the only one whose :attr:`Descriptor.expected_secs` may be 0."""


class PluginMetadata(NamedTuple):
    """Who made a benchmark, and where help is. Empty = not said."""

    description: str
    version: str
    author: str = ""
    author_url: str = ""
    email: str = ""
    repository: str = ""
    help_url: str = ""
    bug_report_url: str = ""
    license: str = ""
    official: bool = False

    @classmethod
    def third_party(
        cls,
        description: str,
        version: str,
        *,
        author: str = "",
        author_url: str = "",
        email: str = "",
        repository: str = "",
        help_url: str = "",
        bug_report_url: str = "",
        license: str = "",  # noqa: A002 - the field's own name
    ) -> "PluginMetadata":
        """For everybody's; it cannot be official."""
        return cls(description, version, author, author_url, email, repository, help_url, bug_report_url, license)

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of what is said, for people."""
        pairs = (
            ("Author", self.author),
            ("Website", self.author_url),
            ("Contact", self.email),
            ("Repository", self.repository),
            ("Docs", self.help_url),
            ("Report a bug", self.bug_report_url),
            ("License", self.license),
        )
        return [(label, value) for label, value in pairs if value]


class Benchmark(Protocol):
    """One run of one benchmark."""

    def descriptor(self) -> "Descriptor":
        """What it is an instance of. Always the same."""
        ...

    def metadata(self) -> PluginMetadata:
        """Who made it. Always the same."""
        ...

    def parameters(self) -> Sequence[ParamSpec]:
        """Its parameters with their defaults. Callable on an object that was only built."""
        ...

    def load(self, handle: "PluginHandle") -> None:
        """Get hold of all that the run needs; check what it depends on. An error ends the run: its text names what is missing."""
        ...

    def configure(self, values: ParamValues) -> None:
        """Take ``values`` over, forgetting whatever an earlier configuration left. Raises ParamError naming the field."""
        ...

    def next(self) -> Frame:
        """One bounded piece of work; not called again after a terminal frame or an error."""
        ...

    def cleanup(self) -> None:
        """Give back whatever is held. Called once on every road, also on an object that was never loaded."""
        ...


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """Static identity of a benchmark (bench.md 1.1). Making one imports nothing heavy. Raises RunError when it is not sound."""

    id: str
    """``[a-z0-9-]``, never changed: also the name of the directory of its runs."""
    name: str
    summary: str
    """One line for lists."""
    detail: str
    """A paragraph: what it measures, what it costs."""
    duration_hint: str
    """For people."""
    expected_secs: int
    """Wall time at default parameters."""
    updated: str
    """Date of the instrument, ``YYYY-MM-DD``: moves when prompts, bounds or scoring change, and never for anything else.
    Runs from before and after do not compare."""
    sensitivity: Sensitivity
    """What the state of the box can spoil. There is no default: whoever adds a benchmark has to answer."""
    build: Callable[[], Benchmark]
    """Makes a fresh one: cheap, touches nothing."""
    needs_confirmation: bool = False
    """It has a side effect beyond load."""
    intended_for: ModelExpectation | None = None
    threshold_params: tuple[tuple[str, str], ...] = ()
    """Parameter key and metric key: a gate fills the parameter with the committed bound of the metric."""
    aliases: tuple[str, ...] = ()
    """Other ids it answers to."""
    needs_endpoint: bool = False
    """It talks to an inference server: coherence is probed where there is a probe."""

    def __post_init__(self) -> None:
        for name in (self.id, *self.aliases):
            if _ID.fullmatch(name) is None:
                raise RunError(f"benchmark id {name[:80]!r}: expected 1 to 64 of a-z, 0-9 and -")
        if not (self.name and self.summary and self.detail and self.duration_hint):
            raise RunError(f"benchmark {self.id}: name, summary, detail and duration_hint must say something")
        if self.expected_secs < 0 or (self.expected_secs == 0 and not self.duration_hint.startswith(UNRUNNABLE)):
            raise RunError(f"benchmark {self.id}: expected_secs {self.expected_secs} is no estimate")
        try:
            dt.datetime.strptime(self.updated, "%Y-%m-%d").replace(tzinfo=dt.UTC)
        except ValueError:
            raise RunError(f"benchmark {self.id}: updated is {self.updated!r}, expected a date like 2026-11-30") from None


def metadata_of(benchmark: Benchmark) -> PluginMetadata:
    """What it says of itself. Raises RunError when that is something else, and whatever it raises."""
    metadata = benchmark.metadata()
    if not isinstance(metadata, PluginMetadata):
        raise RunError(f"metadata() returned a {type(metadata).__name__} where PluginMetadata was expected")
    return metadata


def drive(benchmark: Benchmark) -> Iterator[Frame | Exception]:
    """Every frame of a configured benchmark, up to and with the first terminal one, or up to and with the first error.

    An error is handed on as an item and ends it; nothing is called after it. Cleaning up is the caller's business.
    """
    while True:
        try:
            frame = benchmark.next()
            if not isinstance(frame, Frame):
                raise RunError(f"next() returned a {type(frame).__name__} where a Frame was expected")  # noqa: TRY301 - handed on like the rest
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is the last item
            yield error
            return
        yield frame
        if is_final(frame):
            return
