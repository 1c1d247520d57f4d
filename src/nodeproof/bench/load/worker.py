"""``python -m nodeproof.bench.load.worker PLAN INDEX SAMPLES GO``: one worker of a load run.

It begins at the moment (CLOCK_MONOTONIC) that the file GO names, once it is there.

Prints one line of JSON twice a second (:class:`Beat`) and one at its end; takes the key of the endpoint from the environment.
"""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time

import msgspec

from nodeproof.bench import reactor
from nodeproof.bench.address import Address
from nodeproof.bench.client import Client, Timeouts, tls_context
from nodeproof.bench.load.data import read_conversations
from nodeproof.bench.load.generator import Generator
from nodeproof.bench.load.plan import LoadPlan, read_plan
from nodeproof.bench.load.samples import SampleWriter
from nodeproof.errors import NodeproofError

__all__ = ["KEY_VARIABLE", "Beat", "main"]

KEY_VARIABLE = "NODEPROOF_ENDPOINT_KEY"
_BEAT_S = 0.5
_GO_S = 0.005
_EXIT_FAILED = 70
_SWITCH_S = 0.0005
"""So long the thread that packs samples may keep the interpreter from the loop."""


class Beat(msgspec.Struct, omit_defaults=True):
    """A word of a worker."""

    sent: int = 0
    done: int = 0
    failed: int = 0
    tokens: int = 0
    in_flight: int = 0
    lag_s: float = 0.0
    connections: int = 0
    ready: bool = False
    """All is loaded; it waits for the moment at which all begin."""
    ended: bool = False
    error: str = ""
    late_start_s: float = 0.0
    unreachable: str = ""
    """No connection can be made any more, and why."""


def main(arguments: list[str]) -> int:
    """Run the share of worker INDEX."""
    with open(arguments[0], "rb") as file:
        plan = read_plan(file.read())
    try:
        reactor.run(_run(plan, int(arguments[1]), arguments[2], arguments[3]))
    except (NodeproofError, OSError) as error:
        _say(Beat(ended=True, error=str(error)))
        return _EXIT_FAILED
    return 0


async def _run(plan: LoadPlan, worker: int, samples: str, go: str) -> None:
    sys.setswitchinterval(_SWITCH_S)
    where = plan.where
    conversations = read_conversations(plan.prompts.data) if plan.prompts.data else []
    tls = tls_context(where.ca_file) if where.base_url.startswith("https") else None
    timeouts = Timeouts(where.connect_s, where.first_byte_s, where.idle_s, where.total_s)
    client = Client(Address.of(where.base_url), where.model, key=os.environ.pop(KEY_VARIABLE, ""), timeouts=timeouts, tls=tls)
    gc.collect()
    gc.freeze()
    _say(Beat(ready=True))
    plan = msgspec.structs.replace(plan, epoch_s=_epoch(go))
    writer = SampleWriter(samples, epoch_s=plan.epoch_s, worker=worker, cell=plan.cell)
    late_s = max(0.0, time.monotonic() - plan.epoch_s)
    async with client:
        generator = Generator(plan, worker, client, conversations, writer)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, generator.stop)
        beat = loop.create_task(_beat(generator, client, writer))
        try:
            await generator.run()
        finally:
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat
            writer.close()
    _say(_state(generator, client, ended=True, late_start_s=late_s))


def _epoch(go: str) -> float:
    """The moment at which all begin, once the owner has named it; nothing else happens before."""
    while not os.path.exists(go):
        time.sleep(_GO_S)
    with open(go, "rb") as file:
        return float(file.read())


async def _beat(generator: Generator, client: Client, writer: SampleWriter) -> None:
    while True:
        await asyncio.sleep(_BEAT_S)
        _say(_state(generator, client))
        if writer.error is not None:
            generator.stop()


def _state(generator: Generator, client: Client, *, ended: bool = False, late_start_s: float = 0.0) -> Beat:
    counts = generator.counts
    return Beat(
        sent=counts.sent,
        done=counts.done,
        failed=counts.failed,
        tokens=counts.tokens,
        in_flight=client.in_flight,
        lag_s=counts.worst_lag_s,
        connections=client.connections_made,
        ended=ended,
        late_start_s=late_start_s,
        unreachable=counts.unreachable,
    )


def _say(beat: Beat) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(beat) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
