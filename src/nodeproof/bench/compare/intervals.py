"""Bootstrap intervals of a run's figures, computed anew from its raw samples."""

import os
import statistics

from nodeproof.bench.compare.pair import Interval
from nodeproof.bench.stats.recompute import recompute
from nodeproof.errors import NodeproofError
from nodeproof.runs.manifest import FILES_DIRECTORY
from nodeproof.runs.store import StoredRun

__all__ = ["intervals_of"]


def intervals_of(run: StoredRun) -> dict[str, Interval]:
    """By metric; of repeats the median of their ends, which is wider than that of their mean. Empty where no samples lie."""
    try:
        cells = [cell.report for cell in recompute(os.path.join(run.path, FILES_DIRECTORY)) if not cell.superseded]
    except (NodeproofError, OSError):
        return {}
    found = {}
    for key in set.intersection(*(set(cell.figures) for cell in cells)):
        ends = [(figure.low, figure.high) for cell in cells if (figure := cell.figures[key]).value is not None]
        lows, highs = [low for low, _ in ends if low is not None], [high for _, high in ends if high is not None]
        if len(lows) == len(highs) == len(cells):
            found[key] = (statistics.median(lows), statistics.median(highs))
    return found
