"""How a benchmark gets on right now: what its owner tells everybody who watches, in one small file (``runs.live``)."""

import msgspec

from nodeproof.model.hardware import LiveSample
from nodeproof.model.live_job import LivePoint
from nodeproof.model.run import Stage

__all__ = ["LIVE_RUN_SCHEMA", "LiveRun"]

LIVE_RUN_SCHEMA = 1


class LiveRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that goes on. Believe it only while the store says that this very run does."""

    schema: int = msgspec.field(default_factory=lambda: LIVE_RUN_SCHEMA)  # a factory's value is always written
    run_id: str
    at: float
    """When this was told, in seconds since the epoch; one that is seconds old comes from an owner that stands still."""
    elapsed_s: float
    stage: Stage
    status: str = ""
    """What it says of itself, in a line."""
    done: int | None = None
    total: int | None = None
    """Of its progress; none where it tells none."""
    box: LiveSample | None = None
    """The newest look at the box; none where the box cannot be watched."""
    strip: list[LivePoint] = []
    """The last two minutes, a point a second, oldest first."""
