"""Which device of one node lags behind its peers: robust z-scores over windows in which all of them were watched together.

A device that works as hard as the others and is hotter, clocked lower or fed less is slow for the whole job. So only windows in
which the peers were at work are compared; each reading is the median of its window; a device is held against the median of all,
in units of their median absolute deviation, with a floor below which a difference is noise on any machine. It takes several
windows in a row, and a device convicted is let go only after as many without. Fewer than three devices, too few windows, devices
that did different work: that is unknown, and never "none lags".
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from nodeproof.model.metric import Batch

__all__ = ["KINDS", "Deviation", "Kind", "StragglerState", "StragglerVerdict", "StragglerWatch", "median", "robust_z"]

_WINDOW_S = 60.0
_KEPT_WINDOWS = 5
_CONVICT = 3
"""So many of the last windows must show the same deviation."""
_LEAST_DEVICES = 3
_LEAST_SAMPLES = 3
_BUSY = 20.0
"""% of utilisation, the median of a window, from which a device counts as at work."""
_ALIKE = 25.0
"""Points of utilisation that devices may differ by and still do the same work."""
_Z = 3.5
"""The customary bound of a robust z-score (Iglewicz and Hoaglin)."""
_SCALE = 1.4826
"""Median absolute deviation of a normal distribution, in standard deviations."""


class Kind(NamedTuple):
    """One reading that tells a slow device."""

    metric: str
    low: bool
    """Whether the lower value is the worse one."""
    floor: float
    """Least deviation that counts, in the reading's unit: below it all devices are alike."""
    what: str


KINDS: Mapping[str, tuple[Kind, ...]] = {
    "npu": (
        Kind("aicore_freq", low=True, floor=50.0, what="clock of the AI cores"),
        Kind("temperature", low=False, floor=15.0, what="temperature"),
        Kind("power_draw", low=True, floor=40.0, what="power"),
        Kind("utilization", low=False, floor=10.0, what="time at work"),
        Kind("net_tx_bandwidth", low=True, floor=100.0, what="traffic sent"),
    ),
    "gpu": (
        Kind("clock_frequency", low=True, floor=50.0, what="clock"),
        Kind("temperature", low=False, floor=15.0, what="temperature"),
        Kind("power_draw", low=True, floor=40.0, what="power"),
        Kind("utilization", low=False, floor=10.0, what="time at work"),
    ),
}
"""By component. A device that is longer at work than its peers is what they wait for."""


class StragglerState(StrEnum):
    """What can be said of a node's devices of one kind."""

    NONE = "none"
    """All were compared, and none lags."""
    FOUND = "found"
    UNKNOWN = "unknown"


class Deviation(NamedTuple):
    """One device and one reading, held against the peers."""

    device: str
    kind: Kind
    value: float
    peers: float
    """Median of all devices."""
    z: float
    """Robust z-score; positive = worse."""
    windows: int
    """How many of the last windows showed it."""


class StragglerVerdict(NamedTuple):
    """The answer for one kind of device."""

    component: str
    state: StragglerState
    reason: str
    devices: int
    windows: int
    """Windows that could be compared, of the last five."""
    stragglers: tuple[Deviation, ...] = ()


class _Window(NamedTuple):
    """Medians of one window."""

    ended_s: float
    medians: Mapping[str, Mapping[str, float]]
    """Metric -> device -> median."""
    reason: str
    """Why it cannot be compared; empty when it can."""
    deviations: tuple[Deviation, ...]


class StragglerWatch:
    """Watches one component. Batches go in, a verdict comes out; no clock of its own: time is that of the batches."""

    def __init__(self, component: str, window_s: float = _WINDOW_S) -> None:
        self.component = component
        self._window_s = window_s
        self._began_s: float | None = None
        self._samples: dict[str, dict[str, list[float]]] = {}
        self._stamps: dict[tuple[str, str], str] = {}
        self._windows: deque[_Window] = deque(maxlen=_KEPT_WINDOWS)
        self._convicted: dict[tuple[str, str], Deviation] = {}

    def take(self, batch: Batch) -> None:
        """One batch of the component."""
        if batch.component != self.component:
            return
        if self._began_s is None:
            self._began_s = batch.mono_s
        if batch.mono_s - self._began_s >= self._window_s:
            self._close(batch.mono_s)
        for kind in KINDS[self.component]:
            for metric in batch.by_name.get(kind.metric, ()):
                device = _device(metric.labels or {})
                if self._stamps.get((kind.metric, device)) == metric.timestamp:
                    continue  # a slow source's reading, told again
                self._stamps[kind.metric, device] = metric.timestamp
                self._samples.setdefault(kind.metric, {}).setdefault(device, []).append(metric.value)

    def verdict(self) -> StragglerVerdict:
        """What the last windows say."""
        usable = [window for window in self._windows if not window.reason]
        devices = max((len(_devices(window)) for window in self._windows), default=0)
        if len(usable) < _CONVICT:
            reason = next((window.reason for window in reversed(self._windows) if window.reason), "")
            text = f"{len(usable)} of the {_CONVICT} windows of {self._window_s:g} s that it takes could be compared"
            return self._verdict(StragglerState.UNKNOWN, f"{text}: {reason}" if reason else text, devices, len(usable))
        found = tuple(sorted(self._convicted.values(), key=lambda one: -one.z))
        if found:
            worst = found[0]
            text = f"{worst.kind.what} of {worst.device} is {worst.value:g}, that of its peers {worst.peers:g}"
            return self._verdict(StragglerState.FOUND, text, devices, len(usable), found)
        return self._verdict(StragglerState.NONE, f"{devices} devices at work do alike", devices, len(usable))

    def _verdict(
        self, state: StragglerState, reason: str, devices: int, windows: int, found: tuple[Deviation, ...] = ()
    ) -> StragglerVerdict:
        return StragglerVerdict(self.component, state, reason, devices, windows, found)

    def _close(self, now_s: float) -> None:
        medians = {
            metric: {device: median(values) for device, values in by_device.items()}
            for metric, by_device in self._samples.items()
        }
        counts = {device: len(values) for device, values in self._samples.get("utilization", {}).items()}
        reason = _incomparable(medians, counts)
        deviations = () if reason else tuple(_deviations(self.component, medians))
        self._windows.append(_Window(now_s, medians, reason, deviations))
        self._samples.clear()
        self._began_s = now_s
        self._convict()

    def _convict(self) -> None:
        usable = [window for window in self._windows if not window.reason]
        shown: dict[tuple[str, str], list[Deviation]] = {}
        for window in usable:
            for one in window.deviations:
                shown.setdefault((one.device, one.kind.metric), []).append(one)
        for key, found in shown.items():
            if len(found) >= _CONVICT:
                self._convicted[key] = found[-1]._replace(windows=len(found))
        for key in list(self._convicted):
            recent = usable[-_CONVICT:]
            seen = {(one.device, one.kind.metric) for window in recent for one in window.deviations}
            if len(recent) == _CONVICT and key not in seen:
                del self._convicted[key]


def median(values: Iterable[float]) -> float:
    """Middle value; the mean of both middle ones of an even number. Not ``statistics``: that module costs 3 MiB."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def robust_z(value: float, peers: Sequence[float], floor: float) -> float:
    """How far ``value`` lies above the median of ``peers``, in robust standard deviations.

    Their spread counts as ``floor / 3.5`` at least, so that a difference below ``floor`` never reaches 3.5.
    """
    middle = median(peers)
    spread = _SCALE * median([abs(one - middle) for one in peers])
    return (value - middle) / max(spread, floor / _Z)


def _device(labels: Mapping[str, str]) -> str:
    if "npu_id" in labels:
        chip = labels.get("chip_id", "")
        return f"npu {labels['npu_id']}" + (f" chip {chip}" if chip else "")
    return f"gpu {labels.get('gpu_id', '?')}"


def _devices(window: _Window) -> tuple[str, ...]:
    return tuple(window.medians.get("utilization", {}))


def _incomparable(medians: Mapping[str, Mapping[str, float]], counts: Mapping[str, int]) -> str:
    """Why a window cannot be compared; empty when it can."""
    busy = medians.get("utilization", {})
    if len(busy) < _LEAST_DEVICES:
        return f"{len(busy)} devices tell how busy they are, and it takes {_LEAST_DEVICES}"
    scarce = [device for device, count in counts.items() if count < _LEAST_SAMPLES]
    if scarce:
        return f"{scarce[0]} was read {counts[scarce[0]]} times in the window, and it takes {_LEAST_SAMPLES}"
    middle = median(busy.values())
    if middle < _BUSY:
        return f"the devices are idle (median utilisation {middle:g} %)"
    strangers = sum(abs(value - middle) > _ALIKE for value in busy.values())
    if strangers * 4 > len(busy):
        return f"{strangers} of {len(busy)} devices do other work than the rest"
    return ""


def _deviations(component: str, medians: Mapping[str, Mapping[str, float]]) -> Iterable[Deviation]:
    busy = medians["utilization"]
    middle = median(busy.values())
    at_work = {device for device, value in busy.items() if value >= _BUSY and abs(value - middle) <= _ALIKE}
    for kind in KINDS[component]:
        values = {device: value for device, value in medians.get(kind.metric, {}).items() if device in at_work}
        if len(values) < _LEAST_DEVICES:
            continue
        peers = list(values.values())
        for device, value in values.items():
            z = robust_z(value, peers, kind.floor) * (-1 if kind.low else 1)
            if z >= _Z:
                yield Deviation(device, kind, value, median(peers), round(z, 2), 1)
