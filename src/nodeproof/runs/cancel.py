"""The order to stop: given once, seen by everybody, and able to wake work that waits."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from nodeproof.errors import RunCancelled

__all__ = ["CancelToken"]

_log = logging.getLogger(__name__)


class CancelToken:
    """Set at most once, with the reason; whoever registered is called then, each on a thread of its own."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.RLock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0
        self.reason = ""
        """What for, in words; empty until it is set."""

    def set(self, reason: str) -> bool:
        """Give the order. False when it was given before; the first reason stays."""
        with self._lock:
            if self._event.is_set():
                return False
            self.reason = reason
            self._event.set()
            callbacks = list(self._callbacks.values())
        for callback in callbacks:
            _start(callback)
        return True

    def is_cancelled(self) -> bool:
        """Whether the order was given."""
        return self._event.is_set()

    def check_cancelled(self) -> None:
        """Raise RunCancelled if the order was given."""
        if self._event.is_set():
            raise RunCancelled(self.reason)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the order, at most ``timeout_s``; whether it was given."""
        return self._event.wait(timeout_s)

    @contextlib.contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        """While inside, have ``callback`` called when the order comes, or at once when it has come already."""
        with self._lock:
            given = self._event.is_set()
            key = self._next
            self._next += 1
            if not given:
                self._callbacks[key] = callback
        if given:
            _guarded(callback)
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)


def _start(callback: Callable[[], None]) -> None:
    try:
        threading.Thread(target=_guarded, args=(callback,), name="on-cancel", daemon=True).start()
    except RuntimeError:  # no thread to be had: better late than never
        _guarded(callback)


def _guarded(callback: Callable[[], None]) -> None:
    try:
        callback()
    except BaseException:  # noqa: BLE001 - what a plug-in does when told to stop must not stop the telling
        _log.warning("a callback for cancelling failed", exc_info=True)
