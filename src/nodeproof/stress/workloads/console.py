"""Standard output of a workload: the official text, heartbeats and the result, one whole line at a time."""

import sys
import time
from collections.abc import Mapping
from typing import TextIO

import msgspec

from nodeproof.stress.workloads import heartbeat
from nodeproof.stress.workloads.heartbeat import Heartbeat

__all__ = ["Console"]

_BEAT_S = 1.0
"""Between two heartbeats of one phase."""


class Console:
    """Writes for one workload; only its main thread does."""

    def __init__(self, workload: str, *, json_only: bool = False, stream: TextIO | None = None) -> None:
        self._workload = workload
        self._json_only = json_only
        self._stream = stream if stream is not None else sys.stdout
        self._started_s = time.monotonic()
        self._phase = ""
        self._phase_started_s = self._started_s
        self._last: tuple[str, float] = ("", -1.0)
        self._last_s = -_BEAT_S

    @property
    def elapsed_s(self) -> float:
        """Since the program started."""
        return time.monotonic() - self._started_s

    def line(self, text: str = "") -> None:
        """A line of the official text; lost with ``--json``."""
        if not self._json_only:
            self._write(text)

    def beat(
        self,
        phase: str,
        done: float,
        total: float | None = None,
        *,
        unit: str = "steps",
        work_done: float | None = None,
        rate_unit: str | None = None,
    ) -> None:
        """Tell progress, if there was any and the last line is old enough. ``work_done`` of the phase makes the rate."""
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._phase_started_s = phase, now
        last_phase, last_done = self._last
        if phase == last_phase and (done <= last_done or now - self._last_s < _BEAT_S):
            return
        self._last, self._last_s = (phase, done), now
        spent = now - self._phase_started_s
        rate = work_done / spent if work_done is not None and spent > 0 else None
        self._write(
            heartbeat.render(
                Heartbeat(
                    workload=self._workload,
                    phase=phase,
                    done=float(done),
                    total=None if total is None else float(total),
                    unit=unit,
                    rate=rate,
                    rate_unit=rate_unit if rate is not None else None,
                    elapsed_s=round(now - self._started_s, 3),
                )
            )
        )

    def result(self, fields: Mapping[str, object]) -> None:
        """The one line that ends the output of a run."""
        body = msgspec.json.encode({"workload": self._workload, "implementation": "nodeproof", **fields}).decode()
        self._write(heartbeat.RESULT_PREFIX + body)

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
