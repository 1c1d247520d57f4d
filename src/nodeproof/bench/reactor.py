"""An asyncio loop that reads hot sockets where it learns of them.

asyncio takes a ready descriptor through a handle, a context and a queue before its callback runs; for a socket that brings
thousands of small events a second that costs more than reading it. :class:`HotSelector` is an ordinary selector for the loop,
and calls the readers of *hot* descriptors itself, at once, inside ``select``. It returns to the loop only when such a reader
says that the loop has something to do. Everything else (timers, futures, connecting, name look-ups) is plain asyncio.
"""

import asyncio
import contextlib
import select
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

__all__ = ["HotSelector", "Reader", "hot_selector", "run"]

Reader = Callable[[int], bool]
"""Called with the epoll mask; whether the loop has to run now (a future was resolved, a timer was set)."""

_T = TypeVar("_T")
_MAX_EVENTS = 4096
_COARSE_S = 0.0012
"""epoll counts in whole milliseconds and rounds up; the last one of a wait is left to select, which counts in microseconds."""
_SELECT_FDS = 1024


class HotSelector(selectors.BaseSelector):
    """epoll with a short way for hot descriptors. Used by one thread."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._hot: dict[int, Reader] = {}
        self._fine = self._epoll.fileno() < _SELECT_FDS
        self.wakeups = 0
        """Times that epoll came back: what one read a wake-up costs is in here."""

    def add_hot(self, fd: int, reader: Reader) -> None:
        """Call ``reader`` whenever ``fd`` can be read, or has hung up."""
        self._hot[fd] = reader
        self._epoll.register(fd, select.EPOLLIN)

    def swap_hot(self, fd: int, reader: Reader) -> None:
        """Have another reader called for a descriptor that is hot already."""
        if fd in self._hot:
            self._hot[fd] = reader

    def watch_writing(self, fd: int, *, on: bool) -> None:
        """Whether the reader of a hot ``fd`` is called when it can be written, too."""
        self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT if on else select.EPOLLIN)

    def remove_hot(self, fd: int) -> None:
        """Stop; before ``fd`` is closed."""
        if self._hot.pop(fd, None) is not None:
            with contextlib.suppress(OSError):
                self._epoll.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As any selector; hot descriptors are served inside and never returned."""
        ends_s = None if timeout is None else time.monotonic() + timeout
        hot, poll = self._hot, self._epoll.poll
        while True:
            # The common case without another call: a long wait, of which the last millisecond is left out.
            events = (
                poll(timeout - _COARSE_S, _MAX_EVENTS) if timeout is not None and timeout > _COARSE_S else self._wait(timeout)
            )
            self.wakeups += 1
            ready: list[tuple[selectors.SelectorKey, int]] = []
            due = timeout is None and not events
            for fd, mask in events:
                reader = hot.get(fd)
                if reader is not None:
                    due |= reader(mask)
                else:
                    ready += self._cold(fd, mask)
            if ready or due:
                return ready
            if ends_s is not None:
                timeout = ends_s - time.monotonic()
                if timeout <= 0:
                    return ready

    def _wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """What is ready; may come back with nothing before the time is over."""
        poll = self._epoll.poll
        if timeout is None or timeout <= 0 or not self._fine:
            return poll(timeout, _MAX_EVENTS)
        select.select([self._epoll], (), (), timeout)
        return poll(0, _MAX_EVENTS)

    def _cold(self, fd: int, mask: int) -> list[tuple[selectors.SelectorKey, int]]:
        key = self._keys.get(fd)
        if key is None:  # a hot one that another reader of this round has removed
            return []
        event = 0
        if mask & ~select.EPOLLIN:
            event |= selectors.EVENT_WRITE
        if mask & ~select.EPOLLOUT:
            event |= selectors.EVENT_READ
        return [(key, event & key.events)]

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:  # noqa: ANN401 - the base class's
        """As the base class."""
        key = selectors.SelectorKey(fileobj, _fd_of(fileobj), events, data)
        if key.fd in self._keys:
            raise KeyError(f"descriptor {key.fd} is registered already")
        self._epoll.register(key.fd, _mask(events))
        self._keys[key.fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401 - the base class's
        """As the base class."""
        key = self._keys.pop(_fd_of(fileobj))
        with contextlib.suppress(OSError):
            self._epoll.unregister(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:  # noqa: ANN401 - the base class's
        """As the base class."""
        key = self._keys[_fd_of(fileobj)]._replace(events=events, data=data)
        self._epoll.modify(key.fd, _mask(events))
        self._keys[key.fd] = key
        return key

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """The cold ones."""
        return _ByDescriptor(self._keys)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401 - the base class's
        """As the base class."""
        return self._keys[_fd_of(fileobj)]

    def close(self) -> None:
        """Forget all."""
        self._epoll.close()
        self._keys.clear()
        self._hot.clear()


class _ByDescriptor(Mapping[Any, selectors.SelectorKey]):
    """What asyncio looks descriptors up in."""

    def __init__(self, keys: dict[int, selectors.SelectorKey]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __getitem__(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401 - the base class's
        return self._keys[_fd_of(fileobj)]


def hot_selector() -> HotSelector:
    """The selector of the loop that runs; for code that :func:`run` was called with. Raises RuntimeError elsewhere."""
    selector = getattr(asyncio.get_running_loop(), "nodeproof_selector", None)
    if not isinstance(selector, HotSelector):
        raise RuntimeError("this loop has no hot selector: run the coroutine with nodeproof.bench.reactor.run")
    return selector


class _Loop(asyncio.SelectorEventLoop):
    """The loop, which knows its selector by a public name."""

    def __init__(self) -> None:
        self.nodeproof_selector = HotSelector()
        super().__init__(self.nodeproof_selector)


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """As ``asyncio.run``, on a loop with a hot selector."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def _fd_of(fileobj: Any) -> int:  # noqa: ANN401 - the base class's
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _mask(events: int) -> int:
    return (select.EPOLLIN if events & selectors.EVENT_READ else 0) | (select.EPOLLOUT if events & selectors.EVENT_WRITE else 0)
