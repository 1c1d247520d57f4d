"""What people see of a job while it runs, in this process and in every other.

The owner of a job puts it into ``stress-live.json`` beside the report once a second, replaced as a whole, not synced to the
disk, and removes it at the end. A reader needs no more than the right to read it, and takes its word only while the report says
that this very job runs.
"""

import contextlib
import os
from collections import deque

import msgspec

from nodeproof.clock import Instant
from nodeproof.errors import WriteError
from nodeproof.host.atomic import replace_file
from nodeproof.model.hardware import LiveSample
from nodeproof.model.live_job import LiveJob, LivePhase, LivePoint
from nodeproof.stress.report_files import beside
from nodeproof.stress.workloads.heartbeat import Heartbeat

__all__ = ["LiveTeller", "live_path", "read_live"]

_STEP_S = 1.0
_POINTS = 120
_MAX_BYTES = 1 << 20


def live_path(report_path: str) -> str:
    """``stress-live.json`` for ``stress-latest.json``."""
    return beside(report_path, "live")


def read_live(path: str, job_id: str) -> LiveJob | None:
    """What the owner of ``job_id`` told last; None when there is nothing of it, or nothing that can be understood."""
    with contextlib.suppress(OSError, msgspec.MsgspecError), open(path, "rb") as file:
        found = msgspec.json.decode(file.read(_MAX_BYTES), type=LiveJob)
        return found if found.job_id == job_id else None
    return None


class LiveTeller:
    """Follows one item; made by the job's thread, :attr:`now` may be read by any."""

    def __init__(self, first: LiveJob, began: Instant, path: str = "") -> None:
        self.now = first
        self._path = path
        self._began_s = began.mono_s
        self._strip: deque[LivePoint] = deque(maxlen=_POINTS)
        self._due_s = began.mono_s
        self._phase: tuple[str, float, float] = ("", 0.0, 0.0)
        """Name, time of its first word, and what was done then."""

    def tell(self, at: Instant, beat: Heartbeat | None, box: LiveSample | None) -> None:
        """Take in the newest; once a second, tell everybody. What cannot be written costs nobody but those who watch."""
        phase = None if beat is None else self._phase_of(beat, at)
        due = at.mono_s >= self._due_s
        if due:
            self._due_s = at.mono_s + _STEP_S
            self._strip.append(LivePoint.of(at.wall_s, box, None if phase is None else phase.rate))
        self.now = msgspec.structs.replace(
            self.now, at=at.wall_s, elapsed_s=at.mono_s - self._began_s, phase=phase, box=box, strip=list(self._strip)
        )
        if due and self._path:
            with contextlib.suppress(WriteError, OSError):
                replace_file(self._path, msgspec.json.encode(self.now) + b"\n")

    def forget(self) -> None:
        """The item is over."""
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _phase_of(self, beat: Heartbeat, at: Instant) -> LivePhase:
        if self._phase[0] != beat.phase or beat.done < self._phase[2]:
            self._phase = (beat.phase, at.mono_s, beat.done)
        _, began_s, before = self._phase
        done, passed_s, eta_s = beat.done - before, at.mono_s - began_s, None
        if beat.total is not None and done > 0 and passed_s > 0:
            eta_s = max(0.0, (beat.total - beat.done) * passed_s / done)
        return LivePhase(
            name=beat.phase,
            done=beat.done,
            total=beat.total,
            unit=beat.unit,
            rate=beat.rate,
            rate_unit=beat.rate_unit or "",
            eta_s=eta_s,
        )
