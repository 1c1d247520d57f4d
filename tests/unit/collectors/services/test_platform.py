"""Bare metal, virtual machine or container: each by its own evidence."""

from pathlib import Path

import pytest

from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence
from nodeproof.host.recorded import recorded_machine
from support.tree import write

_X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu\n"
_GUEST = "processor\t: 0\nflags\t: fpu hypervisor\n"
_ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
_DMI = "/sys/class/dmi/id"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"


def _platform(tmp_path: Path, files: dict[str, str]) -> Platform:
    for path, content in files.items():
        write(str(tmp_path), path, content)
    return recorded_machine(str(tmp_path)).shared(Platform)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/proc/cpuinfo": _X86}, "none"),
        ({"/proc/cpuinfo": _X86, f"{_DMI}/sys_vendor": "Dell Inc."}, "none"),
        # Clouds write their name on bare metal too: without the flag it is bare.
        ({"/proc/cpuinfo": _X86, f"{_DMI}/sys_vendor": "Amazon EC2", f"{_DMI}/product_name": "c5.metal"}, "none"),
        ({"/proc/cpuinfo": _X86, "/sys/hypervisor/type": "xen"}, "xen"),
        ({"/proc/cpuinfo": _X86, "/sys/hypervisor/type": "xen", "/proc/xen/capabilities": "control_d"}, "none"),
        ({"/proc/cpuinfo": _GUEST}, "vm-other"),
        ({"/proc/cpuinfo": _GUEST, _CLOCKS: "tsc kvm-clock acpi_pm"}, "kvm"),
        ({"/proc/cpuinfo": _GUEST, _CLOCKS: "hyperv_clocksource_tsc_page acpi_pm"}, "hyperv"),
        ({"/proc/cpuinfo": _GUEST, "/sys/hypervisor/type": "xen"}, "xen"),
        ({"/proc/cpuinfo": _GUEST, f"{_DMI}/sys_vendor": "QEMU"}, "kvm"),
        ({"/proc/cpuinfo": _GUEST, f"{_DMI}/sys_vendor": "VMware, Inc."}, "vmware"),
        ({"/proc/cpuinfo": _GUEST, f"{_DMI}/product_name": "VirtualBox"}, "virtualbox"),
        (
            {"/proc/cpuinfo": _GUEST, f"{_DMI}/sys_vendor": "Microsoft Corporation", f"{_DMI}/product_name": "Virtual Machine"},
            "hyperv",
        ),
        ({"/proc/cpuinfo": _GUEST, f"{_DMI}/sys_vendor": "Xen", f"{_DMI}/product_name": "HVM domU"}, "xen"),
        ({"/proc/cpuinfo": _GUEST, f"{_DMI}/sys_vendor": "Amazon EC2"}, "amazon"),
        ({"/proc/cpuinfo": _ARM}, "unknown"),
        ({"/proc/cpuinfo": _ARM, f"{_DMI}/product_name": "KVM Virtual Machine"}, "kvm"),
        ({"/proc/cpuinfo": _ARM, f"{_DMI}/sys_vendor": "Amazon EC2", f"{_DMI}/product_name": "m6g.large"}, "amazon"),
        ({"/proc/cpuinfo": _ARM, f"{_DMI}/sys_vendor": "Amazon EC2", f"{_DMI}/product_name": "m6g.metal"}, "none"),
        ({"/proc/cpuinfo": _ARM, f"{_DMI}/sys_vendor": "Huawei", f"{_DMI}/product_name": "TaiShan 200"}, "none"),
        ({"/proc/cpuinfo": _ARM, "/proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "kvm"),
        ({"/proc/cpuinfo": _ARM, "/proc/device-tree/hypervisor/compatible": "acme,hyper"}, "vm-other"),
        ({"/proc/cpuinfo": _ARM, "/proc/device-tree/compatible": "linux,dummy-virt\0"}, "kvm"),
        ({"/proc/cpuinfo": _ARM, "/proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0"}, "none"),
        ({}, "unknown"),
    ],
)
def test_virtualization(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    platform = _platform(tmp_path, files)
    assert platform.virtualization == expected
    assert platform.is_virtual is (expected not in {"none", "unknown"})
    assert platform.virtualization_finding().evidence


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"/proc/2/comm": "kthreadd", "/.dockerenv": ""}, None),  # an image made for containers as root of a small machine
        ({"/.dockerenv": ""}, "docker"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/run/systemd/container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"/var/run/secrets/kubernetes.io/x": ""}, "kubernetes"),
        ({"/proc/1/cgroup": "4:memory:/docker/3386\n"}, "docker"),
        ({"/proc/self/cgroup": "0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-1.scope\n"}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/lxc.payload.web\n"}, "lxc"),
        ({"/proc/1/cgroup": "0::/init.scope\n", "/proc/self/cgroup": "0::/system.slice/nodeproof.service\n"}, None),
    ],
)
def test_container(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    platform = _platform(tmp_path, files)
    assert platform.container == expected
    assert platform.container_finding().evidence


@pytest.mark.parametrize(("cpuinfo", "expected"), [(_X86, "x86_64"), (_ARM, "aarch64"), ("rubbish", "")])
def test_architecture(tmp_path: Path, cpuinfo: str, expected: str) -> None:
    assert _platform(tmp_path, {"/proc/cpuinfo": cpuinfo}).architecture == expected


def test_what_could_not_be_read_at_first_is_read_later(tmp_path: Path) -> None:
    platform = _platform(tmp_path, {})
    assert (platform.cpuinfo, platform.virtualization) == (None, "unknown")
    write(str(tmp_path), "/proc/cpuinfo", _GUEST)
    assert platform.virtualization == "vm-other"
    assert platform.is_virtual


def test_absence_of_hardware(tmp_path: Path) -> None:
    absence = _platform(tmp_path, {"/proc/cpuinfo": _X86}).no_hardware("fan", "/sys/x is not there", remedy="load the driver")
    assert (absence.state, absence.reason, absence.remedy) == (
        Absence.UNSUPPORTED,
        "no fan: /sys/x is not there",
        "load the driver",
    )


def test_absence_of_hardware_in_a_virtual_machine(tmp_path: Path) -> None:
    absence = _platform(tmp_path, {"/proc/cpuinfo": _GUEST}).no_hardware("fan", "/sys/x is not there", remedy="load the driver")
    assert (absence.state, absence.reason) == (Absence.NOT_APPLICABLE, "a virtual machine (vm-other) has no fan of its own")


def test_absence_of_hardware_in_a_container(tmp_path: Path) -> None:
    absence = _platform(tmp_path, {"/proc/cpuinfo": _X86, "/.dockerenv": ""}).no_hardware(
        "fan", "/sys/x", remedy="load the driver"
    )
    assert absence.state is Absence.UNSUPPORTED
    assert absence.remedy == "load the driver; inside a container (docker) the /sys of the host must be visible"
