"""The stand-in for libdcmi.so, compiled once, and the plan that tells it what to do."""

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host.dcmi import DcmiListing, RawChip

__all__ = ["FakeDcmi", "plan", "stub_library"]

_SOURCE = Path(__file__).parents[1] / "fixtures" / "dcmi" / "stub.c"


@functools.cache
def stub_library() -> str:
    """Path of the compiled library; it stays as long as this process. Skips the test where nothing can compile it."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    folder = tempfile.TemporaryDirectory(prefix="dcmi-stub-")
    _KEPT.append(folder)
    path = os.path.join(folder.name, "libdcmi.so")
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
    subprocess.run([compiler, *flags, "-o", path, str(_SOURCE), "-lpthread"], check=True)
    return path


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def plan(path: Path, words: str) -> None:
    """What the stand-in does from now on."""
    written = path.with_suffix(".new")
    written.write_text(words, "utf-8")
    os.replace(written, path)


class FakeDcmi:
    """Answers that a test sets, without any process."""

    def __init__(self, chips: dict[tuple[int, int], dict[str, Any]], values: dict[tuple[int, int], RawChip | NoData]) -> None:
        self.chips = chips
        self.values = values
        self.failure: NoData | None = None
        self.whole = True
        self.asked: list[bool] = []
        """For each look, whether it was a deep one."""

    def listing(self) -> DcmiListing:
        """What the test set."""
        if self.failure is not None:
            raise self.failure.again()
        return DcmiListing(tuple((*key, told) for key, told in self.chips.items()), "24.1.rc3", self.whole)

    def look(self, chips: Sequence[tuple[int, int]], *, deep: bool) -> dict[tuple[int, int], RawChip | NoData]:
        """What the test set."""
        self.asked.append(deep)
        return {chip: self.values.get(chip, NoData(Absence.STALE, "no answer in time")) for chip in chips}

    def close(self) -> None:
        """Nothing runs."""
