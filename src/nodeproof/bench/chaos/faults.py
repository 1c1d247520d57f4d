"""The faults: each does its harm, says how much of it was done, and what the server did wrong meanwhile."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from nodeproof.bench.ask import Ask
from nodeproof.bench.chaos.malformed import MALFORMED, head
from nodeproof.bench.chaos.wire import CLOSED, SILENT, UNTRIED, Wire, Wires
from nodeproof.bench.client import Client

__all__ = ["FAULTS", "Fault", "Ground", "Harm", "named"]

_EVENT = b"data:"
_END = (b"[DONE]", b'"finish_reason":"')
_MOST_NAMED = 4
_CLEAN_5XX = frozenset({501, 505})
"""Not implemented, version not supported: right answers to some of what is sent."""
_GAP_S = 0.05


class Ground(NamedTuple):
    """What faults are made with."""

    client: Client
    wires: Wires
    fields: str
    """Prefix of the path, a blank, and the lines that every request has."""
    long_ask: Ask
    """Asks for an answer that takes a while."""
    short_ask: Ask
    chance: random.Random
    connections: int
    timeout_s: float
    """For an answer to what is no proper request."""
    healthy_s: float
    """An undisturbed server takes no longer for the short question."""
    oversize_bytes: int
    slow_reader_s: float
    allow_5xx: bool

    @property
    def long_request(self) -> bytes:
        """Bytes of the long question."""
        return self.client.request_bytes(self.long_ask)


class Harm(msgspec.Struct, kw_only=True):
    """What a fault did."""

    intended: int
    done: int = 0
    """Of them, how many hit work under way; 0 = the fault proves nothing."""
    problems: list[str] = []
    """What the server did wrong."""
    notes: list[str] = []
    answers: dict[str, int] = {}
    """Answers to what was no proper request, by status."""


class Fault(NamedTuple):
    """One kind."""

    name: str
    about: str
    inflict: Callable[[Ground], Awaitable[Harm]]


async def _disconnects(ground: Ground) -> Harm:
    """Streams that are left in their middle, half of them with a reset."""
    harm = Harm(intended=ground.connections)

    async def leave(number: int) -> None:
        wire = await ground.wires.connect()
        if wire is None:
            return
        await wire.send(ground.long_request)
        began = await wire.read_until(_EVENT, ground.chance.randint(1, 3), ground.timeout_s)
        ended = await _has_ended(wire)
        (wire.reset if number % 2 else wire.close)()
        harm.done += began and not ended

    await asyncio.gather(*(leave(number) for number in range(ground.connections)))
    return harm


async def _cancel_storm(ground: Ground) -> Harm:
    """Requests that are taken back a moment after they were sent, again and again."""
    rounds = 3
    harm = Harm(intended=rounds * ground.connections)

    async def take_back() -> None:
        wire = await ground.wires.connect()
        if wire is None:
            return
        sent = await wire.send(ground.long_request)
        await asyncio.sleep(ground.chance.uniform(0.0, _GAP_S))
        ended = await _has_ended(wire)
        wire.close()
        harm.done += sent and not ended

    for _ in range(rounds):
        await asyncio.gather(*(take_back() for _ in range(ground.connections)))
    return harm


async def _oversize(ground: Ground) -> Harm:
    """A prompt that is far beyond any context."""
    harm = Harm(intended=1)
    body = msgspec.structs.replace(ground.short_ask, prompt="word " * (ground.oversize_bytes // 5)).body(ground.client.model)
    status = await _answer(ground, head(ground.fields, len(body), path=ground.short_ask.api.path) + body, ends=False)
    harm.done = 1
    size = f"{ground.oversize_bytes / 2**20:.3g} MiB"
    _judge(harm, f"a prompt of {size}", status, ground)
    if 200 <= status < 300:
        harm.notes.append(f"a prompt of {size} was taken (status {status}): it was cut, or the context is that large")
    return harm


async def _malformed(ground: Ground) -> Harm:
    """Requests that are wrong in one way each."""
    harm = Harm(intended=len(MALFORMED))
    taken = []
    for bad in MALFORMED:
        status = await _answer(ground, bad.build(ground.fields, ground.client.model), ends=bad.ends)
        harm.done += status != UNTRIED
        _judge(harm, bad.name, status, ground)
        if 200 <= status < 300:
            taken.append(bad.name)
    if taken:
        harm.notes.append(f"taken as if they were right: {', '.join(taken)}")
    return harm


async def _slow_reader(ground: Ground) -> Harm:
    """Clients that ask for long answers and do not read them, while others want to be served."""
    harm = Harm(intended=ground.connections)
    deaf = [wire for _ in range(ground.connections) if (wire := await ground.wires.connect(deaf=True)) is not None]
    for wire in deaf:
        harm.done += await wire.send(ground.long_request)
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + ground.slow_reader_s
    asked = slow = 0
    while loop.time() < ends_s:
        exchange = await ground.client.send(ground.short_ask)
        asked += 1
        slow += not (exchange.ok and exchange.e2e_s <= ground.healthy_s)
        await asyncio.sleep(_GAP_S)
    for wire in deaf:
        wire.close()
    if slow > asked / 2:
        limit_ms = ground.healthy_s * 1e3
        harm.problems.append(
            f"beside clients that do not read, {slow} of {asked} others were not served within {limit_ms:.0f} ms"
        )
    return harm


async def _has_ended(wire: Wire) -> bool:
    """Whether the end of the answer is here already."""
    for mark in _END:
        if await wire.read_until(mark, 1, 0.001):
            return True
    return False


async def _answer(ground: Ground, request: bytes, *, ends: bool) -> int:
    """Status of what is said to ``request``."""
    wire = await ground.wires.connect()
    if wire is None:
        return CLOSED
    try:
        async with asyncio.timeout(ground.timeout_s):
            await wire.send(request)
    except TimeoutError:
        pass  # it takes no more: what does it say?
    # Over TLS we cannot close our direction alone: that a server waits for what was promised is no fault then.
    status = UNTRIED if ends and not wire.say_no_more() else await wire.status(ground.timeout_s)
    wire.close()
    return status


def _judge(harm: Harm, what: str, status: int, ground: Ground) -> None:
    """Count an answer; silence and the server's own errors are wrong."""
    words = {CLOSED: "closed", SILENT: "silence", UNTRIED: "not tried"}.get(status, str(status))
    harm.answers[words] = harm.answers.get(words, 0) + 1
    if status == SILENT:
        harm.problems.append(f"{what}: neither an answer nor an end within {ground.timeout_s:g} s")
    elif status >= 500 and status not in _CLEAN_5XX:
        if ground.allow_5xx:
            harm.notes.append(f"{what}: status {status} for a mistake of the client")
        else:
            harm.problems.append(f"{what}: status {status} for a mistake of the client, which is none of the server's (4xx)")


FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault("disconnects", "streams left in their middle", _disconnects),
        Fault("cancel-storm", "requests taken back at once", _cancel_storm),
        Fault("oversize", "a prompt beyond any context", _oversize),
        Fault("malformed", "requests wrong in one way each", _malformed),
        Fault("slow-reader", "answers that nobody reads", _slow_reader),
    )
}
"""By name, in the order in which they are made."""


def named(problems: list[str]) -> str:
    """The first few, and how many more."""
    counts = Counter(problems)
    shown = list(counts)[:_MOST_NAMED]
    more = len(counts) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
