"""Memory part of the generated host ``bare-x86-256cpu``: two sockets, eight NUMA nodes, 1 TiB in sixteen modules, amd64_edac.

Every number follows from the ones named here, so that readings can be worked out by hand.
"""

import os

from support import smbios

__all__ = ["dmi_table", "write_memory"]

_NODES = 8
_NODE_TOTAL_KB = 132_000_000
_NODE_FREE_KB = 66_000_000
_MODULE_MIB = 65_536
_CHANNELS = 8
_HUGE_SIZES = ("1048576kB", "2048kB")

_MEMINFO_KB = {
    "MemTotal": _NODES * _NODE_TOTAL_KB,
    "MemFree": _NODES * _NODE_FREE_KB,
    "MemAvailable": 792_000_000,
    "Buffers": 4_096_000,
    "Cached": 262_144_000,
    "SwapCached": 0,
    "Active": 120_000_000,
    "Inactive": 210_000_000,
    "Active(anon)": 1_000_000,
    "Inactive(anon)": 90_000_000,
    "Active(file)": 119_000_000,
    "Inactive(file)": 120_000_000,
    "Unevictable": 2_048_000,
    "Mlocked": 2_048_000,
    "SwapTotal": 0,
    "SwapFree": 0,
    "Zswap": 0,
    "Zswapped": 0,
    "Dirty": 1_024,
    "Writeback": 0,
    "AnonPages": 90_112_000,
    "Mapped": 3_072_000,
    "Shmem": 524_288,
    "KReclaimable": 8_192_000,
    "Slab": 12_288_000,
    "SReclaimable": 8_192_000,
    "SUnreclaim": 4_096_000,
    "KernelStack": 65_536,
    "PageTables": 409_600,
    "SecPageTables": 0,
    "NFS_Unstable": 0,
    "Bounce": 0,
    "WritebackTmp": 0,
    "CommitLimit": 528_000_000,
    "Committed_AS": 132_000_000,
    "VmallocTotal": 34_359_738_367,
    "VmallocUsed": 1_228_800,
    "VmallocChunk": 0,
    "Percpu": 614_400,
    "HardwareCorrupted": 8,
    "AnonHugePages": 61_440_000,
    "ShmemHugePages": 0,
    "ShmemPmdMapped": 0,
    "FileHugePages": 0,
    "FilePmdMapped": 0,
}
_VMSTAT = {
    "nr_free_pages": _NODES * _NODE_FREE_KB // 4,
    "nr_isolated_anon": 64,
    "nr_isolated_file": 32,
    "workingset_refault_anon": 0,
    "workingset_refault_file": 1_000_000,
    "pgpgin": 812_345_678,
    "pgpgout": 912_345_678,
    "pswpin": 0,
    "pswpout": 0,
    "allocstall_dma": 0,
    "allocstall_dma32": 0,
    "allocstall_normal": 12,
    "allocstall_movable": 8,
    "pgfault": 9_000_000_000,
    "pgmajfault": 250_000,
    "oom_kill": 2,
}


def write_memory(root: str) -> None:
    """Write the memory files below ``root``."""
    kb = "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in _MEMINFO_KB.items())
    counts = "HugePages_Total:    1024\nHugePages_Free:     1000\nHugePages_Rsvd:        0\nHugePages_Surp:        0\n"
    _write(root, "/proc/meminfo", kb + counts + "Hugepagesize:       2048 kB\nHugetlb:         2097152 kB\n")
    _write(root, "/proc/vmstat", "".join(f"{name} {value}\n" for name, value in _VMSTAT.items()))
    _write(root, "/proc/buddyinfo", "".join(_zones()))
    _write(
        root,
        "/proc/pressure/memory",
        "some avg10=1.25 avg60=0.50 avg300=0.10 total=7500000\nfull avg10=0.75 avg60=0.25 avg300=0.05 total=2500000\n",
    )
    _write(root, "/proc/sys/vm/overcommit_memory", "0\n")
    _write(root, "/proc/self/cgroup", "0::/system.slice/nodeproof.service\n")
    _write(root, "/sys/fs/cgroup/system.slice/nodeproof.service/memory.max", "max\n")
    for node in range(_NODES):
        _node(root, node)
    for size in _HUGE_SIZES:
        pool = 1024 if size == "2048kB" else 0
        for name, value in (("nr", pool), ("free", pool - 24 if pool else 0), ("resv", 0), ("surplus", 0)):
            _write(root, f"/sys/kernel/mm/hugepages/hugepages-{size}/{name}_hugepages", f"{value}\n")
    _write(root, "/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    for controller in range(2):
        _controller(root, controller)
    _write(root, "/sys/firmware/dmi/tables/DMI", dmi_table())


def dmi_table() -> bytes:
    """Tables of the host: sixteen modules of 64 GiB, rated for 3200 MT/s and set to 2933."""
    return smbios.table(
        smbios.bios("American Megatrends International, LLC.", "2.6a", "03/14/2024"),
        smbios.system("Supermicro", "AS -2124BT", "0123456789", "TEST-SERIAL-0001"),
        smbios.baseboard("Supermicro", "H12DST-B", "1.02"),
        smbios.chassis("Supermicro", 0x17),
        *(
            smbios.processor(
                0x0010 + socket,
                f"CPU{socket + 1}",
                "Advanced Micro Devices, Inc.",
                "AMD EPYC 7763 64-Core Processor",
                cores=64,
                enabled_cores=64,
                threads=128,
                mhz=3500,
            )
            for socket in range(2)
        ),
        smbios.memory_array(0x1000, capacity_gib=4096, slots=16),
        *(
            smbios.memory_device(
                0x1100 + 8 * socket + channel,
                "DIMM 0",
                f"P{socket} CHANNEL {'ABCDEFGH'[channel]}",
                size_mib=_MODULE_MIB,
                rated_mts=3200,
                configured_mts=2933,
                maker="Samsung",
                part="M393A8G40BB4-CWE",
                rank=2,
            )
            for socket in range(2)
            for channel in range(_CHANNELS)
        ),
    )


def _zones() -> list[str]:
    """Node 0 has the small zones too; every Normal zone has 1000 single pages and 1000 blocks of 1024 pages."""
    lines = [
        "Node 0, zone      DMA      0      0      0      0      0      0      0      0      0      1      3 \n",
        "Node 0, zone    DMA32      4      4      4      4      4      4      4      4      4      4    400 \n",
    ]
    counts = [1000] + [0] * 9 + [1000]
    return lines + [f"Node {node}, zone   Normal " + "".join(f"{count:>6} " for count in counts) + "\n" for node in range(_NODES)]


def _node(root: str, node: int) -> None:
    folder = f"/sys/devices/system/node/node{node}"
    sizes = {"MemTotal": _NODE_TOTAL_KB, "MemFree": _NODE_FREE_KB, "MemUsed": _NODE_TOTAL_KB - _NODE_FREE_KB, "SwapCached": 0}
    lines = "".join(f"Node {node} {name + ':':<16}{value:>8} kB\n" for name, value in sizes.items())
    _write(root, f"{folder}/meminfo", lines + f"Node {node} HugePages_Total:   128\nNode {node} HugePages_Free:    125\n")
    outcomes = {
        "numa_hit": 1_000_000_000 + node,
        "numa_miss": 5_000 * node,
        "numa_foreign": 4_000 * node,
        "interleave_hit": 1_127,
        "local_node": 990_000_000,
        "other_node": 10_000_000 + 6_000 * node,
    }
    _write(root, f"{folder}/numastat", "".join(f"{name} {value}\n" for name, value in outcomes.items()))


def _controller(root: str, number: int) -> None:
    """amd64_edac names ranks. Controller 1 has three corrected errors in one rank and two it could not place."""
    folder = f"/sys/devices/system/edac/mc/mc{number}"
    faulty = number == 1
    files = {
        "mc_name": f"F19h_M00h: DEV 0000:00:{0x18 + number:02x}.3",
        "size_mb": _CHANNELS * _MODULE_MIB,
        "ce_count": 5 if faulty else 0,
        "ue_count": 0,
        "ce_noinfo_count": 2 if faulty else 0,
        "ue_noinfo_count": 0,
        "seconds_since_reset": 864_000,
    }
    for name, value in files.items():
        _write(root, f"{folder}/{name}", f"{value}\n")
    for channel in range(_CHANNELS):
        for row in range(2):
            rank = {
                "dimm_label": f"mc#{number}csrow#{row}channel#{channel}",
                "dimm_location": f"csrow {row} channel {channel} ",
                "size": _MODULE_MIB // 2,
                "dimm_mem_type": "Registered-DDR4",
                "dimm_dev_type": "x4",
                "dimm_edac_mode": "S4ECD4ED",
                "dimm_ce_count": 3 if faulty and (row, channel) == (1, 2) else 0,
                "dimm_ue_count": 0,
            }
            for name, value in rank.items():
                _write(root, f"{folder}/rank{row * _CHANNELS + channel}/{name}", f"{value}\n")


def _write(root: str, path: str, content: str | bytes) -> None:
    real = root + path
    os.makedirs(os.path.dirname(real), exist_ok=True)
    with open(real, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
