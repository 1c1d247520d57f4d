"""Plots as SVG, written into the page that shows them: axes with round numbers, a curve a series, its points named on hover."""

import math
from collections.abc import Sequence
from html import escape

from nodeproof.bench.export.curves import Plot, Series
from nodeproof.bench.export.plain import clean

__all__ = ["COLOURS", "draw", "ticks"]

COLOURS = 8
_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 30, 44
_LOG_RANGE = 20.0
"""An axis of positive numbers so many times apart is logarithmic."""
_MOST_DOTS = 24
_FLAT = 1e-9
_LARGEST = 1e100
"""What is larger is no measurement, and has no place on an axis."""


class _Axis:
    """Numbers to places along one side."""

    def __init__(self, values: Sequence[float], begin: float, end: float, *, from_zero: bool) -> None:
        low, high = min(values), max(values)
        self._log = low > 1 / _LARGEST and high / low >= _LOG_RANGE
        if not self._log:
            low = min(0.0, low) if from_zero or low < 0 else low
        if high - low <= _FLAT * max(abs(low), abs(high), _FLAT):
            room = max(abs(high) * 0.05, _FLAT)
            low, high = low - room, high + room
        self.ticks = _powers(low, high) if self._log else ticks(low, high)
        self._low, self._high = (low, high) if self._log else (min(low, self.ticks[0]), max(high, self.ticks[-1]))
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        """Where ``value`` is."""
        low, high, at = self._low, self._high, value
        if self._log:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return self._begin + (self._end - self._begin) * (at - low) / (high - low)


def draw(plot: Plot) -> str:
    """One plot; empty when none of its points is a number."""
    series = [Series(one.name, tuple(point for point in one.points if _drawable(point))) for one in plot.series]
    series = [one for one in series if one.points]
    if not series:
        return ""
    points = [point for one in series for point in one.points]
    across = _Axis([x for x, _ in points], _LEFT, _WIDTH - _RIGHT, from_zero=False)
    up = _Axis([y for _, y in points], _HEIGHT - _BOTTOM, _TOP, from_zero=True)
    names = ", ".join(one.name for one in series)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_text(f"{plot.title}: {names}")}">',
        *_grid(across, up),
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:g}" y="{_HEIGHT - 8}" text-anchor="middle">{_text(plot.x_name)}</text>',
        f'<text x="0" y="12">{_text(plot.y_name)}</text>',
    ]
    for number, one in enumerate(series):
        parts += _curve(one, number, across, up)
    return "".join([*parts, "</svg>", _legend(series)])


def _drawable(point: tuple[float, float]) -> bool:
    return all(math.isfinite(value) and abs(value) < _LARGEST for value in point)


def _grid(across: _Axis, up: _Axis) -> list[str]:
    lines = []
    for value in up.ticks:
        y = up.place(value)
        lines.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in across.ticks:
        x = across.place(value)
        lines.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}"/>')
        lines.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{value:g}</text>')
    return lines


def _curve(one: Series, number: int, across: _Axis, up: _Axis) -> list[str]:
    places = [(across.place(x), up.place(y)) for x, y in one.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    colour = f"s{number % COLOURS + 1}"
    parts = [f'<polyline class="{colour}" points="{path}"/>']
    if len(places) <= _MOST_DOTS:
        for (x, y), (real_x, real_y) in zip(places, one.points, strict=True):
            said = _text(f"{one.name}: {real_x:g}, {real_y:g}")
            parts.append(f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{said}</title></circle>')
    return parts


def _legend(series: Sequence[Series]) -> str:
    keys = "".join(f'<span class="s{number % COLOURS + 1}">{_text(one.name)}</span>' for number, one in enumerate(series))
    return f'<p class="legend">{keys}</p>'


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten from ``low`` to ``high``, which are far enough apart to hold one."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1, max(1, math.ceil((last - first) / 8)))]


def _text(text: str) -> str:
    return escape(clean(text), quote=True)
