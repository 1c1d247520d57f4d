"""Sends the requests of a plan when they are due, and writes down what came of them."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator

from nodeproof.bench.ask import Api, Ask
from nodeproof.bench.client import Client
from nodeproof.bench.load.arrivals import arrivals
from nodeproof.bench.load.data import Conversation, trace_times
from nodeproof.bench.load.plan import LoadPlan
from nodeproof.bench.load.prompts import Question, Questions
from nodeproof.bench.load.samples import Identity, SampleWriter
from nodeproof.bench.reach import GONE

__all__ = ["Counts", "Generator"]

_LOOK_S = 0.02
_PULSE_LOOKS = 5


class Counts:
    """How far it is, for who watches."""

    def __init__(self) -> None:
        self.sent = 0
        self.done = 0
        self.failed = 0
        self.tokens = 0
        self.worst_lag_s = 0.0
        self.late_s = 0.0
        """How late the last request of an open loop was sent."""
        self.unreachable = ""
        """Why no connection can be made any more; then nothing else is sent."""


class Generator:
    """The share of one worker in a plan."""

    def __init__(
        self, plan: LoadPlan, worker: int, client: Client, conversations: list[Conversation], writer: SampleWriter
    ) -> None:
        self.counts = Counts()
        self._plan, self._worker = plan, worker
        self._client, self._writer = client, writer
        self._conversations = conversations
        self._questions = Questions(plan, conversations)
        self._tasks: set[asyncio.Task[None]] = set()
        self._taken = 0
        self._waiting = 0
        self._ends_s = plan.epoch_s + plan.duration_s
        self._stopped = asyncio.Event()
        self._warm = asyncio.Event()
        """Set when this worker's share of the warm-up has ended: nothing that counts begins before."""
        self._warming = _share(plan.warmup_requests, plan.workers, worker)
        if not self._warming:
            self._warm.set()

    async def run(self) -> None:
        """From the epoch to the end of the last answer, or of the drain."""
        loop = asyncio.get_running_loop()
        await _until(self._plan.epoch_s)
        watch = loop.create_task(self._watch())
        try:
            if self._plan.arrival is None:
                await self._closed()
            else:
                await self._open()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self._plan.drain_s)
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            watch.cancel()
            self._client.close()

    def stop(self) -> None:
        """Begin no other request."""
        self._stopped.set()

    # The two loops

    async def _closed(self) -> None:
        """So many at once; where one ends, the next begins."""
        share = _share(self._plan.concurrency, self._plan.workers, self._worker)
        loop = asyncio.get_running_loop()
        for _ in range(share):
            self._begin(loop.create_task(self._slot()))
        left_s = self._ends_s - time.monotonic()
        if self._tasks:
            end = loop.call_later(max(0.0, left_s), self._stopped.set)
            slots = loop.create_task(_all(tuple(self._tasks), self._stopped))
            await self._stopped.wait()
            end.cancel()
            slots.cancel()

    async def _slot(self) -> None:
        while (number := self._next_number()) is not None:
            if number < self._plan.warmup_requests:
                await self._conversation(number, None)
                self._warming -= 1
                if not self._warming:
                    self._warm.set()
                continue
            await self._warm.wait()
            if self._stopped.is_set():
                return
            await self._conversation(number, None)

    async def _open(self) -> None:
        """Each at its time, whatever has become of the others."""
        loop = asyncio.get_running_loop()
        for number, at_s in self._mine():
            due_s = self._plan.epoch_s + at_s
            question = self._questions.question(number)
            ask = self._ask(question, question.messages)
            request = self._client.request_bytes(ask)
            await _until(due_s, self._stopped)
            if self._stopped.is_set():
                return
            self._begin(loop.create_task(self._conversation(number, due_s, (question, ask, request))))

    def _mine(self) -> Iterator[tuple[int, float]]:
        """Numbers and times of this worker's requests."""
        plan = self._plan
        assert plan.arrival is not None  # noqa: S101 - an open loop has one
        trace_s = trace_times(self._conversations) if plan.arrival.kind == "trace" else ()
        for number, at_s in enumerate(arrivals(plan.arrival, plan.seed, plan.duration_s, trace_s)):
            if plan.requests and number >= plan.requests:
                return
            if number % plan.workers == self._worker:
                yield number, at_s

    def _next_number(self) -> int | None:
        """The next conversation of a closed loop; None when no other is to begin."""
        number = self._taken * self._plan.workers + self._worker
        if self._stopped.is_set() or time.monotonic() >= self._ends_s or (self._plan.requests and number >= self._plan.requests):
            return None
        self._taken += 1
        return number

    # One conversation

    async def _conversation(self, number: int, due_s: float | None, first: tuple[Question, Ask, bytes] | None = None) -> None:
        said: tuple[dict[str, object], ...] = ()
        turns = self._questions.turns_of(number)
        for turn in range(turns):
            if first is not None and turn == 0:
                question, ask, request = first
            else:
                question = self._questions.question(number, turn)
                ask = self._ask(question, said or question.messages)
                request = self._client.request_bytes(ask)
            answer = await self._send(question, turn, ask, request, due_s)
            if answer is None or turn + 1 == turns or self._stopped.is_set():
                return
            said = (*self._messages(said or question.messages, question.text), {"role": "assistant", "content": answer})
            due_s = None
            if self._plan.prompts.think_s:
                due_s = time.monotonic() + self._plan.prompts.think_s
                await _until(due_s, self._stopped)

    async def _send(self, question: Question, turn: int, ask: Ask, request: bytes, due_s: float | None) -> str | None:
        """Send it and note what came; the text, None when it failed."""
        counts = self.counts
        counts.sent += 1
        if due_s is not None:
            counts.late_s = time.monotonic() - due_s
        exchange = await self._client.send_bytes(request, ask, due_s)
        counts.done += 1
        counts.tokens += exchange.tokens
        if not exchange.ok:
            counts.failed += 1
            if exchange.outcome in GONE and not counts.unreachable:
                counts.unreachable = exchange.detail
                self.stop()
        who = Identity(question.number, question.number, turn, question.input_target, question.max_tokens)
        self._writer.add(who, exchange)
        return exchange.text if exchange.ok else None

    def _ask(self, question: Question, said: tuple[dict[str, object], ...]) -> Ask:
        plan = self._plan
        chat = plan.api is not Api.COMPLETIONS
        return Ask(
            api=plan.api,
            messages=self._messages(said, question.text) if chat else (),
            prompt="" if chat else question.text,
            max_tokens=question.max_tokens,
            stream=plan.stream,
            include_usage=plan.include_usage,
            extra=plan.extra,
        )

    @staticmethod
    def _messages(said: tuple[dict[str, object], ...], text: str) -> tuple[dict[str, object], ...]:
        return (*said, {"role": "user", "content": text})

    # Itself

    def _begin(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        """Look how late a timer is, and how much of a core is used."""
        loop = asyncio.get_running_loop()
        worst_s, looks = 0.0, 0
        wall_s, cpu_s = time.monotonic(), time.process_time()
        due_s = loop.time() + _LOOK_S
        while True:
            await _until(due_s)
            now_s = time.monotonic()
            worst_s = max(worst_s, now_s - due_s)
            looks += 1
            due_s = max(due_s + _LOOK_S, now_s)
            if looks == _PULSE_LOOKS:
                used_s = time.process_time()
                share = (used_s - cpu_s) / (now_s - wall_s)
                self._writer.pulse(now_s, worst_s, share, self._client.in_flight, len(self._tasks))
                self.counts.worst_lag_s = max(self.counts.worst_lag_s, worst_s)
                worst_s, looks, wall_s, cpu_s = 0.0, 0, now_s, used_s


async def _all(tasks: Iterable["asyncio.Task[None]"], ended: asyncio.Event) -> None:
    """Say when all have ended, whatever became of them."""
    await asyncio.wait(tasks)
    ended.set()


async def _until(at_s: float, stopped: asyncio.Event | None = None) -> None:
    """Wait for a moment of CLOCK_MONOTONIC, or for ``stopped``."""
    loop = asyncio.get_running_loop()
    if at_s <= loop.time():
        return
    if stopped is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(at_s):
                await stopped.wait()
        return
    reached: asyncio.Future[None] = loop.create_future()
    timer = loop.call_at(at_s, _set, reached)
    try:
        await reached
    finally:
        timer.cancel()


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _share(total: int, workers: int, worker: int) -> int:
    return total // workers + (1 if worker < total % workers else 0)
