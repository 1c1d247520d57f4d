"""The client for code that blocks: a benchmark on its thread asks, and waits for the answers.

::

    with Session.of(target) as session:
        exchange = session.send(Ask(prompt="2+2?"))
        exchanges = session.send_all(asks, concurrency=8)

The loop runs on a thread of its own. Timing of a load run belongs into worker processes (``bench.load``); this is for questions
whose answers matter more than their times.
"""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from nodeproof.bench import reactor
from nodeproof.bench.address import Address
from nodeproof.bench.ask import Ask
from nodeproof.bench.client import Client, Timeouts, tls_context
from nodeproof.bench.exchange import Exchange
from nodeproof.errors import RunCancelled, RunError
from nodeproof.runs.endpoint import TargetEndpoint

__all__ = ["Session"]

_T = TypeVar("_T")
_START_S = 30.0
_END_S = 10.0


class Session:
    """A client with a loop and a thread of its own. Methods may be called from any thread."""

    def __init__(self, make_client: Callable[[], Client], where: str = "") -> None:
        self.where = where
        """Base address of the endpoint, for messages."""
        self._make_client = make_client
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._ready = threading.Event()
        self._cancelled = threading.Event()
        self._pending: set[concurrent.futures.Future[Any]] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="bench-session", daemon=True)

    @classmethod
    def of(cls, target: TargetEndpoint, timeouts: Timeouts = Timeouts()) -> Self:  # noqa: B008 - immutable
        """For the endpoint of a run. Raises UsageError when its address, key or authorities are of no use."""
        address = Address.of(target.base_url)
        tls = tls_context(target.ca_file) if address.scheme == "https" else None
        key = target.key.reveal()
        Client(address, target.model, key=key, timeouts=timeouts, tls=tls)  # complains here, not on the other thread
        return cls(lambda: Client(address, target.model, key=key, timeouts=timeouts, tls=tls), target.base_url)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise RunError("the loop of the client did not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def send(self, ask: Ask) -> Exchange:
        """Ask and wait. Raises RunCancelled after :meth:`cancel`."""
        client = self._the_client()
        return self._wait(client.send(ask))

    def send_all(
        self, asks: Iterable[Ask], *, concurrency: int = 1, on_done: Callable[[int, Exchange], None] | None = None
    ) -> list[Exchange]:
        """Ask them all, so many at once; the answers in the order of ``asks``. Raises RunCancelled after :meth:`cancel`.

        ``on_done`` is told each answer with its place as it comes, on the thread of the loop; it must return at once.
        """
        return self._wait(_send_all(self._the_client(), list(asks), concurrency, on_done))

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a GET below the base address; status 0 and the reason when there was no answer."""
        return self._wait(self._the_client().get(path))

    def post_json(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The same for a POST of JSON."""
        return self._wait(self._the_client().post_json(path, body))

    def do(self, work: Callable[[Client], Coroutine[Any, Any, _T]]) -> _T:
        """Have the loop do ``work`` with the client, and wait for what comes of it. Raises RunCancelled after :meth:`cancel`."""
        return self._wait(work(self._the_client()))

    def cancel(self) -> None:
        """End whatever is under way, now and from now on; from any thread. For ``handle.on_cancel``."""
        self._cancelled.set()
        with self._lock:
            pending = list(self._pending)
        for future in pending:
            future.cancel()

    def close(self) -> None:
        """Close all connections and end the thread."""
        if self._loop is not None and self._over is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._over.set)
        if self._thread.is_alive():
            self._thread.join(_END_S)

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._cancelled.is_set() or self._loop is None:
            work.close()
            raise RunCancelled("the run is to stop")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        with self._lock:
            self._pending.add(future)
        if self._cancelled.is_set():
            future.cancel()
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RunCancelled("the run is to stop") from None
        finally:
            with self._lock:
                self._pending.discard(future)

    def _the_client(self) -> Client:
        if self._client is None:
            raise RunError("the session is not open: use it in a with block")
        return self._client

    def _work(self) -> None:
        reactor.run(self._main())

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with self._make_client() as client:
            self._client = client
            self._ready.set()
            await self._over.wait()


async def _send_all(
    client: Client, asks: list[Ask], concurrency: int, on_done: Callable[[int, Exchange], None] | None
) -> list[Exchange]:
    places: Iterator[int] = iter(range(len(asks)))
    found: dict[int, Exchange] = {}

    async def slot() -> None:
        for place in places:
            exchange = found[place] = await client.send(asks[place])
            if on_done is not None:
                on_done(place, exchange)

    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, min(concurrency, len(asks)))):
            group.create_task(slot())
    return [found[place] for place in range(len(asks))]
