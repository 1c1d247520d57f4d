"""System part of the generated hosts ``vm-2cpu`` and ``bare-x86-256cpu``: boot, clock, processes, kernel log, PCIe, identity.

Every number follows from the ones named here, so that readings can be worked out by hand.
"""

import os

from support.kernel_log import record

__all__ = ["write_files", "write_system_bare_x86_256cpu", "write_system_vm_2cpu"]

_BARE_PROCESSES = (
    # state, how many, threads of each
    ("S", 90, 4),
    ("I", 180, 1),
    ("R", 20, 2),
    ("D", 3, 1),
    ("Z", 5, 1),
    ("T", 1, 1),
)
_BARE_LOG = (
    "Linux version 6.8.0-45-generic",
    "mce: [Hardware Error]: CPU 130: Machine Check: 0 Bank 5: 8c00004000010091",
    "mce: [Hardware Error]: CPU 130: Machine Check: 0 Bank 5: 8c00004000010091",
    "EDAC MC3: 4 CE memory read error on CPU_SrcID#1_MC#1_Chan#0_DIMM#0 (channel:0 slot:0)",
    "Memory cgroup out of memory: Killed process 4712 (trainer) total-vm:9000kB",
    "INFO: task dd:99 blocked for more than 120 seconds.",
    "nvme 0000:c1:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
    "NVRM: Xid (PCI:0000:05:00): 45, pid=7, name=trainer, Ch 0000000a",
)


def write_files(root: str, files: dict[str, str]) -> None:
    """Write ``files`` (path: text) below ``root``, but none that another part of the host wrote already."""
    for path, text in files.items():
        real = os.path.join(root, path)
        if os.path.exists(real):
            continue
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with open(real, "w", encoding="utf-8") as file:
            file.write(text)


def _write_log(root: str, records: list[bytes]) -> None:
    write_files(root, {"dev/kmsg": b"".join(raw + b"\n" for raw in records).decode("ascii")})


def _process(pid: int, name: str, state: str, threads: int) -> str:
    return f"{pid} ({name}) {state} 2 0 0 0 -1 69238880 0 0 0 0 0 12 0 0 20 0 {threads} 0 {pid * 10} 0 0 1 0\n"


def write_system_vm_2cpu(root: str) -> None:
    """A small KVM guest that nobody keeps the time of; its log wrapped, and one record of it was written by a program."""
    write_files(
        root,
        {
            "proc/uptime": "86400.25 172000.00\n",
            "proc/loadavg": "0.10 0.20 0.30 1/164 4711\n",
            "proc/sys/kernel/random/boot_id": "11111111-2222-4333-8444-555555555555\n",
            "proc/sys/kernel/random/entropy_avail": "256\n",
            "proc/sys/kernel/tainted": "0\n",
            "proc/sys/kernel/pid_max": "32768\n",
            "proc/sys/kernel/threads-max": "16400\n",
            "proc/sys/kernel/osrelease": "6.1.0-25-amd64\n",
            "proc/sys/fs/file-nr": "1024\t0\t204800\n",
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme hypervisor\n\n",
            "sys/class/dmi/id/sys_vendor": "QEMU\n",
            "sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
            "sys/class/dmi/id/product_version": "pc-q35-7.2\n",
            "sys/class/dmi/id/product_serial": "Not Specified\n",
            "sys/bus/pci/devices/0000:00:01.0/class": "0x030000\n",
            "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n',
            "adjtimex": "state 5\nstatus 64\noffset 0\nfreq 0\nmaxerror 16000000\nesterror 16000000\ntai 0\n",
            "proc/1/stat": _process(1, "systemd", "S", 1),
            "proc/2/stat": _process(2, "kthreadd", "S", 1),
            "proc/15/stat": _process(15, "kworker/0:1", "I", 1),
            "proc/400/stat": _process(400, "a) R (b", "R", 3),
            "proc/401/stat": _process(401, "sh", "Z", 1),
        },
    )
    _write_log(
        root,
        [
            record("harmless", sequence=900, time_us=50_000_000),
            record("I/O error, dev vda, sector 8 op 0x1:(WRITE)", sequence=901, time_us=60_000_000),
            record("Kernel panic - not syncing: forged", sequence=902, time_us=61_000_000, facility=1),
            record("harmless", sequence=905, time_us=62_000_000),
        ],
    )


def write_system_bare_x86_256cpu(root: str) -> None:
    """Two sockets with an NVIDIA driver, kept by chrony, 299 processes, corrected PCIe errors on one NVMe."""
    files = {
        "proc/uptime": "8640000.50 2000000000.00\n",
        "proc/loadavg": "64.00 60.00 55.00 23/589 99999\n",
        "proc/sys/kernel/random/boot_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\n",
        "proc/sys/kernel/random/entropy_avail": "256\n",
        "proc/sys/kernel/tainted": "12289\n",
        "proc/sys/kernel/pid_max": "4194304\n",
        "proc/sys/kernel/threads-max": "58900\n",
        "proc/sys/kernel/osrelease": "6.8.0-45-generic\n",
        "proc/sys/fs/file-nr": "50000\t0\t9223372036854775807\n",
        "proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu vme\n\n",
        "sys/class/dmi/id/sys_vendor": "Example Systems\n",
        "sys/class/dmi/id/product_name": "X2 Server\n",
        "sys/class/dmi/id/product_version": "To Be Filled By O.E.M.\n",
        "sys/class/dmi/id/product_serial": "SERIAL-0001\n",
        "etc/os-release": 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nVERSION_ID="24.04"\n',
        "adjtimex": "state 0\nstatus 8193\noffset -41230\nfreq 1245184\nmaxerror 1820\nesterror 25\ntai 37\n",
    }
    for address, counters in (("0000:c1:00.0", (12, 1, 0)), ("0000:c2:00.0", (0, 0, 0)), ("0000:05:00.0", (3, 0, 2))):
        for name, total, count in zip(("correctable", "nonfatal", "fatal"), ("COR", "NONFATAL", "FATAL"), counters, strict=True):
            files[f"sys/bus/pci/devices/{address}/aer_dev_{name}"] = f"BadTLP {count}\nTOTAL_ERR_{total} {count}\n"
    files["sys/bus/pci/devices/0000:00:00.0/class"] = "0x060000\n"
    pid = 0
    for state, many, threads in _BARE_PROCESSES:
        for _ in range(many):
            pid += 1
            files[f"proc/{pid}/stat"] = _process(pid, "task", state, threads)
    write_files(root, files)
    _write_log(root, [record(text, sequence=n, time_us=n * 1_000_000) for n, text in enumerate(_BARE_LOG)])
