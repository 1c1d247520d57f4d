"""What kind of machine this is: bare metal, virtual or a container, from files that every user may read.

Collectors ask it to tell "this machine has no such thing" from "it should have, and the driver is missing".
"""

from typing import NamedTuple

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_cpuinfo
from nodeproof.sources.proc_cpuinfo import CpuInfo

__all__ = ["Finding", "Platform"]

_DMI = "/sys/class/dmi/id"
_DMI_FILES = ("sys_vendor", "product_name", "board_vendor", "bios_vendor")
_DMI_HYPERVISORS = (
    ("kvm virtual machine", "kvm"),
    ("qemu", "kvm"),
    ("openstack", "kvm"),
    ("google compute engine", "kvm"),
    ("alibaba cloud", "kvm"),
    ("huaweicloud", "kvm"),
    ("tencent cloud", "kvm"),
    ("amazon ec2", "amazon"),
    ("digitalocean", "kvm"),
    ("hetzner vserver", "kvm"),
    ("ovirt", "kvm"),
    ("rhev", "kvm"),
    ("nutanix ahv", "kvm"),
    ("kvm", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("hvm domu", "xen"),
    ("xen", "xen"),
    ("bochs", "bochs"),
    ("parallels", "parallels"),
    ("bhyve", "bhyve"),
    ("apple virtualization", "apple"),
    ("virtual machine", "hyperv"),
)
"""Text in the DMI names, in small letters, and the hypervisor that writes it there; the first that fits counts."""
_CLOCKS = (("kvm-clock", "kvm"), ("hyperv", "hyperv"), ("xen", "xen"))
_CGROUP_MARKS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
)


class Finding(NamedTuple):
    """An answer and what it rests on."""

    value: str
    evidence: str


class Platform:
    """This machine's kind; get it by ``machine.shared(Platform)``. Every answer is found once and kept."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._cpuinfo: CpuInfo | None = None
        self._virtualization: Finding | None = None
        self._container: Finding | None = None

    @property
    def cpuinfo(self) -> CpuInfo | None:
        """``/proc/cpuinfo`` as it was first read; None while it cannot be read."""
        if self._cpuinfo is None:
            try:
                self._cpuinfo = proc_cpuinfo.parse(self._files.read("/proc/cpuinfo"))
            except (NoData, ParseError):
                return None
        return self._cpuinfo

    @property
    def architecture(self) -> str:
        """``x86_64``, ``aarch64`` ...; empty when ``/proc/cpuinfo`` does not tell."""
        return self.cpuinfo.architecture if self.cpuinfo is not None else ""

    @property
    def virtualization(self) -> str:
        """``none``, the hypervisor (``kvm``, ``vmware``, ``hyperv`` ..., ``vm-other``), or ``unknown``."""
        return self.virtualization_finding().value

    @property
    def is_virtual(self) -> bool:
        """Whether it is known that this machine is virtual."""
        return self.virtualization not in {"none", "unknown"}

    @property
    def container(self) -> str | None:
        """Kind of container that we run in (``docker``, ``kubernetes``, ``podman``, ``lxc`` ...), or None."""
        return self.container_finding().value or None

    def virtualization_finding(self) -> Finding:
        """:attr:`virtualization` with its evidence."""
        if self._virtualization is None:
            found = _virtualization(self._files, self.cpuinfo)
            if self.cpuinfo is None:
                return found
            self._virtualization = found
        return self._virtualization

    def container_finding(self) -> Finding:
        """:attr:`container` with its evidence; an empty value = none."""
        if self._container is None:
            self._container = _container(self._files)
        return self._container

    def no_hardware(self, what: str, tried: str, *, remedy: str) -> NoData:
        """The absence of ``what`` (``temperature sensor``), which ``tried`` told in words.

        In a virtual machine it is not applicable; real hardware has it, there it is unsupported and ``remedy`` would bring it.
        """
        if self.is_virtual:
            return NoData(Absence.NOT_APPLICABLE, f"a virtual machine ({self.virtualization}) has no {what} of its own")
        if self.container is not None:
            remedy = f"{remedy}; inside a container ({self.container}) the /sys of the host must be visible"
        return NoData(Absence.UNSUPPORTED, f"no {what}: {tried}", remedy=remedy)


def _text(files: FileTree, path: str) -> str:
    try:
        return files.read_text(path).replace("\0", " ").strip()
    except NoData:
        return ""


def _virtualization(files: FileTree, cpuinfo: CpuInfo | None) -> Finding:
    dmi = {name: _text(files, f"{_DMI}/{name}") for name in _DMI_FILES}
    named = _dmi_hypervisor(dmi)
    if cpuinfo is not None and cpuinfo.hypervisor is not None:
        return _by_processor(files, named, hypervisor=cpuinfo.hypervisor)
    if named is not None and not dmi["product_name"].endswith(".metal"):
        return named
    tree = _device_tree(files)
    if tree is not None:
        return tree
    if any(dmi.values()):
        return Finding("none", f"{_DMI} names a machine that is not virtual")
    return Finding("unknown", "neither /proc/cpuinfo, DMI nor device tree tells")


def _by_processor(files: FileTree, named: Finding | None, *, hypervisor: bool) -> Finding:
    """On x86 the processor decides; names only say which hypervisor (clouds put theirs on bare metal too)."""
    if hypervisor:
        return _guest_of(files, named)
    if _text(files, "/sys/hypervisor/type") == "xen" and "control_d" not in _text(files, "/proc/xen/capabilities"):
        return Finding("xen", "/sys/hypervisor/type")
    return Finding("none", "no hypervisor flag in /proc/cpuinfo")


def _guest_of(files: FileTree, named: Finding | None) -> Finding:
    """Which hypervisor, when the processor says that there is one."""
    if named is not None:
        return named
    if _text(files, "/sys/hypervisor/type") == "xen":
        return Finding("xen", "/sys/hypervisor/type")
    path = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
    clocks = _text(files, path)
    for mark, name in _CLOCKS:
        if mark in clocks:
            return Finding(name, f"{mark} in {path}")
    return Finding("vm-other", "hypervisor flag in /proc/cpuinfo")


def _dmi_hypervisor(dmi: dict[str, str]) -> Finding | None:
    for mark, name in _DMI_HYPERVISORS:
        for file, text in dmi.items():
            if mark in text.lower():
                return Finding(name, f"{_DMI}/{file} is {text!r}")
    return None


def _device_tree(files: FileTree) -> Finding | None:
    hypervisor = _text(files, "/proc/device-tree/hypervisor/compatible")
    if hypervisor:
        name = next(
            (name for mark, name in (("kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware")) if mark in hypervisor), "vm-other"
        )
        return Finding(name, "/proc/device-tree/hypervisor/compatible")
    compatible = _text(files, "/proc/device-tree/compatible")
    if "dummy-virt" in compatible:
        return Finding("kvm", "/proc/device-tree/compatible")
    return Finding("none", "/proc/device-tree/compatible names a board") if compatible else None


def _container(files: FileTree) -> Finding:
    named = _text(files, "/run/systemd/container")
    if named:
        return Finding(named, "/run/systemd/container")
    for path in ("/proc/1/cgroup", "/proc/self/cgroup"):
        text = _text(files, path)
        for mark, name in _CGROUP_MARKS:
            if mark in text:
                return Finding(name, f"{mark} in {path}")
    # Images made for containers also run as root file systems of small virtual machines: there the kernel's own threads are seen.
    if _text(files, "/proc/2/comm") != "kthreadd":
        for path, name in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
            if files.exists(path):
                return Finding(name, path)
        if files.exists("/var/run/secrets/kubernetes.io"):
            return Finding("kubernetes", "/var/run/secrets/kubernetes.io")
    return Finding("", "no mark of a container")
