"""Processor part of made-up hosts. Every number follows from the few named here, so that readings can be worked out by hand.

* ``bare-x86-256cpu``: two AMD EPYC 7763, 64 cores and 128 threads each, eight NUMA nodes, acpi-cpufreq, k10temp, RAPL.
* ``bare-x86-intel``: two Intel sockets of two cores and four threads, coretemp, throttle counters, thread 7 offline.
* ``aarch64-kunpeng``: two Kunpeng 920 of 64 cores, four NUMA nodes, no model name, no frequency control, no sensors.
"""

from collections.abc import Mapping, Sequence

from support.tree import link, write, write_all

__all__ = [
    "amd_stat",
    "write_amd_cpu",
    "write_intel_cpu",
    "write_kunpeng_cpu",
]

_CPU = "/sys/devices/system/cpu"
_XEON = "Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz"
_KUNPENG = """BogoMIPS\t: 200.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma dcpop
CPU implementer\t: 0x48
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd01
CPU revision\t: 0
"""


def _stat(rows: Sequence[tuple[int, ...]], tail: dict[str, str]) -> str:
    """``/proc/stat`` of ``rows``, ten columns a processor; the first line is their sum, as in the kernel."""
    total = tuple(map(sum, zip(*rows, strict=True)))
    lines = ["cpu  " + " ".join(map(str, total))]
    lines += [f"cpu{cpu} " + " ".join(map(str, row)) for cpu, row in enumerate(rows)]
    lines += [f"{name} {value}" for name, value in tail.items()]
    return "\n".join(lines) + "\n"


def amd_stat(seconds: int, cpus: int = 256) -> str:
    """``/proc/stat`` of the large host, or of a smaller one like it, so many seconds after the first reading.

    Each second processor c spends c % 50 ticks in user mode (all of it also counted as guest), 10 in the kernel and 5 waiting for
    I/O; the rest of 100 it is idle.
    """
    rows = [
        (
            100_000 + 100 * cpu + cpu % 50 * seconds,
            0,
            50_000 + 10 * cpu + 10 * seconds,
            9_000_000 + (85 - cpu % 50) * seconds,
            cpu + 5 * seconds,
            0,
            7,
            0,
            100_000 + 100 * cpu + cpu % 50 * seconds,
            0,
        )
        for cpu in range(cpus)
    ]
    tail = {
        "intr": f"{5_000_000_000 + 40_000 * seconds} " + " ".join(["0"] * 2000),
        "ctxt": f"{9_000_000_000 + 120_000 * seconds}",
        "btime": "1789000000",
        "processes": f"{800_000 + 25 * seconds}",
        "procs_running": "97",
        "procs_blocked": "3",
        "softirq": f"{700_000_000 + 9_000 * seconds} 1 2 3 4 5 6 7 8 9 10",
    }
    return _stat(rows, tail)


def _flags(vendor: str) -> str:
    return "fpu vme de pse tsc msr pae mce cx8 apic mtrr pge mca cmov clflush mmx fxsr sse sse2 ht syscall nx aperfmperf" + (
        " topoext svm" if vendor == "AuthenticAMD" else " dts acpi pbe vmx"
    )


def _x86_cpuinfo(cpus: int, vendor: str, model: str, *, microcode: str, cache: str, cores: int) -> str:
    return "\n".join(
        f"processor\t: {cpu}\nvendor_id\t: {vendor}\nmodel name\t: {model}\nmicrocode\t: {microcode}\ncpu MHz\t\t: 2450.000\n"
        f"cache size\t: {cache}\ncpu cores\t: {cores}\nflags\t\t: {_flags(vendor)}\n"
        for cpu in range(cpus)
    )


def _topology(root: str, cpu: int, package: int, core: int, lists: Mapping[str, str]) -> None:
    folder = f"{_CPU}/cpu{cpu}/topology"
    write_all(root, folder, {"physical_package_id": package, "core_id": core, "die_id": 0, **lists})


def _caches(root: str, cpu: int, sizes: tuple[str, str, str, str]) -> None:
    kinds = (("1", "Data"), ("1", "Instruction"), ("2", "Unified"), ("3", "Unified"))
    for index, ((level, kind), size) in enumerate(zip(kinds, sizes, strict=True)):
        write_all(root, f"{_CPU}/cpu{cpu}/cache/index{index}", {"level": level, "type": kind, "size": size})


def _lists(root: str, *, present: str, online: str, offline: str, isolated: str, nodes: dict[int, str]) -> None:
    write_all(
        root,
        _CPU,
        {"present": present, "possible": present, "online": online, "offline": offline or "\n", "isolated": isolated or "\n"},
    )
    write(root, "/sys/devices/system/node/online", f"0-{len(nodes) - 1}")
    for node, cpus in nodes.items():
        write(root, f"/sys/devices/system/node/node{node}/cpulist", cpus)


def _status(root: str, allowed: str) -> None:
    write(
        root,
        "/proc/self/status",
        f"Name:\tnodeproof\nState:\tR (running)\nCpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0\n",
    )


def _frequency(root: str, cpu: int, khz: Mapping[str, int], driver: str, governor: str) -> None:
    write_all(root, f"{_CPU}/cpu{cpu}/cpufreq", {**khz, "scaling_driver": driver, "scaling_governor": governor})


def _hwmon(root: str, number: int, name: str, device: str, files: Mapping[str, str | int]) -> None:
    folder = f"/sys/class/hwmon/hwmon{number}"
    write_all(root, folder, {"name": name, **files})
    link(root, f"{folder}/device", f"../../../{device}")


def _energy(root: str, folder: str, name: str, energy_uj: int, range_uj: int) -> None:
    write_all(
        root,
        f"/sys/class/powercap/{folder}",
        {"name": name, "energy_uj": energy_uj, "max_energy_range_uj": range_uj, "enabled": 0},
    )


def _threads(first: int, count: int, cores: int) -> str:
    """CPU list of both threads of ``count`` cores."""
    return f"{first}-{first + count - 1},{first + cores}-{first + cores + count - 1}"


def write_amd_cpu(root: str, cpus: int = 256) -> None:
    """Processor files of ``bare-x86-256cpu``. Threads c and c + 128 share a core; cores 0-63 are socket 0, 64-127 socket 1.

    With another number of ``cpus`` a smaller host like it: up to 64 threads in one socket, a NUMA node for each 32.
    """
    cores, sockets = cpus // 2, 2 if cpus > 64 else 1
    of_socket, nodes = cores // sockets, max(1, cpus // 32)
    of_node = cores // nodes
    write(root, "/proc/stat", amd_stat(0, cpus))
    write(root, "/proc/loadavg", "96.40 88.12 70.05 97/4211 912345")
    write(
        root,
        "/proc/pressure/cpu",
        "some avg10=4.50 avg60=3.25 avg300=1.10 total=987654321\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0",
    )
    model = "AMD EPYC 7763 64-Core Processor"
    write(
        root, "/proc/cpuinfo", _x86_cpuinfo(cpus, "AuthenticAMD", model, microcode="0xa0011d5", cache="512 KB", cores=of_socket)
    )
    _status(root, f"0-{cpus - 1}")
    _lists(
        root,
        present=f"0-{cpus - 1}",
        online=f"0-{cpus - 1}",
        offline="",
        isolated="64-67,192-195" if cpus == 256 else "",
        nodes={node: _threads(of_node * node, of_node, cores) for node in range(nodes)},
    )
    for cpu in range(cpus):
        core = cpu % cores
        package = core // of_socket
        of_package = _threads(of_socket * package, of_socket, cores)
        of_core = f"{core},{core + cores}"
        lists = {"package_cpus_list": of_package, "die_cpus_list": of_package, "core_cpus_list": of_core}
        _topology(root, cpu, package, core % of_socket, lists)
        _caches(root, cpu, ("32K", "32K", "512K", "32768K"))
        khz = {
            "scaling_cur_freq": 2_450_000 + 1000 * cpu,
            "scaling_max_freq": 2_000_000 if cpu == 200 else 3_529_052,
            "cpuinfo_min_freq": 1_500_000,
            "cpuinfo_max_freq": 3_529_052,
        }
        _frequency(root, cpu, khz, "acpi-cpufreq", "powersave" if cpu < 4 else "performance")
    write(root, f"{_CPU}/cpufreq/boost", 1)
    write_all(root, f"{_CPU}/smt", {"active": 1, "control": "on"})
    write_all(
        root,
        f"{_CPU}/vulnerabilities",
        {
            "meltdown": "Not affected",
            "retbleed": "Mitigation: untrained return thunk; SMT vulnerable",
            "srso": "Vulnerable: No microcode",
        },
    )
    _hwmon(root, 0, "nvme", "nvme0", {"temp1_input": 38_850, "temp1_label": "Composite"})
    _hwmon(
        root,
        1,
        "k10temp",
        "0000:00:18.3",
        {"temp1_input": 62_500, "temp1_label": "Tctl", "temp3_input": 58_250, "temp3_label": "Tccd1"},
    )
    _hwmon(
        root,
        2,
        "k10temp",
        "0000:00:19.3",
        {"temp1_input": 71_125, "temp1_label": "Tctl", "temp3_input": 66_000, "temp3_label": "Tccd1"},
    )
    for package in range(2):
        _energy(root, f"intel-rapl:{package}", f"package-{package}", 65_000_000_000, 65_532_610_987)
        _energy(root, f"intel-rapl:{package}:0", "core", 1_000_000_000, 65_532_610_987)
    write_all(root, "/sys/class/dmi/id", {"sys_vendor": "Supermicro", "product_name": "AS -2124BT-HNTR"})


def write_intel_cpu(root: str) -> None:
    """Processor files of ``bare-x86-intel``: cores 0 and 1 are socket 0, 2 and 3 socket 1, threads 4-7 their second ones."""
    row = (1000, 10, 500, 90_000, 50, 0, 20, 0, 0, 0)
    write(root, "/proc/stat", _stat([row] * 7, {"ctxt": "1000000", "btime": "1789000000"}))
    write(root, "/proc/loadavg", "1.50 1.25 1.00 3/410 4242")
    write(
        root,
        "/proc/cpuinfo",
        _x86_cpuinfo(7, "GenuineIntel", _XEON, microcode="0x2007006", cache="16896 KB", cores=2),
    )
    _status(root, "0-6")
    _lists(root, present="0-7", online="0-6", offline="7-15", isolated="", nodes={0: "0-1,4-5", 1: "2-3,6"})
    for cpu in range(7):
        core, package = cpu % 4, cpu % 4 // 2
        of_core = str(core) if core == 3 else f"{core},{core + 4}"
        of_package = "2-3,6" if package else "0-1,4-5"
        lists = {"package_cpus_list": of_package, "die_cpus_list": of_package, "core_cpus_list": of_core}
        _topology(root, cpu, package, core % 2, lists)
        _caches(root, cpu, ("32K", "32K", "1024K", "16896K"))
        khz = {
            "scaling_cur_freq": 3_600_000,
            "scaling_max_freq": 3_700_000,
            "cpuinfo_min_freq": 1_200_000,
            "cpuinfo_max_freq": 3_700_000,
        }
        _frequency(root, cpu, khz, "intel_pstate", "powersave")
        counters = {"core_throttle_count": 10 * (core + 1), "core_throttle_total_time_ms": 100 * (core + 1)}
        write_all(
            root,
            f"{_CPU}/cpu{cpu}/thermal_throttle",
            counters | {"package_throttle_count": 7 + package, "package_throttle_total_time_ms": 70},
        )
    write(root, f"{_CPU}/intel_pstate/no_turbo", 1)
    write_all(root, f"{_CPU}/smt", {"active": 1, "control": "on"})
    for package in range(2):
        files: dict[str, str | int] = {
            "temp1_input": 55_000 + 1000 * package,
            "temp1_label": f"Package id {package}",
            "temp1_crit": 100_000,
            "temp1_crit_alarm": 0,
            "temp2_input": 51_000,
            "temp2_label": "Core 0",
            "temp3_input": 53_000,
            "temp3_label": "Core 1",
        }
        _hwmon(root, package, "coretemp", f"coretemp.{package}", files)
        _energy(root, f"intel-rapl:{package}", f"package-{package}", 262_143_000_000 * package, 262_143_328_850)
        _energy(root, f"intel-rapl:{package}:0", "dram", 1_000_000, 65_712_999_613)
    _energy(root, "intel-rapl-mmio:0", "package-0", 5, 262_143_328_850)
    _hwmon(root, 2, "jc42", "0-0018", {"temp1_input": 41_250, "temp1_max": 85_000})
    _hwmon(root, 3, "nct6779", "nct6775.656", {"temp1_input": 127_000, "temp1_label": "CPUTIN"})
    write_all(root, "/sys/class/dmi/id", {"sys_vendor": "Dell Inc.", "product_name": "PowerEdge R640"})


def write_kunpeng_cpu(root: str) -> None:
    """Processor files of ``aarch64-kunpeng``; packages have the odd numbers that early firmware gives them."""
    rows = [(20_000 + cpu, 0, 4_000, 700_000, 10, 0, 5, 0, 0, 0) for cpu in range(128)]
    write(
        root,
        "/proc/stat",
        _stat(rows, {"intr": "88 0", "ctxt": "777", "btime": "1789000000", "processes": "900", "procs_blocked": "0"}),
    )
    write(root, "/proc/loadavg", "12.00 11.50 10.25 13/1890 77123")
    write(root, "/proc/pressure/cpu", "some avg10=0.25 avg60=0.50 avg300=0.75 total=2500000")
    write(root, "/proc/cpuinfo", "\n".join(f"processor\t: {cpu}\n{_KUNPENG}" for cpu in range(128)))
    _status(root, "0-127")
    nodes = {node: f"{32 * node}-{32 * node + 31}" for node in range(4)}
    _lists(root, present="0-127", online="0-127", offline="", isolated="", nodes=nodes)
    for cpu in range(128):
        package = cpu // 64
        of_package = f"{64 * package}-{64 * package + 63}"
        lists = {"package_cpus_list": of_package, "die_cpus_list": of_package, "core_cpus_list": str(cpu)}
        _topology(root, cpu, 3180 if package else 36, cpu % 64, lists)
    _caches(root, 0, ("64K", "64K", "512K", "32M"))
    write_all(root, f"{_CPU}/smt", {"active": 0, "control": "notimplemented"})
