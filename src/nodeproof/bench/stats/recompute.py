"""The figures of a stored run once more, from its raw samples alone; what was changed is named."""

import os
import re
from typing import NamedTuple

from nodeproof.bench.load.plan import read_plan
from nodeproof.bench.stats.report import LoadReport, report
from nodeproof.errors import RecordError

__all__ = ["CellReport", "recompute"]

_PLAN = re.compile(r"(?P<cell>.+)-plan\.json")
_TRY = re.compile(r"-try\d+$")
_SAMPLES = re.compile(r"(?P<cell>.+)-samples-(?P<worker>\d+)\.npsb")


class CellReport(NamedTuple):
    """One measurement."""

    name: str
    report: LoadReport
    superseded: bool = False
    """It was measured again, because the box was not fit: the run's figures are those of the last try."""


def recompute(directory: str) -> list[CellReport]:
    """Figures of every cell whose samples lie in ``directory``, by name. Raises RecordError when there are none."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise RecordError(f"{directory}: {error.strerror}") from None
    cells = []
    for name in names:
        plan_name = _PLAN.fullmatch(name)
        if plan_name is None:
            continue
        cell = plan_name["cell"]
        samples = [
            os.path.join(directory, other) for other in names if (found := _SAMPLES.fullmatch(other)) and found["cell"] == cell
        ]
        if not samples:
            continue
        with open(os.path.join(directory, name), "rb") as file:
            cells.append(CellReport(cell, report(samples, read_plan(file.read()))))
    if not cells:
        raise RecordError(f"{directory} holds no samples of a load")
    bases = [_TRY.sub("", cell.name) for cell in cells]
    return [
        cell._replace(superseded=base in bases[place + 1 :]) for place, (cell, base) in enumerate(zip(cells, bases, strict=True))
    ]
