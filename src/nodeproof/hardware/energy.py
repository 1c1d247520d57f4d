"""Energy of a run out of readings of power, by the rail that was measured (bench.md 3.9).

The first reading holds back to the beginning of the window, each other one until the next, the last until the end. Key names bear
the name of the rail, so that a chip's own supply is never compared with a whole board's. No I/O.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nodeproof.model.hardware import DeviceState

__all__ = ["Power", "Rails", "rail_energy"]

_MOST = 4096


class Power(NamedTuple):
    """Power of all devices on a rail at one time."""

    at_s: float
    """Seconds since boot."""
    watts: float


class Rails:
    """Readings of each rail. A look at which one device of a rail told no power, or the same reading as before, is no reading."""

    def __init__(self) -> None:
        self._readings: dict[str, list[Power]] = {}
        self._members: dict[str, frozenset[str]] = {}

    def take(self, at_s: float, devices: Sequence[DeviceState]) -> None:
        """One look."""
        for rail in {device.power_rail for device in devices if device.power_rail}:
            members = [device for device in devices if device.power_rail == rail]
            names = frozenset(device.device for device in members)
            whole = self._members.setdefault(rail, names)
            if names != whole:
                continue
            told = [device.power_at_s for device in members if device.power_at_s is not None]
            when_s = max(told) if len(told) == len(members) else at_s
            readings = self._readings.setdefault(rail, [])
            if readings and when_s <= readings[-1].at_s:
                continue
            readings.append(Power(when_s, sum(device.power_w or 0.0 for device in members)))
            if len(readings) >= _MOST:
                del readings[1::2]

    def energy(self, begin_s: float, end_s: float) -> dict[str, float]:
        """The keys of every rail that was read in the window."""
        keys: dict[str, float] = {}
        for rail, readings in self._readings.items():
            keys |= rail_energy(rail, readings, begin_s, end_s)
        return keys


def rail_energy(rail: str, readings: Iterable[Power], begin_s: float, end_s: float) -> dict[str, float]:
    """Energy and power of one rail between two times; empty without a reading inside, for nothing is known then."""
    inside = [reading for reading in readings if begin_s <= reading.at_s <= end_s]
    if not inside or end_s <= begin_s:
        return {}
    starts = [begin_s, *(reading.at_s for reading in inside[1:])]
    ends = [*starts[1:], end_s]
    joules = sum(reading.watts * (end - start) for reading, start, end in zip(inside, starts, ends, strict=True))
    return {
        f"{rail}_energy_j": joules,
        f"{rail}_mean_power_w": joules / (end_s - begin_s),
        f"{rail}_max_power_w": max(reading.watts for reading in inside),
        f"{rail}_power_samples": float(len(inside)),
        f"{rail}_energy_window_s": end_s - begin_s,
    }
