"""Hosts of any size, to see how cost grows with them: like ``bare-x86-256cpu`` in kind, each thing there as often as asked for.

* A processor brings its line of ``/proc/stat`` and ``softnet_stat``, its sysfs files and nine kernel threads.
* A disk brings its line of ``/proc/diskstats``, one partition, ``/sys/block``, an answer of smartctl and a mounted file system;
  three of four are SAS, the fourth is NVMe with a temperature sensor.
* A network port brings its line of ``/proc/net/dev``, ``/sys/class/net`` and its PCIe link; each eighth an InfiniBand adapter.

Memory (two sockets, sixteen modules, EDAC), BMC and kernel log are the same whatever the size.
"""

import json
import os
from typing import NamedTuple

from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from support.bmc import ipmitool_answers
from support.hosts_cpu import amd_stat, write_amd_cpu
from support.hosts_disk import diskstats_256, sd_name, write_chip, write_disks
from support.hosts_memory import write_memory
from support.hosts_network import write_network
from support.hosts_system import write_files, write_system_bare_x86_256cpu
from support.smartctl import smartctl_output
from support.tree import write, write_all

__all__ = ["Size", "grown_answers", "step", "write_grown_host"]

_KERNEL_THREADS = 9
"""Of each processor: stopper, idle injection, hotplug, migration, softirq, and workers."""


class Size(NamedTuple):
    """How much of everything."""

    cpus: int
    disks: int
    nics: int

    @property
    def sas(self) -> tuple[str, ...]:
        """Names of the SAS disks."""
        return tuple(sd_name(number) for number in range(self.disks - self.disks // 4))

    @property
    def nvme(self) -> tuple[str, ...]:
        """Names of the NVMe disks."""
        return tuple(f"nvme{number}n1" for number in range(self.disks // 4))

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the network ports."""
        return tuple(f"ens{number}f0np0" for number in range(1, self.nics + 1))


def write_grown_host(root: str, size: Size) -> None:
    """Make a host of this size below ``root``."""
    write_amd_cpu(root, size.cpus)
    write_memory(root)
    write_disks(root, size.sas, size.nvme)
    for number in range(3, len(size.nvme)):  # the first three have theirs
        write_chip(root, 40 + number, "nvme", f"nvme{number}", {"temp1_input": 35_000, "temp1_label": "Composite"})
    _mount(root, size)
    _network(root, size, 0)
    write_system_bare_x86_256cpu(root)
    threads = range(1000, 1000 + _KERNEL_THREADS * size.cpus)
    write_files(root, {f"proc/{pid}/stat": f"{pid} (kworker/0:1) I 2{' 0' * 16} 1 0 {pid}{' 0' * 10}\n" for pid in threads})
    write(root, "/dev/ipmi0", "")


def grown_answers(size: Size) -> dict[str, bytes | CommandResult | CommandError]:
    """What the tools of such a host answer, by command line."""
    sas, nvme = smartctl_output("sas-hdd.json"), smartctl_output("nvme.json")
    ask = "smartctl --json=c -n standby -x /dev/"
    return ipmitool_answers("supermicro") | {ask + name: sas for name in size.sas} | {ask + name: nvme for name in size.nvme}


def step(root: str, size: Size, tick: int) -> None:
    """Change what changes in ``tick`` seconds, in place, as the kernel does."""
    write(root, "/proc/stat", amd_stat(tick, size.cpus))
    write(root, "/proc/diskstats", diskstats_256(tick, (*size.sas, *size.nvme)))
    _network(root, size, tick)


def _network(root: str, size: Size, tick: int) -> None:
    write_network(root, tick=tick, veths=0, names=size.ports, adapters=size.nics // 8, cpus=size.cpus)


def _mount(root: str, size: Size) -> None:
    """A file system on each disk, as in storage servers."""
    lines = ["28 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw\n"]
    space = {"/": [4096, 10_000_000, 2_500_000, 2_000_000, 2_500_000, 2_000_000]}
    for number, name in enumerate((*size.sas, *size.nvme)):
        path = f"/data/{number}"
        lines.append(f"{100 + number} 28 8:{16 * number + 1} / {path} rw,relatime - xfs /dev/{name}1 rw,attr2\n")
        space[path] = [4096, 900_000_000, 400_000_000, 400_000_000, 300_000_000, 299_000_000]
        os.makedirs(root + path, exist_ok=True)
    write(root, "/proc/1/mountinfo", "".join(lines))
    write(root, "/statvfs.json", json.dumps(space))
    write_all(root, "/sys/fs/ext4/dm-0", {"errors_count": 0})
