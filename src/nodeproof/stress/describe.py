"""Profiles of what a start would run: asked of adapters once for all who ask at a time, and kept for a moment.

An answer counts for 10 seconds, and only while nothing that it rests on has changed. Errors are kept alike, so that a page that
asks every two seconds starts no storm of processes.
"""

import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nodeproof.clock import Clock
from nodeproof.model.job import ExecutionProfile
from nodeproof.stress.adapters.base import Adapter, DescribeError, ItemRequest
from nodeproof.stress.profile import configuration_hash

__all__ = ["Describer", "finished_profile"]

_KEPT_S = 10.0


class _Answer(NamedTuple):
    profile: ExecutionProfile | None
    error: str
    stamp: object
    at_s: float


class Describer:
    """Asks adapters. May be used from any thread."""

    def __init__(self, adapter_of: Callable[[str], Adapter], clock: Clock) -> None:
        self._adapter_of = adapter_of
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[ItemRequest, _Answer] = {}
        self._turns: dict[ItemRequest, threading.Lock] = {}

    def describe(self, request: ItemRequest, *, timeout_s: float, result_dir: str = "") -> ExecutionProfile:
        """The finished profile of ``request``. Raises DescribeError."""
        adapter = self._adapter_of(request.benchmark)
        with self._lock:
            turn = self._turns.setdefault(request, threading.Lock())
        with turn:  # whoever waited finds the answer of the one before
            stamp = adapter.stamp(request)
            answer = self._answers.get(request)
            now_s = self._clock.now().mono_s
            if answer is None or answer.stamp != stamp or not 0 <= now_s - answer.at_s < _KEPT_S:
                answer = self._ask(adapter, request, stamp)
                self._answers[request] = answer
        if answer.profile is None:
            raise DescribeError(answer.error)
        return finished_profile(answer.profile, timeout_s=timeout_s, result_dir=result_dir)

    def _ask(self, adapter: Adapter, request: ItemRequest, stamp: object) -> _Answer:
        try:
            profile = adapter.describe(request)
        except DescribeError as error:
            return _Answer(None, str(error), stamp, self._clock.now().mono_s)
        return _Answer(profile, "", stamp, self._clock.now().mono_s)


def finished_profile(profile: ExecutionProfile, *, timeout_s: float, result_dir: str = "") -> ExecutionProfile:
    """``profile`` with what the manager adds: the limit in force, the result directory, and the hash over all of it."""
    filled = msgspec.structs.replace(profile, timeout_seconds=int(timeout_s), result_directory=result_dir)
    return msgspec.structs.replace(filled, configuration_sha256=configuration_hash(filled))
