"""The line by which a workload shows that it gets on.

``nodeproof-heartbeat {"workload":"hpl","phase":"factor","done":7.0,"total":62.0,"unit":"panels","rate":88.3,
"rate_unit":"GFLOP/s","elapsed_s":4.01}`` (one line). A line is written when ``done`` or ``phase`` has changed and at no other
time, so each line is evidence of work done.
"""

import msgspec

__all__ = ["HEARTBEAT_PREFIX", "RESULT_PREFIX", "Heartbeat", "parse", "render"]

HEARTBEAT_PREFIX = "nodeproof-heartbeat "
RESULT_PREFIX = "nodeproof-result "


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a workload has come."""

    workload: str
    phase: str
    """What it does now: ``compile``, ``setup``, ``run``, ``verify`` or a step of its own."""
    done: float
    """Steps of the phase done so far."""
    total: float | None = None
    """Steps of the whole phase; none when only time ends it."""
    unit: str = "steps"
    rate: float | None = None
    """Work a second over the phase so far, in ``rate_unit``."""
    rate_unit: str | None = None
    elapsed_s: float
    """Since the program started."""


_DECODER = msgspec.json.Decoder(Heartbeat)


def parse(line: str, /) -> Heartbeat | None:
    """The heartbeat of a line of output; None for any other line and for a damaged one."""
    if not line.startswith(HEARTBEAT_PREFIX):
        return None
    try:
        return _DECODER.decode(line[len(HEARTBEAT_PREFIX) :])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def render(beat: Heartbeat, /) -> str:
    """The line, without its end."""
    return HEARTBEAT_PREFIX + msgspec.json.encode(beat).decode()
