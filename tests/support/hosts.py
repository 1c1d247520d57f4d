"""Fixture hosts: the trees of ``tests/fixtures/hosts``, and the parts of large ones that are generated rather than kept."""

import shutil
from collections.abc import Callable
from pathlib import Path

from support.hosts_cpu import write_amd_cpu, write_intel_cpu, write_kunpeng_cpu
from support.hosts_disk import write_disks, write_sick_storage, write_vm_disk
from support.hosts_gpu import write_amd_8, write_mixed, write_nvidia_8
from support.hosts_memory import write_memory
from support.hosts_network import write_network
from support.hosts_npu import write_npu_a2, write_npu_a2_dropped, write_npu_a2_hung, write_npu_a3
from support.hosts_system import write_system_bare_x86_256cpu, write_system_vm_2cpu

__all__ = ["GENERATED", "KEPT", "write_host"]

KEPT = Path(__file__).parents[1] / "fixtures" / "hosts"
"""Trees that are kept as files."""

GENERATED: dict[str, tuple[Callable[[str], None], ...]] = {
    "bare-x86-256cpu": (write_amd_cpu, write_memory, write_disks, write_network, write_system_bare_x86_256cpu),
    "bare-x86-intel": (write_intel_cpu,),
    "aarch64-kunpeng": (write_kunpeng_cpu,),
    "gpu-amd-8": (write_intel_cpu, write_amd_8),
    "gpu-mixed": (write_intel_cpu, write_mixed),
    "gpu-nvidia-8": (write_intel_cpu, write_nvidia_8),
    "npu-a2-8": (write_npu_a2,),
    "npu-a2-dropped": (write_npu_a2_dropped,),
    "npu-a2-hung": (write_npu_a2_hung,),
    "npu-a3-16": (write_npu_a3,),
    "storage-sick": (write_sick_storage,),
    "vm-2cpu": (write_vm_disk, write_system_vm_2cpu),
}
"""What is written, in this order, over the kept tree of a host (if there is one)."""


def write_host(name: str, root: str) -> str:
    """Make host ``name`` below the new folder ``root``, always the same to the last byte; gives ``root`` back."""
    kept = KEPT / name
    if kept.is_dir():
        shutil.copytree(kept, root, symlinks=True)
    elif name not in GENERATED:
        raise ValueError(f"there is no fixture host {name}; known: {', '.join(sorted(GENERATED))} and the folders of {KEPT}")
    for write in GENERATED.get(name, ()):
        write(root)
    return root
