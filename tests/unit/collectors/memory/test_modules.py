"""Modules by SMBIOS."""

import os
from pathlib import Path

import pytest

from nodeproof.collectors.memory import collector as memory
from nodeproof.errors import Absence
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.metric import Batch
from support import smbios as make
from support.readings import absence, absent_names, value, values_by
from support.tree import write

_TABLE = "/sys/firmware/dmi/tables/DMI"
_NAMES = {
    "module_num",
    "module_slots",
    "module_size",
    "module_info",
    "module_speed_downclocked",
    "installed_size",
    "ecc_capability",
}


class _Modules:
    def wants(self, component: str, name: str) -> bool:
        return component == "memory" and name in _NAMES


def _batch(root: Path, *structures: bytes, virtual: bool = False) -> Batch:
    write(str(root), _TABLE, make.table(*structures))
    if virtual:
        write(str(root), "/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n")
    return memory.create(recorded_machine(str(root)), _Modules()).collect()


def _device(number: int, locator: str, bank: str = "", *, size_mib: int | None = 1024, kind: int = 0x1A, mts: int = 0) -> bytes:
    return make.memory_device(0x1100 + number, locator, bank, size_mib=size_mib, kind=kind, rated_mts=mts, configured_mts=mts)


def test_empty_slots_and_memory_that_is_no_main_memory_do_not_count(tmp_path: Path) -> None:
    rom = _device(9, "SYSTEM ROM", size_mib=16, kind=0x09)
    batch = _batch(tmp_path, _device(0, "A1", mts=3200), _device(1, "A2", size_mib=0, kind=2), rom)
    assert value(batch, "module_num") == 1
    assert value(batch, "module_slots") == 2
    assert value(batch, "installed_size") == 1024
    assert values_by(batch, "module_size", "locator") == {"A1": 1024}
    assert value(batch, "module_info", locator="A1", type="DDR4", speed="3200 MT/s") == 1024


@pytest.mark.parametrize(
    ("slots", "names"),
    [
        ((("DIMM 0", "P0 A"), ("DIMM 0", "P0 B")), ["P0 A DIMM 0", "P0 B DIMM 0"]),
        ((("DIMM 0", ""), ("DIMM 0", "")), ["DIMM 0 #1", "DIMM 0 #2"]),
        ((("", ""), ("", "")), ["slot #1", "slot #2"]),
        ((("A1", "B"), ("A2", "B")), ["A1", "A2"]),
    ],
)
def test_slots_that_share_a_name_stay_apart(tmp_path: Path, slots: tuple[tuple[str, str], ...], names: list[str]) -> None:
    batch = _batch(tmp_path, *(_device(number, locator, bank) for number, (locator, bank) in enumerate(slots)))
    assert list(values_by(batch, "module_size", "locator")) == names


def test_a_size_the_firmware_does_not_know_is_no_empty_slot(tmp_path: Path) -> None:
    batch = _batch(tmp_path, _device(0, "A1"), _device(1, "A2", size_mib=None))
    assert absence(batch, "module_num").state is Absence.UNKNOWN
    assert "A2" in absence(batch, "installed_size").reason
    assert values_by(batch, "module_size", "locator") == {"A1": 1024}


@pytest.mark.parametrize(
    ("rated", "configured", "slow"), [(3200, 2933, 1.0), (3200, 3200, 0.0), (2933, 2932, 0.0), (2933, 2934, 0.0)]
)
def test_a_module_below_its_speed(tmp_path: Path, rated: int, configured: int, slow: float) -> None:
    device = make.memory_device(0x1100, "A1", "", size_mib=1024, rated_mts=rated, configured_mts=configured)
    batch = _batch(tmp_path, device)
    labels = {"locator": "A1", "rated": f"{rated} MT/s", "configured": f"{configured} MT/s"}
    assert value(batch, "module_speed_downclocked", **labels) == slow
    assert value(batch, "module_info", locator="A1", type="DDR4", speed=f"{configured} MT/s") == 1024


@pytest.mark.parametrize(("virtual", "state"), [(False, Absence.UNKNOWN), (True, Absence.NOT_APPLICABLE)])
def test_speeds_that_are_not_told(tmp_path: Path, virtual: bool, state: Absence) -> None:  # noqa: FBT001 - a table of answers
    batch = _batch(tmp_path, _device(0, "A1"), virtual=virtual)
    assert absence(batch, "module_speed_downclocked").state is state


@pytest.mark.parametrize(("virtual", "state"), [(False, Absence.UNKNOWN), (True, Absence.NOT_APPLICABLE)])
def test_tables_without_slots(tmp_path: Path, virtual: bool, state: Absence) -> None:  # noqa: FBT001 - a table of answers
    batch = _batch(tmp_path, make.system("M", "P", "V", "S"), virtual=virtual)
    assert absence(batch, "module_num").state is state
    assert absence(batch, "module_slots").state is state


def test_no_slot_is_filled(tmp_path: Path) -> None:
    batch = _batch(tmp_path, _device(0, "A1", size_mib=0))
    assert value(batch, "module_num") == 0
    assert absence(batch, "module_speed_downclocked").state is Absence.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("corrections", "kind", "capable"),
    [
        ((6,), "Multi-bit ECC", 1.0),
        ((5,), "Single-bit ECC", 1.0),
        ((3,), "None", 0.0),
        ((6, 3), "None", 0.0),
        ((4,), "Parity", 0.0),
    ],
)
def test_the_weakest_array_decides_whether_errors_are_corrected(
    tmp_path: Path, corrections: tuple[int, ...], kind: str, capable: float
) -> None:
    arrays = [make.memory_array(0x1000 + n, correction=code, capacity_gib=1, slots=1) for n, code in enumerate(corrections)]
    flash = make.memory_array(0x1010, use=5, correction=3, capacity_gib=1, slots=1)
    assert value(_batch(tmp_path, *arrays, flash, _device(0, "A1")), "ecc_capability", type=kind) == capable


def test_an_unknown_kind_of_correction_is_unknown(tmp_path: Path) -> None:
    batch = _batch(tmp_path, make.memory_array(0x1000, correction=2, capacity_gib=1, slots=1), _device(0, "A1"))
    assert absence(batch, "ecc_capability").state is Absence.UNKNOWN


def test_what_a_hypervisor_claims_of_ecc_is_no_evidence(tmp_path: Path) -> None:
    array = make.memory_array(0x1000, correction=6, capacity_gib=4, slots=1)
    assert absence(_batch(tmp_path, array, _device(0, "A1"), virtual=True), "ecc_capability").state is Absence.NOT_APPLICABLE


def test_defects_16_and_30_statics_that_failed_are_tried_until_they_are_there_and_then_stay(tmp_path: Path) -> None:
    write(str(tmp_path), _TABLE, b"rubbish")
    clock = ManualClock()
    collector = memory.create(recorded_machine(str(tmp_path), clock=clock), _Modules())
    first = collector.collect()
    assert absence(first, "module_num").state is Absence.READ_ERROR
    assert absent_names(first) == _NAMES
    write(str(tmp_path), _TABLE, make.table(_device(0, "A1")))
    clock.advance(30)
    assert value(collector.collect(), "module_num") == 1
    os.remove(f"{tmp_path}{_TABLE}")
    clock.advance(30)
    assert value(collector.collect(), "module_num") == 1
