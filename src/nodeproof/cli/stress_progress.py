"""What a job does right now, for people at a terminal: bar, rate, time to go, temperature and slow-downs of the box."""

import sys
from types import TracebackType
from typing import Protocol, Self

from nodeproof.model.hardware import LiveSample
from nodeproof.stress.job import Live
from nodeproof.stress.metric_units import rate_text

__all__ = ["Progress", "QuietProgress", "box_text", "make_progress", "progress_text"]


class Progress(Protocol):
    """Shown while a job runs."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave nothing on the screen."""
        ...

    def show(self, live: Live | None) -> None:
        """How the job gets on."""
        ...


class QuietProgress:
    """Where nobody is looking."""

    def __enter__(self) -> Self:
        """Nothing."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing."""

    def show(self, live: Live | None) -> None:
        """Nothing."""


def make_progress() -> Progress:
    """A bar when standard error is a terminal."""
    return _Bar() if sys.stderr.isatty() else QuietProgress()


def progress_text(live: Live) -> str:
    """Phase, rate and time to go: ``factor 88.3 GFLOP/s, about 12 s to go``."""
    beat = live.beat
    if beat is None:
        return "starting"
    text = beat.phase
    if beat.rate is not None and beat.rate_unit:
        text += f" {rate_text(beat.rate, beat.rate_unit)}"
    return text


def box_text(box: LiveSample | None) -> str:
    """What the newest look at the box shows; what could not be read is left out."""
    if box is None:
        return ""
    parts = []
    if box.cpu_temp_c is not None:
        parts.append(f"{box.cpu_temp_c:.0f} °C")
    if box.busy_mhz is not None:
        parts.append(f"{box.busy_mhz:.0f} MHz")
    if box.throttle_share:
        parts.append(f"throttled {box.throttle_share:.0%}")
    elif box.throttle_events:
        parts.append(f"{box.throttle_events} slow-downs")
    if box.foreign_share is not None and box.foreign_share > 0.05:
        parts.append(f"others use {box.foreign_share:.0%}")
    if box.steal_share is not None and box.steal_share > 0.02:
        parts.append(f"stolen {box.steal_share:.0%}")
    return ", ".join(parts)


class _Bar:
    """One line on standard error, made anew a few times a second."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - only where a person is looking
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415

        self._progress = Progress(
            TextColumn("{task.fields[item]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[phase]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("to go"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[box]}", markup=False),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, item="", phase="starting", box="")
        self._at = (-1, "")

    def __enter__(self) -> Self:
        """Take over the line."""
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give it back, empty."""
        self._progress.stop()

    def show(self, live: Live | None) -> None:
        """Change it."""
        if live is None:
            return
        beat = live.beat
        at = (live.number, beat.phase if beat is not None else "")
        if at != self._at:
            self._progress.reset(self._task)
            self._at = at
        self._progress.update(
            self._task,
            completed=beat.done if beat is not None else 0,
            total=beat.total if beat is not None else None,
            item=f"{live.item} ({live.number} of {live.items})",
            phase=progress_text(live),
            box=box_text(live.box),
        )
