"""A node with eight Ascend chips, asked every 5 s by a real daemon: CPU and memory with all helpers and programs, and no program
on the fast path where the driver's library answers.

The chips are simulated: the stand-in for ``libdcmi.so``, and shell scripts in place of ``npu-smi`` and ``hccn_tool``, whose own
time counts, too.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from support.npu_daemon import NpuNode

CPU_LIMIT = 0.02
RESIDENT_LIMIT = 60 * 1024 * 1024
WINDOW_S = 60

pytestmark = pytest.mark.timeout(300)


class Spent(NamedTuple):
    """What a daemon and all that it started took in the window."""

    share: float
    """Of one core."""
    resident: int
    calls: list[str]


@pytest.fixture(scope="module")
def spent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Spent]]:
    """Both nodes side by side, for a minute: everything that is asked each 30 or 60 s has its share."""
    folder = tmp_path_factory.mktemp("npu")
    nodes = {"DCMI": NpuNode(folder / "dcmi", library=True), "npu-smi": NpuNode(folder / "smi", library=False)}
    try:
        for node in nodes.values():
            node.start()
        time.sleep(5.0)
        begins = {name: (time.monotonic(), node.cpu_s(), len(node.asked())) for name, node in nodes.items()}
        time.sleep(WINDOW_S)
        found = {}
        for name, node in nodes.items():
            began_s, used_s, calls = begins[name]
            share = (node.cpu_s() - used_s) / (time.monotonic() - began_s)
            found[name] = Spent(share, node.resident(), node.asked()[calls:])
        yield found
    finally:
        for node in nodes.values():
            node.daemon.clean_up()


@pytest.mark.parametrize("source", ["DCMI", "npu-smi"])
def test_cpu(spent: dict[str, Spent], source: str) -> None:
    print(f"{source}: {spent[source].share:.4f} of a core, {len(spent[source].calls)} programs")  # noqa: T201 - for whoever reads
    assert spent[source].share <= CPU_LIMIT


@pytest.mark.parametrize("source", ["DCMI", "npu-smi"])
def test_memory(spent: dict[str, Spent], source: str) -> None:
    print(f"{source}: {spent[source].resident / 2**20:.1f} MiB")  # noqa: T201 - the same
    assert spent[source].resident <= RESIDENT_LIMIT


def test_no_program_runs_on_the_fast_path(spent: dict[str, Spent]) -> None:
    """With the library, npu-smi tells only of the links between chips, every half a minute, which the library does not."""
    others = ("npu-smi info -t hccs-bw", "npu-smi info -t topo")
    assert [line for line in spent["DCMI"].calls if line.startswith("npu-smi") and not line.startswith(others)] == []


def test_one_npu_smi_serves_all_cards_of_a_cycle(spent: dict[str, Spent]) -> None:
    tables = [line for line in spent["npu-smi"].calls if line == "npu-smi info"]
    assert WINDOW_S / 5 - 2 <= len(tables) <= WINDOW_S / 5 + 2
