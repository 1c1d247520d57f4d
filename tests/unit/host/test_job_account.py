"""Sums over a tree, with what ended on the way."""

from pathlib import Path

import pytest

from nodeproof.host import job_account
from nodeproof.host.job_account import Account
from nodeproof.host.process_tree import ProcessStat, ProcessTree
from support.process_table import process

KEEPER = 5


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of children that were waited for."""
    seconds = [2.0]
    monkeypatch.setattr(job_account, "_waited_for_s", lambda: seconds[0])
    return seconds


def members(root: str, *pids: int) -> list[ProcessStat]:
    found = (ProcessTree(root).stat(pid) for pid in pids)
    return [stat for stat in found if stat is not None]


def test_sums_of_the_living(tmp_path: Path, waited: list[float]) -> None:
    root = str(tmp_path)
    process(root, 10, KEEPER, state="S", threads=1, ticks=(100, 50, 25, 25), pages=10, io=(1, 2, 3, 4))
    process(root, 11, 10, state="R", threads=4, ticks=(300, 0, 0, 0), pages=5, io=(10, 20, 30, 40))
    process(root, 12, 10, state="Z", ticks=(40, 10, 0, 0), pages=0)
    account = Account(ProcessTree(root), KEEPER)
    waited[0] = 2.5
    sample = account.sample(members(root, 10, 11, 12), 99)
    del sample["at_mono_s"]
    assert sample == {
        "cpu_s": 6.0,  # 200 + 300 + 50 ticks of 10 ms, and half a second of children waited for since
        "output_bytes": 99,
        "processes": 2,
        "threads": 5,
        "resident_bytes": 15 * 4096,
        "states": {"S": 1, "R": 1},
        "read_bytes": 11,
        "written_bytes": 22,
        "storage_read_bytes": 33,
        "storage_written_bytes": 44,
    }


def test_counters_that_cannot_be_read_are_absent(tmp_path: Path, waited: list[float]) -> None:
    root = str(tmp_path)
    process(root, 10, KEEPER)
    sample = Account(ProcessTree(root), KEEPER).sample(members(root, 10), 0)
    assert not {"read_bytes", "written_bytes", "storage_read_bytes", "storage_written_bytes"} & sample.keys()
    assert waited == [2.0]


def test_sums_never_step_back(tmp_path: Path, waited: list[float]) -> None:
    """A child of the keeper that ended keeps its bytes; one that its parent forgot is lost, and lowers nothing."""
    root = str(tmp_path)
    process(root, 10, KEEPER, ticks=(100, 0, 0, 0), io=(100, 0, 0, 0))
    process(root, 11, KEEPER, ticks=(100, 0, 0, 0), io=(1000, 0, 0, 0))
    process(root, 12, 10, ticks=(500, 0, 0, 0), io=(7, 0, 0, 0))
    account = Account(ProcessTree(root), KEEPER)
    assert account.sample(members(root, 10, 11, 12), 0)["read_bytes"] == 1107
    later = account.sample(members(root, 10), 0)
    assert (later["cpu_s"], later["read_bytes"]) == (7.0, 1107)
    process(root, 10, KEEPER, ticks=(800, 0, 0, 0), io=(200, 0, 0, 0))
    later = account.sample(members(root, 10), 0)
    assert (later["cpu_s"], later["read_bytes"]) == (8.0, 1200)
    assert account.sample((), 0)["read_bytes"] == 1200
    assert waited == [2.0]


def test_counters_that_are_hidden_for_once(tmp_path: Path, waited: list[float]) -> None:
    root = str(tmp_path)
    process(root, 10, KEEPER, io=(100, 0, 0, 0))
    account = Account(ProcessTree(root), KEEPER)
    account.sample(members(root, 10), 0)
    (tmp_path / "10" / "io").unlink()
    assert account.sample(members(root, 10), 0)["read_bytes"] == 100
    process(root, 10, KEEPER, io=(150, 0, 0, 0))
    assert account.sample(members(root, 10), 0)["read_bytes"] == 150
    assert waited == [2.0]
