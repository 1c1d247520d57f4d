"""How a stress job gets on right now: what its owner tells everybody who watches, in one small file (``stress.live``)."""

from typing import Self

import msgspec

from nodeproof.model.hardware import LiveSample

__all__ = ["LIVE_SCHEMA", "LiveJob", "LivePhase", "LivePoint"]

LIVE_SCHEMA = 1


class LivePhase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The workload's newest word on itself; one that gives none (a dispatcher's script, a native program) has no phase."""

    name: str
    """``compile``, ``setup``, ``run``, ``verify`` or a step of its own."""
    done: float
    """Steps of the phase done so far."""
    total: float | None = None
    """Steps of the whole phase; none when only time ends it."""
    unit: str = "steps"
    rate: float | None = None
    """Work a second, in ``rate_unit``."""
    rate_unit: str = ""
    eta_s: float | None = None
    """Until the end of this phase, by its pace so far; none while there is no pace, or no end."""


class LivePoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One point of the strip under a running job; what could not be read has no key."""

    at: float
    """Seconds since the epoch."""
    rate: float | None = None
    """Of the workload, in the unit of its phase."""
    busy_share: float | None = None
    foreign_share: float | None = None
    steal_share: float | None = None
    throttle_share: float | None = None
    busy_mhz: float | None = None
    cpu_temp_c: float | None = None
    mem_available_kb: int | None = None

    @classmethod
    def of(cls, at: float, box: LiveSample | None, rate: float | None = None) -> Self:
        """Of a look at the box; none = it cannot be watched."""
        if box is None:
            return cls(at=at, rate=rate)
        return cls(
            at=at,
            rate=rate,
            busy_share=box.busy_share,
            foreign_share=box.foreign_share,
            steal_share=box.steal_share,
            throttle_share=box.throttle_share,
            busy_mhz=box.busy_mhz,
            cpu_temp_c=box.cpu_temp_c,
            mem_available_kb=box.mem_available_kb,
        )


class LiveJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job that runs. Believe it only beside a report of the same ``job_id`` that says ``running``."""

    schema: int = msgspec.field(default_factory=lambda: LIVE_SCHEMA)  # a factory's value is always written
    job_id: str
    at: float
    """When this was told, in seconds since the epoch; one that is seconds old comes from an owner that stands still."""
    item: str
    number: int
    """Of the item, from 1."""
    items: int
    elapsed_s: float
    """Of the item."""
    timeout_s: float
    """Limit of the item; at most ``timeout_s - elapsed_s`` are left."""
    phase: LivePhase | None = None
    box: LiveSample | None = None
    """The newest look at the box."""
    strip: list[LivePoint] = []
    """The last two minutes of this item, a point a second, oldest first."""
