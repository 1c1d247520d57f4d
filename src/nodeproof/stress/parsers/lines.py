"""The lines of an output that matter, found without splitting the rest.

Benchmarks print megabytes of progress around a handful of lines that say something, and a broken one may print without end. A
line is looked up by a marker that it contains, in time linear in the output, and no more than ``LINE_LIMIT`` lines a marker are
kept. Lines end at a line feed or at a carriage return (progress is overwritten in place). Launchers put the rank in front of
what a rank prints; that is taken off:

* Open MPI ``--tag-output``: ``[1,0]<stdout>:WR00C2R4 ...``
* MPICH and Intel MPI ``-prepend-rank``, ``-l``: ``[0] WR00C2R4 ...``
* Slurm ``--label``: ``0: WR00C2R4 ...``
"""

import re
from typing import NamedTuple

from nodeproof.model.job import Evidence

__all__ = ["LINE_LIMIT", "Found", "Line", "evidence", "find_lines", "matching_lines"]

LINE_LIMIT = 5000
"""Lines kept for one marker. No benchmark prints more results than this in one job."""
_LINE_REACH = 1024
"""A line is looked at this far to both sides of its marker."""
_SHOWN = 300
_RANK_PREFIX = re.compile(r"^\s*(?:\[\d{1,6}(?:,\d{1,6}){0,2}\](?:<std(?:out|err)>)?:?|\d{1,6}:(?= ))\s*")


class Line(NamedTuple):
    """One line, decoded, without its rank."""

    no: int
    """Counts from 1; only line feeds count."""
    offset: int
    """Where it begins, in bytes: what orders lines that end at a carriage return."""
    text: str


class Found(NamedTuple):
    """Lines in the order of the output."""

    lines: list[Line]
    cut: bool
    """True when there were more than are kept; then nothing may be concluded from what is missing."""


def evidence(line: Line, source: str) -> Evidence:
    """``line`` as a verdict quotes it."""
    text = line.text.strip()
    return Evidence(source, line.no, text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "\u2026")


def find_lines(raw: bytes, markers: tuple[bytes, ...]) -> Found:
    """Every line that contains one of ``markers``, written in lower case; capitals in the output do not matter."""
    folded = raw.lower()
    spans: dict[int, int] = {}
    cut = False
    for marker in markers:
        position = folded.find(marker)
        kept = 0
        while position >= 0:
            if kept == LINE_LIMIT:
                cut = True
                break
            begin, end = _bounds(raw, position, position + len(marker))
            spans[begin] = max(end, spans.get(begin, 0))
            kept += 1
            position = folded.find(marker, end)
    return Found(_lines(raw, spans), cut)


def matching_lines(raw: bytes, pattern: re.Pattern[bytes]) -> Found:
    """Every line with a match of ``pattern``, which must not be able to run on without bound."""
    spans: dict[int, int] = {}
    position = 0
    while match := pattern.search(raw, position):
        if len(spans) == LINE_LIMIT:
            return Found(_lines(raw, spans), cut=True)
        begin, end = _bounds(raw, match.start(), match.end())
        spans[begin] = end
        position = end
    return Found(_lines(raw, spans), cut=False)


def _bounds(raw: bytes, start: int, stop: int) -> tuple[int, int]:
    """Begin and end of the line around ``start`` to ``stop``, cut off at the reach."""
    floor, ceiling = max(0, start - _LINE_REACH), stop + _LINE_REACH
    begin = max(raw.rfind(b"\n", floor, start), raw.rfind(b"\r", floor, start), floor - 1) + 1
    ends = [end for end in (raw.find(b"\n", stop, ceiling), raw.find(b"\r", stop, ceiling)) if end >= 0]
    return begin, min(ends, default=min(ceiling, len(raw)))


def _lines(raw: bytes, spans: dict[int, int]) -> list[Line]:
    """The spans in order, numbered and decoded."""
    lines = []
    number, counted = 1, 0
    for begin in sorted(spans):
        number += raw.count(b"\n", counted, begin)
        counted = begin
        text = raw[begin : spans[begin]].decode("utf-8", "replace")
        lines.append(Line(number, begin, _RANK_PREFIX.sub("", text, count=1)))
    return lines
