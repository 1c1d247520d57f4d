"""NUMA nodes, huge pages, settings, compressed swap."""

from pathlib import Path

import pytest

from nodeproof.collectors.memory import collector as memory
from nodeproof.errors import Absence
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.metric import Batch
from support.readings import absence, value, values_by
from support.tree import write, write_all

_NODES = "/sys/devices/system/node"
_NAMES = {"numa_detail", "numa_allocations_total", "hugepages", "transparent_hugepages", "overcommit_policy", "zram_detail"}


class _Layout:
    def wants(self, component: str, name: str) -> bool:
        return component == "memory" and name in _NAMES


def _batch(root: Path) -> Batch:
    return memory.create(recorded_machine(str(root)), _Layout()).collect()


def test_a_node_without_memory_of_its_own_is_told_as_such(tmp_path: Path) -> None:
    write(str(tmp_path), f"{_NODES}/node8/meminfo", "Node 8 MemTotal: 0 kB\nNode 8 MemFree: 0 kB\nNode 8 MemUsed: 0 kB\n")
    write(str(tmp_path), f"{_NODES}/node8/numastat", "numa_hit 0\nnuma_miss 0\n")
    batch = _batch(tmp_path)
    assert values_by(batch, "numa_detail", "field") == {"total": 0.0, "free": 0.0, "used": 0.0}
    assert values_by(batch, "numa_allocations_total", "type") == {"hit": 0, "miss": 0}


def test_one_broken_node_costs_only_itself(tmp_path: Path) -> None:
    write(str(tmp_path), f"{_NODES}/node0/meminfo", "rubbish")
    write(str(tmp_path), f"{_NODES}/node1/meminfo", "Node 1 MemTotal: 2048 kB\n")
    write(str(tmp_path), f"{_NODES}/node1/numastat", "rubbish")
    batch = _batch(tmp_path)
    assert absence(batch, "numa_detail", node="0").state is Absence.READ_ERROR
    assert absence(batch, "numa_allocations_total", node="0").state is Absence.UNSUPPORTED
    assert value(batch, "numa_detail", node="1", field="total") == 2.0
    assert absence(batch, "numa_allocations_total", node="1").state is Absence.READ_ERROR


def test_nodes_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for node in (10, 2, 0):
        write(str(tmp_path), f"{_NODES}/node{node}/meminfo", f"Node {node} MemTotal: 1024 kB\n")
    assert list(values_by(_batch(tmp_path), "numa_detail", "node")) == ["0", "2", "10"]


def test_a_kernel_without_numa(tmp_path: Path) -> None:
    write(str(tmp_path), f"{_NODES}/online", "0\n")
    assert absence(_batch(tmp_path), "numa_detail").state is Absence.UNSUPPORTED


def test_pools_of_huge_pages(tmp_path: Path) -> None:
    root = "/sys/kernel/mm/hugepages"
    pool = {"nr_hugepages": 8, "free_hugepages": 5, "resv_hugepages": 1, "surplus_hugepages": 2}
    write_all(str(tmp_path), f"{root}/hugepages-2048kB", pool)
    write_all(str(tmp_path), f"{root}/hugepages-1048576kB", {"nr_hugepages": 1, "free_hugepages": "x"})
    batch = _batch(tmp_path)
    found = {
        (labels["size"], labels["field"]): metric.value
        for metric in batch.metrics
        if metric.name == "hugepages" and (labels := metric.labels)
    }
    assert found == {
        ("2048kB", "total"): 8,
        ("2048kB", "free"): 5,
        ("2048kB", "reserved"): 1,
        ("2048kB", "surplus"): 2,
        ("1048576kB", "total"): 1,
    }
    assert absence(batch, "hugepages", size="1048576kB", field="free").state is Absence.READ_ERROR
    assert absence(batch, "hugepages", size="1048576kB", field="surplus").state is Absence.UNSUPPORTED


def test_a_kernel_without_huge_pages(tmp_path: Path) -> None:
    write(str(tmp_path), "/sys/kernel/mm/hugepages/README", "")
    assert absence(_batch(tmp_path), "hugepages").state is Absence.UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "state", "number"),
    [
        ("[always] madvise never", "always", 2.0),
        ("always [madvise] never", "madvise", 1.0),
        ("always madvise [never]", "never", 0.0),
    ],
)
def test_transparent_huge_pages(tmp_path: Path, text: str, state: str, number: float) -> None:
    write(str(tmp_path), "/sys/kernel/mm/transparent_hugepage/enabled", text)
    assert value(_batch(tmp_path), "transparent_hugepages", state=state) == number


@pytest.mark.parametrize("text", ["always madvise never", "[sometimes]", ""])
def test_a_state_we_do_not_know_is_no_state(tmp_path: Path, text: str) -> None:
    write(str(tmp_path), "/sys/kernel/mm/transparent_hugepage/enabled", text)
    assert absence(_batch(tmp_path), "transparent_hugepages").state is Absence.READ_ERROR


@pytest.mark.parametrize(("number", "policy"), [(0, "heuristic"), (1, "always"), (2, "never")])
def test_policies_of_overcommit(tmp_path: Path, number: int, policy: str) -> None:
    write(str(tmp_path), "/proc/sys/vm/overcommit_memory", number)
    assert value(_batch(tmp_path), "overcommit_policy", policy=policy) == number


def test_a_policy_we_do_not_know_is_no_policy(tmp_path: Path) -> None:
    write(str(tmp_path), "/proc/sys/vm/overcommit_memory", 7)
    assert absence(_batch(tmp_path), "overcommit_policy").state is Absence.READ_ERROR


def test_zram_devices_that_are_not_set_up_are_passed_over_and_a_broken_one_is_named(tmp_path: Path) -> None:
    write_all(str(tmp_path), "/sys/block/zram0", {"disksize": 0})
    write_all(str(tmp_path), "/sys/block/zram1", {"disksize": 1 << 30, "mm_stat": "4194304 1048576 2097152 0 0 0 0"})
    write_all(str(tmp_path), "/sys/block/zram2", {"disksize": 1 << 30, "mm_stat": "rubbish"})
    write_all(str(tmp_path), "/sys/block/sda", {"size": 1})
    batch = _batch(tmp_path)
    assert values_by(batch, "zram_detail", "field") == {"disk": 1024.0, "original": 4.0, "compressed": 1.0, "used": 2.0}
    assert absence(batch, "zram_detail", device="zram2").state is Absence.READ_ERROR


def test_only_broken_zram_devices_is_not_no_zram(tmp_path: Path) -> None:
    write_all(str(tmp_path), "/sys/block/zram0", {"disksize": 1 << 30})
    assert absence(_batch(tmp_path), "zram_detail", device="zram0").state is Absence.UNSUPPORTED
