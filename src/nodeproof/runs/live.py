"""What people see of a run while it goes on, in every process: ``<root>/runs/.live/<run id>.json``, replaced once a second.

It lies beside the run and not in it: a directory that is about to be sealed and moved must not be written to by anybody else.
"""

import contextlib
import os
import time
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from nodeproof.errors import WriteError
from nodeproof.host.atomic import make_directory, replace_file
from nodeproof.model.hardware import LiveSample
from nodeproof.model.live_job import LivePoint
from nodeproof.model.live_run import LiveRun
from nodeproof.model.run import ExecutorMessage, ProgressEvent, StatusEvent
from nodeproof.runs.artifacts import check_name

if TYPE_CHECKING:
    from nodeproof.runs.executor import RunHandle

__all__ = ["LIVE_FOLDER", "RunTeller", "read_live_run"]

LIVE_FOLDER = ".live"
_STEP_S = 1.0
_POINTS = 120
_MAX_BYTES = 1 << 20
_LEFT_BEHIND_S = 600.0
"""A file that nobody has replaced for so long has lost its owner."""


def read_live_run(runs: str, run_id: str) -> LiveRun | None:
    """What the owner of ``run_id`` told last, in the folder ``runs`` of a store; None when nothing, or nothing to understand."""
    path = os.path.join(runs, LIVE_FOLDER, f"{check_name(run_id)}.json")
    with contextlib.suppress(OSError, msgspec.MsgspecError), open(path, "rb") as file:
        found = msgspec.json.decode(file.read(_MAX_BYTES), type=LiveRun)
        return found if found.run_id == run_id else None
    return None


class RunTeller:
    """Follows one run for those who watch. With an empty ``runs`` it tells nobody. No method raises."""

    def __init__(self, runs: str) -> None:
        self._folder = os.path.join(runs, LIVE_FOLDER) if runs else ""
        self._path = ""
        self._began_s = self._due_s = time.monotonic()
        self._status = ""
        self._done: int | None = None
        self._total: int | None = None
        self._strip: deque[LivePoint] = deque(maxlen=_POINTS)

    def hear(self, message: ExecutorMessage) -> None:
        """Something that the run said."""
        match message.event:
            case StatusEvent(text=text):
                self._status = text
            case ProgressEvent(done=done, total=total):
                self._done, self._total = done, total
            case _:
                pass

    def tell(self, handle: "RunHandle") -> None:
        """Once a second, tell everybody. What cannot be written costs nobody but those who watch."""
        now_s = time.monotonic()
        if not self._folder or not handle.run_id or now_s < self._due_s:
            return
        self._due_s = now_s + _STEP_S
        at, box = time.time(), handle.live()
        self._strip.append(LivePoint.of(at, box))
        live = self._live(handle, at, now_s - self._began_s, box)
        with contextlib.suppress(WriteError, OSError):
            if not self._path:
                self._begin(handle.run_id)
            replace_file(self._path, msgspec.json.encode(live) + b"\n")

    def forget(self) -> None:
        """The run is over."""
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _live(self, handle: "RunHandle", at: float, elapsed_s: float, box: LiveSample | None) -> LiveRun:
        return LiveRun(
            run_id=handle.run_id,
            at=at,
            elapsed_s=elapsed_s,
            stage=handle.stage,
            status=self._status,
            done=self._done,
            total=self._total,
            box=box,
            strip=list(self._strip),
        )

    def _begin(self, run_id: str) -> None:
        make_directory(self._folder)
        for entry in os.scandir(self._folder):
            if time.time() - entry.stat().st_mtime > _LEFT_BEHIND_S:
                os.unlink(entry.path)
        self._path = os.path.join(self._folder, f"{run_id}.json")
