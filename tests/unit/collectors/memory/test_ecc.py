"""EDAC: controllers, modules in the layouts of three generations of kernels, and what it means when there is none."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeproof.collectors.base import Collector
from nodeproof.collectors.memory import collector as memory
from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, recorded_machine
from support.bmc import EVERYTHING
from support.readings import absence, value, values_by
from support.tree import write_all

_MC = "/sys/devices/system/edac/mc"
_NAMES = (
    "ecc_ce_errors",
    "ecc_uce_errors",
    "ecc_dimm_ce_errors",
    "ecc_dimm_uce_errors",
    "ecc_dimm_size",
    "ecc_noinfo_errors",
    "ecc_controller_info",
)


class _Ecc:
    def wants(self, component: str, name: str) -> bool:
        return component == "memory" and name in _NAMES


def _collector(root: Path, clock: ManualClock | None = None) -> Collector:
    return memory.create(recorded_machine(str(root), clock=clock), _Ecc())


def _controller(root: Path, name: str = "mc0", **files: str | int) -> str:
    contents: dict[str, str | int] = {
        "ce_count": 0,
        "ue_count": 0,
        "ce_noinfo_count": 0,
        "ue_noinfo_count": 0,
        "size_mb": 8192,
        "mc_name": "test",
    }
    write_all(str(root), f"{_MC}/{name}", contents | files)
    return f"{_MC}/{name}"


def test_counters_are_the_kernels_own_cumulative_ones(tmp_path: Path) -> None:
    """Defect 28: they stay as they are; health judges their growth, and must be able to."""
    _controller(tmp_path, "mc0", ce_count=3)
    _controller(tmp_path, "mc1", ue_count=1)
    _controller(tmp_path, "mc10")
    clock = ManualClock()
    collector = _collector(tmp_path, clock)
    first = collector.collect()
    assert values_by(first, "ecc_ce_errors", "mc") == {"mc0": 3, "mc1": 0, "mc10": 0}
    assert values_by(first, "ecc_uce_errors", "mc") == {"mc0": 0, "mc1": 1, "mc10": 0}
    clock.advance(5)
    assert values_by(collector.collect(), "ecc_ce_errors", "mc") == {"mc0": 3, "mc1": 0, "mc10": 0}


def test_defect_10_the_first_error_after_start_is_seen(tmp_path: Path) -> None:
    folder = _controller(tmp_path)
    clock = ManualClock()
    collector = _collector(tmp_path, clock)
    assert value(collector.collect(), "ecc_ce_errors", mc="mc0") == 0
    write_all(str(tmp_path), folder, {"ce_count": 1})
    clock.advance(5)
    assert value(collector.collect(), "ecc_ce_errors", mc="mc0") == 1


def test_one_unreadable_controller_costs_only_itself(tmp_path: Path) -> None:
    _controller(tmp_path, "mc0", ce_count="garbage")
    _controller(tmp_path, "mc1", ce_count=7)
    os.remove(f"{tmp_path}{_MC}/mc0/ue_count")
    batch = _collector(tmp_path).collect()
    assert absence(batch, "ecc_ce_errors", mc="mc0").state is Absence.READ_ERROR
    assert "garbage" in absence(batch, "ecc_ce_errors", mc="mc0").reason
    assert absence(batch, "ecc_uce_errors", mc="mc0").state is Absence.UNSUPPORTED
    assert value(batch, "ecc_ce_errors", mc="mc1") == 7


def test_modules_of_today(tmp_path: Path) -> None:
    folder = _controller(tmp_path)
    write_all(
        str(tmp_path),
        f"{folder}/dimm2",
        {
            "dimm_label": "DIMM_A1",
            "dimm_location": "channel 0 slot 0 ",
            "size": 16384,
            "dimm_edac_mode": "S4ECD4ED",
            "dimm_ce_count": 5,
            "dimm_ue_count": 1,
        },
    )
    # Legacy folders stand beside the new ones on some kernels; the finer ones count, and nothing is told twice.
    write_all(str(tmp_path), f"{folder}/csrow0", {"ch0_ce_count": 5, "ue_count": 1})
    batch = _collector(tmp_path).collect()
    labels = {"mc": "mc0", "dimm": "dimm2", "label": "DIMM_A1", "location": "channel 0 slot 0"}
    assert value(batch, "ecc_dimm_ce_errors", **labels) == 5
    assert value(batch, "ecc_dimm_uce_errors", **labels) == 1
    assert value(batch, "ecc_dimm_size", **labels) == 16384
    assert value(batch, "ecc_controller_info", mc="mc0", model="test", mode="S4ECD4ED") == 8192


def test_rows_of_old_kernels(tmp_path: Path) -> None:
    folder = _controller(tmp_path)
    row: dict[str, str | int] = {"size_mb": 4096, "ue_count": 2, "edac_mode": "SECDED"}
    row |= {"ch0_ce_count": 0, "ch0_dimm_label": "A1", "ch1_ce_count": 9, "ch1_dimm_label": ""}
    write_all(str(tmp_path), f"{folder}/csrow3", row)
    batch = _collector(tmp_path).collect()
    location = {"location": "csrow 3 channel 1"}
    assert value(batch, "ecc_dimm_ce_errors", mc="mc0", dimm="csrow3ch1", **location) == 9
    entry = absence(batch, "ecc_dimm_uce_errors", mc="mc0")
    assert entry.state is Absence.UNSUPPORTED
    assert "csrow3ch0, csrow3ch1" in entry.reason


def test_many_modules_without_counters_make_one_absence(tmp_path: Path) -> None:
    folder = _controller(tmp_path)
    for number in range(24):
        write_all(str(tmp_path), f"{folder}/dimm{number}", {"dimm_label": f"D{number}", "size": 1})
    batch = _collector(tmp_path).collect()
    assert absence(batch, "ecc_dimm_ce_errors", mc="mc0").reason.endswith(
        "dimm0, dimm1, dimm10, dimm11, dimm12, dimm13, dimm14, dimm15 ..."
    )
    assert len(values_by(batch, "ecc_dimm_size", "dimm")) == 24


def test_a_controller_that_shows_no_modules_and_no_size(tmp_path: Path) -> None:
    write_all(str(tmp_path), f"{_MC}/mc0", {"ce_count": 0, "ue_count": 0})
    batch = _collector(tmp_path).collect()
    for name in ("ecc_dimm_ce_errors", "ecc_dimm_uce_errors", "ecc_dimm_size", "ecc_controller_info"):
        assert absence(batch, name, mc="mc0").state is Absence.UNSUPPORTED
    assert absence(batch, "ecc_noinfo_errors", mc="mc0", type="uce").state is Absence.UNSUPPORTED
    assert value(batch, "ecc_ce_errors", mc="mc0") == 0


@pytest.mark.parametrize("prepare", [lambda _: None, lambda root: write_all(str(root), f"{_MC}/power", {"control": "auto"})])
def test_real_memory_that_nobody_watches_is_unknown_and_the_remedy_is_named(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path)
    batch = _collector(tmp_path).collect()
    for name in _NAMES:
        entry = absence(batch, name)
        assert entry.state is Absence.UNKNOWN
        assert "modprobe" in entry.remedy
    assert batch.metrics == []


def test_a_virtual_machine_has_no_controller(tmp_path: Path) -> None:
    write_all(str(tmp_path), "/proc", {"cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n"})
    assert absence(_collector(tmp_path).collect(), "ecc_ce_errors").state is Absence.NOT_APPLICABLE


class _Refusing(FileTree):
    """Files of which some answer with an error."""

    def __init__(self, root: str, refused: str, error: NoData) -> None:
        super().__init__(root)
        self._refused = refused
        self._error = error

    def names(self, path: str) -> list[str]:
        if path == self._refused:
            raise self._error
        return super().names(path)


@pytest.mark.parametrize(
    ("refused", "labels"), [(_MC, {}), (f"{_MC}/mc0", {"mc": "mc0"})], ids=["the whole folder", "one controller"]
)
def test_no_right_to_look_is_told_as_that(tmp_path: Path, refused: str, labels: dict[str, str]) -> None:
    _controller(tmp_path)
    error = NoData(Absence.NO_PERMISSION, f"{refused}: Permission denied", remedy="run as root")
    machine = Machine(_Refusing(str(tmp_path), refused, error), RecordedCommands({}), ManualClock())
    entry = absence(memory.create(machine, EVERYTHING).collect(), "ecc_dimm_ce_errors", **labels)
    assert (entry.state, entry.remedy) == (Absence.NO_PERMISSION, "run as root")


def test_modules_are_read_once_a_minute_and_controllers_every_five_seconds(tmp_path: Path) -> None:
    folder = _controller(tmp_path, ce_count=0)
    write_all(str(tmp_path), f"{folder}/dimm0", {"dimm_label": "A1", "size": 1, "dimm_ce_count": 0, "dimm_ue_count": 0})
    clock = ManualClock()
    collector = _collector(tmp_path, clock)
    collector.collect()
    write_all(str(tmp_path), folder, {"ce_count": 1})
    write_all(str(tmp_path), f"{folder}/dimm0", {"dimm_ce_count": 1})
    clock.advance(5)
    batch = collector.collect()
    assert values_by(batch, "ecc_ce_errors", "mc") == {"mc0": 1}
    assert values_by(batch, "ecc_dimm_ce_errors", "dimm") == {"dimm0": 0}
    clock.advance(55)
    assert values_by(collector.collect(), "ecc_dimm_ce_errors", "dimm") == {"dimm0": 1}
