"""Answers as they come: each is in a file before the next is waited for, and a run that was stopped goes on from there.

``answers.jsonl`` of the record holds every answer that counts, ``failures.jsonl`` every request that brought none. Beside the
record a journal of the same answers lies with the artifacts, named by what decides them: endpoint, model, questions, sampling.
It is taken over by the next run of the same, unless it is older than a day or a run holds it, and is removed when a run came to
a verdict.
"""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Iterable
from typing import Self

import msgspec

from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.errors import WriteError
from nodeproof.host import atomic
from nodeproof.host.append import AppendFile
from nodeproof.host.file_mutex import lock_whole_file
from nodeproof.runs.handle import PluginHandle

__all__ = ["Answer", "AnswerBook", "answer_of", "journal_key"]

_MEASURED = frozenset({Outcome.STOP, Outcome.LENGTH, Outcome.TOOL_CALLS, Outcome.EMPTY})
"""What counts: an answer that came to its end. Whatever else became of a request says nothing of the model."""
_MAX_AGE_S = 86400.0
_SWEEP_AGE_S = 7 * 86400.0
_MAX_BYTES = 1 << 30


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one sample."""

    sample_id: str
    subset: str
    outcome: str
    calls: tuple[tuple[str, str], ...]
    """Name and arguments of each tool call, as they came."""
    at: float
    """Seconds since the epoch."""
    text: str = ""
    reasoning: str = ""
    finish: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    detail: str = ""
    retry_after_s: float | None = None

    @property
    def measured(self) -> bool:
        """Whether it counts."""
        return self.outcome in _MEASURED

    @property
    def empty(self) -> bool:
        """Whether it says nothing at all."""
        return not (self.calls or self.text.strip() or self.reasoning.strip())


def answer_of(sample_id: str, subset: str, exchange: Exchange) -> Answer:
    """What a request brought."""
    return Answer(
        sample_id=sample_id,
        subset=subset,
        outcome=str(exchange.outcome),
        calls=tuple((call.name, call.arguments) for call in exchange.tool_calls),
        at=time.time(),
        text=exchange.text,
        reasoning=exchange.reasoning,
        finish=exchange.finish_reason or "",
        prompt_tokens=exchange.usage.prompt_tokens,
        completion_tokens=exchange.usage.completion_tokens,
        detail=" ".join(exchange.detail.split())[:300],
        retry_after_s=exchange.retry_after_s,
    )


def journal_key(*deciding: object) -> str:
    """Name of the journal of whatever these decide."""
    return hashlib.sha256(msgspec.json.encode(deciding)).hexdigest()[:32]


class AnswerBook:
    """The answers of one run."""

    def __init__(self, handle: PluginHandle, journal_path: str) -> None:
        """Raises WriteError."""
        self.answers: dict[str, Answer] = {}
        """What counts, by sample."""
        self.failures: dict[str, Answer] = {}
        """The last that became of samples without an answer."""
        self.resumed = 0
        """Answers taken over from a run before."""
        self._trouble: WriteError | None = None
        self._lock = threading.Lock()
        self._journal_path = journal_path
        self._journal: AppendFile | None = None
        self._lock_fd = -1
        self._files = [AppendFile(handle.file_path(name)) for name in ("answers.jsonl", "failures.jsonl")]

    @classmethod
    def of(cls, handle: PluginHandle, key: str) -> Self:
        """The book of a run; journals that nobody can use any more are removed. Raises WriteError."""
        folder = handle.artifacts.directory("answers")
        _sweep(folder)
        return cls(handle, os.path.join(folder, f"{key}.jsonl"))

    @property
    def answers_path(self) -> str:
        """The file of what counts."""
        return self._files[0].path

    def resume(self, handle: PluginHandle, samples: Iterable[str], *, take_over: bool) -> None:
        """Open the journal, and take over what it holds of ``samples``. Raises WriteError."""
        path = f"{self._journal_path}.lock"
        try:
            self._lock_fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, atomic.FILE_MODE)
            held = lock_whole_file(self._lock_fd)
        except OSError as error:
            raise atomic.write_error(path, error) from None
        if not held:
            handle.warn("bfcl: another run asks the same questions now; this one is not to be resumed")
            return
        os.utime(self._lock_fd)
        found = _read(self._journal_path, set(samples)) if take_over else {}
        for answer in found.values():
            self.add(answer)
        # The journal is as long as it was, or holds less that is of no use: never less than that, whenever we are killed.
        atomic.store_file(self._journal_path, b"".join(_line(answer) for answer in found.values()))
        self._journal = AppendFile(self._journal_path)
        self.resumed = len(found)
        if found:
            oldest = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(answer.at for answer in found.values())))
            handle.warn(f"bfcl: {len(found)} answers are those of a run before that did not come to a verdict, from {oldest} on")

    def add(self, answer: Answer) -> None:
        """Keep an answer, at once; from any thread. What goes wrong is raised by :meth:`check`."""
        line = _line(answer)
        with self._lock:
            try:
                if not answer.measured:
                    self.failures[answer.sample_id] = answer
                    self._files[1].append(line)
                    return
                self._files[0].append(line)
                if self._journal is not None:
                    self._journal.append(line)
                self.answers[answer.sample_id] = answer
                self.failures.pop(answer.sample_id, None)
            except WriteError as error:
                self._trouble = error

    def check(self) -> None:
        """Have on the disk what was added. Raises WriteError."""
        if self._trouble is not None:
            raise self._trouble
        for file in (*self._files, *([self._journal] if self._journal is not None else [])):
            file.sync()

    def forget(self) -> None:
        """Remove the journal: the run came to a verdict."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            with contextlib.suppress(OSError):
                os.unlink(self._journal_path)

    def close(self) -> None:
        """Give everything back; a journal that was not forgotten stays."""
        for file in (*self._files, *([self._journal] if self._journal is not None else [])):
            file.close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


_decode = msgspec.json.Decoder(Answer).decode


def _line(answer: Answer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"


def _sweep(folder: str) -> None:
    before = time.time() - _SWEEP_AGE_S
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if os.stat(path).st_mtime < before:
                os.unlink(path)


def _read(path: str, samples: set[str]) -> dict[str, Answer]:
    """What a journal holds of ``samples`` and is young enough; lines that cannot be read are left out."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError:
        return {}
    found = {}
    since = time.time() - _MAX_AGE_S
    for line in data.split(b"\n"):
        with contextlib.suppress(msgspec.MsgspecError):
            answer = _decode(line)
            if answer.sample_id in samples and answer.measured and answer.at >= since:
                found[answer.sample_id] = answer
    return found
