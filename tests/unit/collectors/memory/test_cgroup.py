"""Memory limits of cgroups of both versions."""

from pathlib import Path

import pytest

from nodeproof.collectors.memory import collector as memory
from nodeproof.errors import Absence
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.metric import Batch
from support.readings import absence, value, values_by
from support.tree import write, write_all

_NAMES = {"cgroup_limit", "cgroup_usage", "cgroup_detail", "cgroup_oom_kills"}
_ROOT = "/sys/fs/cgroup"


class _Cgroups:
    def wants(self, component: str, name: str) -> bool:
        return component == "memory" and name in _NAMES


def _batch(root: Path, paths: str) -> Batch:
    write(str(root), "/proc/self/cgroup", paths)
    return memory.create(recorded_machine(str(root)), _Cgroups()).collect()


def _v2(root: Path, folder: str, **files: str | int) -> None:
    contents: dict[str, str | int] = {
        "memory.max": "max",
        "memory.current": 300 << 20,
        "memory.stat": f"anon 1\ninactive_file {100 << 20}\n",
        "memory.events": "oom 1\noom_kill 1\n",
    }
    changed = {name.replace("_", ".", 1): content for name, content in files.items()}
    write_all(str(root), f"{_ROOT}{folder}", contents | changed)


def test_every_limit_on_the_way_up_is_named_by_its_file(tmp_path: Path) -> None:
    _v2(tmp_path, "/slurm/job_7", memory_max=400 << 20)
    _v2(tmp_path, "/slurm", memory_max=1024 << 20)
    write(str(tmp_path), f"{_ROOT}/cgroup.controllers", "memory")
    batch = _batch(tmp_path, "0::/slurm/job_7\n")
    assert value(batch, "cgroup_limit", cgroup="/slurm/job_7", source=f"{_ROOT}/slurm/job_7/memory.max") == 400.0
    assert value(batch, "cgroup_limit", cgroup="/slurm", source=f"{_ROOT}/slurm/memory.max") == 1024.0
    # 200 MiB without cache of 400, and of 1024: 19.5313 %
    assert values_by(batch, "cgroup_usage", "cgroup") == {"/slurm/job_7": 50.0, "/slurm": 19.53}


def test_no_limit_anywhere(tmp_path: Path) -> None:
    _v2(tmp_path, "/a")
    batch = _batch(tmp_path, "0::/a\n")
    for name in _NAMES:
        assert absence(batch, name).state is Absence.NOT_APPLICABLE
    assert batch.metrics == []


def test_the_hosts_own_root_has_no_limit_file_and_that_is_no_fault(tmp_path: Path) -> None:
    write(str(tmp_path), f"{_ROOT}/cgroup.controllers", "memory")
    assert absence(_batch(tmp_path, "0::/\n"), "cgroup_limit").state is Absence.NOT_APPLICABLE


def test_a_limit_that_cannot_be_understood_is_not_no_limit(tmp_path: Path) -> None:
    _v2(tmp_path, "/a", memory_max="plenty")
    entry = absence(_batch(tmp_path, "0::/a\n"), "cgroup_limit", cgroup="/a")
    assert entry.state is Absence.READ_ERROR
    assert "plenty" in entry.reason


def test_cache_that_goes_first_may_exceed_what_is_charged_between_two_reads(tmp_path: Path) -> None:
    _v2(tmp_path, "/a", memory_max=1 << 30, memory_current=5, memory_stat="inactive_file 9\n")
    assert value(_batch(tmp_path, "0::/a\n"), "cgroup_usage", cgroup="/a") == 0.0


def test_a_limit_of_zero_is_used_up(tmp_path: Path) -> None:
    _v2(tmp_path, "/a", memory_max=0)
    assert value(_batch(tmp_path, "0::/a\n"), "cgroup_usage", cgroup="/a") == 100.0


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"memory_current": "x"}, Absence.READ_ERROR),
        ({"memory_stat": "anon 1\n"}, Absence.UNSUPPORTED),
        ({"memory_stat": "\n"}, Absence.READ_ERROR),
    ],
)
def test_use_that_cannot_be_told(tmp_path: Path, files: dict[str, str], state: Absence) -> None:
    _v2(tmp_path, "/a", memory_max=1 << 30, **files)
    batch = _batch(tmp_path, "0::/a\n")
    assert absence(batch, "cgroup_usage", cgroup="/a").state is state
    assert value(batch, "cgroup_oom_kills", cgroup="/a") == 1


@pytest.mark.parametrize(("events", "state"), [("oom 1\n", Absence.UNSUPPORTED), ("", Absence.READ_ERROR)])
def test_kills_that_are_not_counted_are_not_zero(tmp_path: Path, events: str, state: Absence) -> None:
    _v2(tmp_path, "/a", memory_max=1 << 30, memory_events=events)
    assert absence(_batch(tmp_path, "0::/a\n"), "cgroup_oom_kills", cgroup="/a").state is state


def test_swap_of_v2_stands_alone(tmp_path: Path) -> None:
    _v2(tmp_path, "/a", memory_max=1 << 30)
    write_all(str(tmp_path), f"{_ROOT}/a", {"memory.swap.max": "max", "memory.swap.current": 3 << 20})
    batch = _batch(tmp_path, "0::/a\n")
    assert values_by(batch, "cgroup_detail", "field") == {"current": 300.0, "working_set": 200.0, "swap": 3.0}


def test_swap_of_v1_is_what_goes_beyond_memory(tmp_path: Path) -> None:
    files: dict[str, str | int] = {
        "memory.limit_in_bytes": 100 << 20,
        "memory.usage_in_bytes": 60 << 20,
        "memory.memsw.limit_in_bytes": 150 << 20,
        "memory.memsw.usage_in_bytes": 70 << 20,
        "memory.stat": f"inactive_file 1\ntotal_inactive_file {10 << 20}\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
    }
    write_all(str(tmp_path), f"{_ROOT}/memory", files)
    batch = _batch(tmp_path, "4:memory:/docker/3386\n")
    assert value(batch, "cgroup_usage", cgroup="/") == 50.0
    expected = {"current": 60.0, "working_set": 50.0, "swap": 10.0, "swap_limit": 50.0}
    assert values_by(batch, "cgroup_detail", "field") == expected
    assert value(batch, "cgroup_oom_kills", cgroup="/") == 4


def test_swap_of_v1_without_a_limit_for_both_together_has_none(tmp_path: Path) -> None:
    files: dict[str, str | int] = {
        "memory.limit_in_bytes": 100 << 20,
        "memory.usage_in_bytes": 60 << 20,
        "memory.memsw.limit_in_bytes": 9223372036854771712,
        "memory.memsw.usage_in_bytes": 59 << 20,
        "memory.stat": "total_inactive_file 0\n",
        "memory.oom_control": "oom_kill 0\n",
    }
    write_all(str(tmp_path), f"{_ROOT}/memory", files)
    batch = _batch(tmp_path, "4:memory:/\n")
    assert values_by(batch, "cgroup_detail", "field") == {"current": 60.0, "working_set": 60.0, "swap": 0.0}


def test_a_kernel_without_cgroups(tmp_path: Path) -> None:
    batch = memory.create(recorded_machine(str(tmp_path)), _Cgroups()).collect()
    assert absence(batch, "cgroup_limit").state is Absence.UNSUPPORTED
