"""Identity of the machine, for snapshot specs (observe.md 1.9)."""

import pytest

from nodeproof.collectors.services.identity import collect_hw_specs, system_identity
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.catalogue import component_specs
from nodeproof.model.metric import Metric
from support.hosts_system import write_files, write_system_bare_x86_256cpu, write_system_vm_2cpu


def _labels(machine: Machine) -> dict[str, dict[str, str]]:
    return {metric.name: metric.labels or {} for metric in system_identity(machine)}


def test_a_guest_without_a_serial_number(tmp_path: object) -> None:
    write_system_vm_2cpu(str(tmp_path))
    assert _labels(recorded_machine(str(tmp_path))) == {
        "device_model": {"manufacturer": "QEMU", "product_name": "Standard PC (Q35 + ICH9, 2009)", "version": "pc-q35-7.2"},
        "os_info": {"pretty_name": "Debian GNU/Linux 12 (bookworm)", "version_id": "12", "kernel": "6.1.0-25-amd64"},
    }


def test_fillers_of_a_manufacturer_are_no_version(tmp_path: object) -> None:
    write_system_bare_x86_256cpu(str(tmp_path))
    assert _labels(recorded_machine(str(tmp_path)))["device_model"] == {
        "manufacturer": "Example Systems",
        "product_name": "X2 Server",
        "serial_number": "SERIAL-0001",
    }


def test_values_units_and_labels_are_those_of_the_contract(tmp_path: object) -> None:
    write_system_bare_x86_256cpu(str(tmp_path))
    specs = component_specs("system")
    for metric in system_identity(recorded_machine(str(tmp_path))):
        assert (metric.component, metric.value, metric.unit) == ("system", 1.0, "")
        assert set(metric.labels or {}) <= set(specs[metric.name].labels)
        assert specs[metric.name].reference


def test_a_board_with_a_device_tree(tmp_path: object) -> None:
    write_files(str(tmp_path), {"proc/device-tree/model": "Kunpeng Board v2\0", "usr/lib/os-release": "PRETTY_NAME=openEuler\n"})
    assert _labels(recorded_machine(str(tmp_path))) == {
        "device_model": {"product_name": "Kunpeng Board v2"},
        "os_info": {"pretty_name": "openEuler"},
    }


def test_a_damaged_release_file_gives_way_to_the_other(tmp_path: object) -> None:
    write_files(str(tmp_path), {"etc/os-release": "??\n", "usr/lib/os-release": "VERSION_ID=3\n"})
    assert _labels(recorded_machine(str(tmp_path))) == {"os_info": {"version_id": "3"}}


def test_nothing_known_is_nothing_told(tmp_path: object) -> None:
    assert system_identity(recorded_machine(str(tmp_path))) == []


def test_one_components_failure_hides_no_other(tmp_path: object) -> None:
    write_files(str(tmp_path), {"proc/sys/kernel/osrelease": "6.8.0\n"})
    disk = Metric("disk", "disk_info", 512.1, "GB", {"device": "sda"})

    def broken(_machine: Machine) -> list[Metric]:
        raise RuntimeError("no")

    def disks(_machine: Machine) -> list[Metric]:
        return [disk]

    specs = collect_hw_specs(recorded_machine(str(tmp_path)), [broken, disks])
    assert [(metric.component, metric.name) for metric in specs] == [("system", "os_info"), ("disk", "disk_info")]


def test_this_machine() -> None:
    labels = _labels(Machine.here())
    with open("/proc/sys/kernel/osrelease", encoding="ascii") as file:
        assert labels["os_info"]["kernel"] == file.read().strip()


@pytest.mark.parametrize("text", ["x" * 5000, "a\0b", "caf\u00e9"])
def test_texts_of_the_firmware_are_bounded(tmp_path: object, text: str) -> None:
    write_files(str(tmp_path), {"sys/class/dmi/id/product_name": text})
    name = _labels(recorded_machine(str(tmp_path)))["device_model"]["product_name"]
    assert len(name) <= 200
    assert "\0" not in name
