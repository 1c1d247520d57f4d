"""Whether two boxes are one box for numbers of speed (bench.md 3.7), by what their records say of them.

Two boxes of one kind have been seen ten standard deviations apart because one was hotter. So what cannot be told of one of them
is a difference, and what cannot be told of either is said.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from nodeproof.model.run import RunRecord

__all__ = ["BoxDifference", "BoxVerdict", "Limits", "compare_boxes"]


class Limits(NamedTuple):
    """How far apart two boxes may be."""

    clock_spread: float = 0.01
    """Of the highest accelerator clock."""
    memory_spread: float = 0.05
    chassis_delta_c: float = 15.0


class BoxDifference(msgspec.Struct, frozen=True):
    """Something about the boxes that is not the same."""

    what: str
    first: str
    second: str


class BoxVerdict(NamedTuple):
    """How two boxes stand to each other."""

    same_machine: bool
    differences: list[BoxDifference]
    """What makes them two boxes."""
    unknown: list[str]
    """What is known of neither."""

    @property
    def one_box(self) -> bool:
        """Whether numbers of the one may be held against those of the other, as far as the boxes go."""
        return not self.differences and (self.same_machine or not self.unknown)


class _Side(NamedTuple):
    before: Mapping[str, object]
    after: Mapping[str, object]

    def get(self, key: str) -> object:
        return self.before.get(key)


def compare_boxes(first: RunRecord, second: RunRecord, limits: Limits | None = None) -> BoxVerdict:
    """By the state before and after each run."""
    limits = limits or Limits()
    one, other = _side(first), _side(second)
    ours, theirs = (_map(side.get("machine")) for side in (one, other))
    same = bool(ours.get("machine_id")) and ours.get("machine_id") == theirs.get("machine_id")
    differences: list[BoxDifference] = []
    unknown: list[str] = []
    for what, a, b, alike in _pairs(one, other, limits):
        if a is None and b is None:
            unknown.append(what)
        elif a is None or b is None or not alike:
            differences.append(BoxDifference(what, _text(a), _text(b)))
    differences += _throttling(one, other)
    return BoxVerdict(same, differences, unknown)


def _pairs(one: _Side, other: _Side, limits: Limits) -> Iterator[tuple[str, object, object, bool]]:
    """What is looked at: name, both values, and whether they are near enough."""
    ours, theirs = (_map(side.get("machine")) for side in (one, other))
    if _devices(one) or _devices(other):
        a, b = _word(ours.get("gpu")), _word(theirs.get("gpu"))
        yield "accelerator", a, b, a == b
        a, b = _major(ours.get("driver")), _major(theirs.get("driver"))
        yield "driver (major version)", a, b, a == b
        clocks = (_number(one.get("sm_clock_max_mhz")), _number(other.get("sm_clock_max_mhz")))
        yield "highest accelerator clock, MHz", *clocks, _near(*clocks, limits.clock_spread)
    memory = (_number(one.get("mem_total_kb")), _number(other.get("mem_total_kb")))
    yield "memory, kB", *memory, _near(*memory, limits.memory_spread)
    chassis = (_hottest(one), _hottest(other))
    yield "hottest chassis sensor, °C", *chassis, _within(*chassis, limits.chassis_delta_c)


def _throttling(one: _Side, other: _Side) -> list[BoxDifference]:
    """A box that was being slowed by heat is no box to compare with."""
    told = [", ".join(sorted(_hot(side))) for side in (one, other)]
    return [BoxDifference("slowed by heat", told[0] or "no", told[1] or "no")] if any(told) else []


def _hot(side: _Side) -> set[str]:
    reasons = ("sw_thermal", "hw_thermal", "hw_power_brake")
    return {
        name for state in (side.before, side.after) for name in reasons if _map(state.get("throttle_active")).get(name) is True
    }


def _side(record: RunRecord) -> _Side:
    state = record.frame.hardware_state or {}
    return _Side(_map(state.get("before")), _map(state.get("after")))


def _devices(side: _Side) -> bool:
    return bool(side.get("devices")) or _map(side.get("machine")).get("gpu") is not None


def _hottest(side: _Side) -> float | None:
    zones = side.get("chassis_temps_c")
    found = [_number(_map(zone).get("temp_c")) for zone in zones] if isinstance(zones, list) else []
    return max((value for value in found if value is not None), default=None)


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _major(value: object) -> str | None:
    text = _word(value)
    return None if text is None else text.partition(".")[0]


def _near(first: float | None, second: float | None, spread: float) -> bool:
    if first is None or second is None:
        return False
    return abs(first - second) <= spread * max(abs(first), abs(second))


def _within(first: float | None, second: float | None, limit: float) -> bool:
    return first is not None and second is not None and abs(first - second) <= limit


def _text(value: object) -> str:
    if value is None:
        return "not known"
    return f"{value:g}" if isinstance(value, float) else str(value)
