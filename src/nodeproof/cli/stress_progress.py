"""What a job does right now, for people at a terminal: bar, rate, time to go, temperature and slow-downs of the box."""

import sys
from types import TracebackType
from typing import Protocol, Self

from nodeproof.model.hardware import LiveSample
from nodeproof.model.live_job import LiveJob
from nodeproof.stress.metric_units import rate_text

__all__ = ["Progress", "QuietProgress", "box_text", "live_text", "make_progress", "progress_text"]


class Progress(Protocol):
    """Shown while a job runs."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave nothing on the screen."""
        ...

    def show(self, live: LiveJob | None) -> None:
        """How the job gets on."""
        ...


class QuietProgress:
    """Where nobody is looking."""

    def __enter__(self) -> Self:
        """Nothing."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing."""

    def show(self, live: LiveJob | None) -> None:
        """Nothing."""


def make_progress() -> Progress:
    """A bar when standard error is a terminal."""
    return _Bar() if sys.stderr.isatty() else QuietProgress()


def progress_text(live: LiveJob) -> str:
    """Phase and rate: ``factor 88.3 GFLOP/s``."""
    phase = live.phase
    if phase is None:
        return "starting"
    return phase.name if phase.rate is None or not phase.rate_unit else f"{phase.name} {rate_text(phase.rate, phase.rate_unit)}"


def live_text(live: LiveJob) -> str:
    """A line for somebody who looks once: ``hpl (1 of 2), 12 s of at most 60 s: factor 88.3 GFLOP/s, 7 of 62 panels; 61 °C``."""
    text = f"{live.item} ({live.number} of {live.items}), {live.elapsed_s:.0f} s of at most {live.timeout_s:.0f} s: "
    text += progress_text(live)
    phase = live.phase
    if phase is not None and phase.total:
        text += f", {phase.done:g} of {phase.total:g} {phase.unit}"
    if phase is not None and phase.eta_s is not None:
        text += f", about {phase.eta_s:.0f} s to go"
    box = box_text(live.box)
    return f"{text}; {box}" if box else text


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

    def show(self, live: LiveJob | None) -> None:
        """Change it."""
        if live is None:
            return
        phase = live.phase
        at = (live.number, phase.name if phase is not None else "")
        if at != self._at:
            self._progress.reset(self._task)
            self._at = at
        self._progress.update(
            self._task,
            completed=phase.done if phase is not None else 0,
            total=phase.total if phase is not None else None,
            item=f"{live.item} ({live.number} of {live.items})",
            phase=progress_text(live),
            box=box_text(live.box),
        )
