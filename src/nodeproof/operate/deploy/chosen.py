"""Sizes that nobody gave: chosen for this box, and written down, so that a deployment says what it runs."""

import contextlib
import os
from collections.abc import Sequence

import msgspec

from nodeproof.errors import ParseError, RecordError
from nodeproof.operate.assets import manifest as assets
from nodeproof.operate.assets.manifest import Manifest
from nodeproof.operate.deploy.inputs import CpuInputs
from nodeproof.operate.deploy.problems import DeployError
from nodeproof.stress.parsers import hpl_dat

__all__ = ["ChosenSizes", "choose", "grids_of", "load_assets"]


class ChosenSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Processes and threads of each item under MPI."""

    hpl_processes: int
    hpl_threads: int
    hpcg_processes: int
    hpcg_threads: int


def choose(cpu: CpuInputs, grids: Sequence[int], processors: int) -> ChosenSizes:
    """As given; else HPL gets the processes of its first grid, one a processor where it has none, as HPCG; threads fill the box.

    ``grids``: processes of each grid of the ``HPL.dat`` that will be read. Raises DeployError for a number that none of them has.
    """
    hpl = cpu.hpl_processes or (grids[0] if grids else processors)
    if grids and hpl not in grids:
        listed = ", ".join(map(str, grids))
        raise DeployError(f"--hpl-processes {hpl}: HPL.dat has grids of {listed} processes, and HPL starts with no other number")
    hpcg = cpu.hpcg_processes or processors
    return ChosenSizes(
        hpl_processes=hpl,
        hpl_threads=cpu.hpl_threads or max(1, processors // hpl),
        hpcg_processes=hpcg,
        hpcg_threads=cpu.hpcg_threads or max(1, processors // hpcg),
    )


def load_assets(path: str) -> Manifest:
    """The manifest of ``assets build``, whose files are still what was built. Raises DeployError."""
    try:
        found = assets.load(path)
    except RecordError as error:
        raise DeployError(str(error)) from None
    if found is None:
        raise DeployError(f"{path}: there is no such manifest; nodeproof assets build makes one")
    problems = [line for lines in assets.verify(found).values() for line in lines]
    if problems:
        raise DeployError(f"{path}: {'; '.join(problems)}; build anew with nodeproof assets build --force")
    return found


def grids_of(path: str) -> list[int]:
    """Processes of each grid of an ``HPL.dat``; none where it cannot be read."""
    with contextlib.suppress(OSError, ParseError), open(path, "rb") as file:
        return [p * q for p, q in hpl_dat.parse(file.read(65536), os.path.basename(path)).grids]
    return []
