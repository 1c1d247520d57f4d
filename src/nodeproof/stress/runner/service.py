"""What the runner does, apart from how it is asked: one slot, jobs through the manager, and a job that dies with its caller."""

import os
import threading
from collections.abc import Callable, Generator
from typing import NamedTuple

from nodeproof.errors import NodeproofError, RecordError
from nodeproof.model.job import BenchmarkResult, Execution, Report
from nodeproof.runs.manifest import FILES_DIRECTORY
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.manager import Manager
from nodeproof.stress.problems import Busy, Disabled
from nodeproof.stress.runner.wire import MAX_OUTPUT_BYTES, Event

__all__ = ["Output", "RunnerService"]

_POLL_S = 0.1
_EVENT_S = 0.5
_END_S = 60.0
_CHUNK_BYTES = 64 * 1024
_OUTPUT = "output.log"


class Output(NamedTuple):
    """What a program printed, and how it ended."""

    data: bytes
    succeeded: bool
    reason: str
    overlong: bool


class RunnerService:
    """One job at a time, whoever asked for it."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self._slot = threading.Lock()
        self._closing = False

    def run_whole(self, name: str, options: RunOptions, gone: Callable[[float], bool]) -> Output | None:
        """Run one item to its end; None when the caller went away, and then it is cancelled first.

        Raises Busy, and the manager's other errors.
        """
        report = self.start([name], options)
        while (ended := self.manager.wait(report.job_id, 0.0)) is None:
            if gone(_POLL_S):
                self._end(report.job_id, "its caller went away")
                return None
        return self._output(ended.benchmarks[0])

    def start(self, names: list[str], options: RunOptions) -> Report:
        """Start a job. Two requests at once: one is told that it is busy. Raises as the manager does."""
        if not self._slot.acquire(blocking=False):
            raise Busy("another job is just being started", None)
        try:
            if self._closing:
                raise Disabled("the runner is ending")
            return self.manager.start_with_options(names, options)
        finally:
            self._slot.release()

    def follow(self, job_id: str, gone: Callable[[float], bool], *, attached: bool) -> Generator[Event, None, None]:
        """How a job gets on, until it has ended or the reader is gone. ``attached``: it is cancelled then."""
        last_report: Report | None = None
        position: tuple[str, int] = ("", 0)
        ended = False
        try:
            while True:
                report = self.manager.job(job_id)
                ended = report.status.is_final
                text, position = self._new_output(position)
                yield Event(report=report if report != last_report else None, live=self.manager.live(), output=text)
                last_report = report
                if ended:
                    return
                if gone(_EVENT_S):
                    return
        finally:
            if attached and not ended:
                self._end(job_id, "its caller went away")

    def shutdown(self) -> bool:
        """Take no more, wait for a start that is under way, cancel what runs, and wait for its report."""
        self._closing = True
        under_way = self._slot.acquire(timeout=_END_S)
        try:
            return self.manager.shutdown(_END_S)
        finally:
            if under_way:
                self._slot.release()

    def _end(self, job_id: str, reason: str) -> None:
        try:
            self.manager.cancel(job_id, reason)
            self.manager.wait(job_id, _END_S)
        except NodeproofError:
            return  # it has ended by itself meanwhile

    def _new_output(self, position: tuple[str, int]) -> tuple[str, tuple[str, int]]:
        """What was printed since ``position``, a path and an offset."""
        path = self.manager.live_output_path() or ""
        offset = position[1] if path == position[0] else 0
        data = _read(path, offset, _CHUNK_BYTES) if path else b""
        return data.decode("utf-8", "replace"), (path, offset + len(data))

    def _output(self, item: BenchmarkResult) -> Output:
        """Of an item that has ended, whole."""
        outcome = item.outcome
        succeeded = outcome is not None and outcome.execution is Execution.FINISHED
        data = b""
        if item.run_id:
            try:
                folder = os.path.join(self.manager.runs.place(item.run_id), FILES_DIRECTORY)
                data = _read(os.path.join(folder, _OUTPUT), 0, MAX_OUTPUT_BYTES + 1)
            except RecordError as error:
                return Output(item.output.encode(), succeeded=False, reason=str(error), overlong=False)
        if not data:
            data = item.output.encode()
        return Output(data[:MAX_OUTPUT_BYTES], succeeded, item.message, overlong=len(data) > MAX_OUTPUT_BYTES)


def _read(path: str, offset: int, limit: int) -> bytes:
    """Bytes from ``offset`` on; none where there is no such file (any more)."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(limit)
    except OSError:
        return b""
