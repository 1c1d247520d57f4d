"""Where this process stands among the cgroups."""

from pathlib import Path

import pytest

from nodeproof.collectors.services.cgroup import Cgroup, Cgroups
from nodeproof.errors import Absence, NoData
from nodeproof.host.recorded import recorded_machine
from support.tree import write

_ROOT = "/sys/fs/cgroup"


def _cgroups(root: Path, paths: str, *folders: str) -> Cgroups:
    write(str(root), "/proc/self/cgroup", paths)
    for folder in folders:
        write(str(root), f"{folder}/cgroup.procs", "1")
    return recorded_machine(str(root)).shared(Cgroups)


def test_v2_from_the_inside_out(tmp_path: Path) -> None:
    found = _cgroups(tmp_path, "0::/system.slice/x.service\n", f"{_ROOT}/system.slice/x.service").holding("memory")
    assert found == [
        Cgroup("/system.slice/x.service", f"{_ROOT}/system.slice/x.service", 2),
        Cgroup("/system.slice", f"{_ROOT}/system.slice", 2),
        Cgroup("/", _ROOT, 2),
    ]


def test_v1_without_a_namespace_passes_over_what_the_container_cannot_see(tmp_path: Path) -> None:
    found = _cgroups(tmp_path, "4:memory:/docker/3386\n3:cpu,cpuacct:/docker/3386\n", f"{_ROOT}/memory").holding("memory")
    assert found == [Cgroup("/", f"{_ROOT}/memory", 1)]


def test_a_hybrid_host_keeps_its_controllers_in_v1_and_v2_beside_them(tmp_path: Path) -> None:
    cgroups = _cgroups(tmp_path, "4:memory:/\n0::/a\n", f"{_ROOT}/memory", f"{_ROOT}/unified/a")
    assert cgroups.holding("memory") == [Cgroup("/", f"{_ROOT}/memory", 1)]
    assert cgroups.holding("io")[0] == Cgroup("/a", f"{_ROOT}/unified/a", 2)


def test_a_path_that_leaves_our_view_is_only_its_root(tmp_path: Path) -> None:
    assert _cgroups(tmp_path, "0::/../other\n", _ROOT).holding("memory") == [Cgroup("/", _ROOT, 2)]


@pytest.mark.parametrize(
    ("paths", "folders", "word"),
    [("0::/\n", (), "not mounted"), ("4:cpu:/\n", (_ROOT,), "no cgroup of controller memory")],
)
def test_no_such_hierarchy_is_unsupported(tmp_path: Path, paths: str, folders: tuple[str, ...], word: str) -> None:
    with pytest.raises(NoData, match=word) as raised:
        _cgroups(tmp_path, paths, *folders).holding("memory")
    assert raised.value.state is Absence.UNSUPPORTED
