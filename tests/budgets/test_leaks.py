"""Ten minutes of a daemon whose tools fail, on a clock that does not wait: nothing piles up.

``benchmarks/soak.py`` does the same in real time, with real processes that hang.
"""

import gc
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

import pytest

from nodeproof.errors import CommandError, CommandFailure
from support.cycle_cost import Daemon
from support.hosts_grown import Size, grown_answers

WARM_UP = 300
"""Until the rings of history are full: 60 points, 3 s apart at most."""
LASTING = 600
MOST_BLOCKS = 1000
"""Of Python's allocator; one cycle of this host makes about as many."""
MOST_OBJECTS = 300
SIZE = Size(4, 4, 2)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def before() -> "Counter[type]":
    """Objects by type before there is a daemon."""
    return settled()[0]


@pytest.fixture(params=["no tools", "tools that hang"])
def daemon(request: pytest.FixtureRequest, before: object, in_memory: str | None) -> Iterator[Daemon]:
    del before  # only that it comes first
    hung = {
        line: CommandError(line.split()[0], CommandFailure.TIMED_OUT, "gave no answer in 15 s and was ended")
        for line in grown_answers(SIZE)
    }
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        made = Daemon(Path(folder), SIZE, tools=hung if request.param == "tools that hang" else {})
        yield made
        made.close()


def test_nothing_piles_up_while_tools_fail(before: "Counter[type]", daemon: Daemon) -> None:
    go_on(daemon, WARM_UP)
    kinds, blocks = settled()
    go_on(daemon, LASTING)
    kinds_after, blocks_after = settled()
    assert daemon.trouble() == []
    # An absence that is kept with its traceback keeps frames alive, and with them all that they held.
    assert kinds_after[TracebackType] <= before[TracebackType]
    assert kinds_after[FrameType] <= before[FrameType]
    assert kinds_after.total() - kinds.total() < MOST_OBJECTS, (kinds_after - kinds).most_common(5)
    assert blocks_after - blocks < MOST_BLOCKS


def go_on(daemon: Daemon, beats: int) -> None:
    for beat in range(beats):
        daemon.beat(everything=False)
        if beat % 15 == 0:
            daemon.page()
    daemon.forget_commands()


def settled() -> tuple[Counter[type], int]:
    """Objects by type, and blocks in use, without what only waits for the garbage collector."""
    gc.collect()
    return Counter(map(type, gc.get_objects())), sys.getallocatedblocks()
