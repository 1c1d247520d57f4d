"""What the processors are: sockets, dies, cores, NUMA nodes, caches, model, microcode. From sysfs, which speaks no language.

All of it is read again at a slow cadence: a source that failed once is tried again, and added hardware shows.
"""

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.cpu.siblings import listed, packages, parts, told
from nodeproof.collectors.services.platform import Platform
from nodeproof.collectors.services.smbios import Smbios
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import cpu_list, cpu_vulnerability, proc_buddyinfo, proc_cpuinfo, sys_cpu_cache
from nodeproof.sources.proc_cpuinfo import CpuInfo

__all__ = ["CACHES", "MICROCODE", "MODEL", "NODES", "SMT", "TOPOLOGY", "VULNERABILITIES", "ZONES", "Topology"]

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"

TOPOLOGY = ("core_num", "cpu_num", "die_core_num")
MODEL = ("model_info",)
NODES = ("numa_node_num", "numa_core_num")
CACHES = ("l1d_cache_size", "l1i_cache_size", "l2_cache_size", "l3_cache_size")
SMT = ("smt_active",)
ZONES = ("numa_order_num", "numa_info")
MICROCODE = ("microcode_info",)
VULNERABILITIES = ("vulnerability",)


class Topology:
    """Reads everything about the processors that does not change while they run."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._smbios = machine.shared(Smbios)

    def counts(self, cycle: Cycle) -> None:
        """Logical processors, sockets, and cores of each die of the first socket."""
        cycle.add("core_num", len(listed(self._files, f"{_CPU}/present")))
        sockets = packages(self._files)
        cycle.add("cpu_num", len(sockets))
        if cycle.wants("die_core_num"):
            for number, die in enumerate(parts(self._files, sockets[0], "die")):
                cycle.add("die_core_num", len(parts(self._files, die, "core")), {"die": str(number)})

    def model(self, cycle: Cycle) -> None:
        """Name of the processor, and the cores of a socket as its value."""
        info = self._platform.cpuinfo
        if info is None:
            raise NoData(Absence.READ_ERROR, "/proc/cpuinfo could not be read")
        name = self._model_name(info)
        if not name:
            raise NoData(Absence.UNSUPPORTED, "neither /proc/cpuinfo nor SMBIOS names the processor")
        labels = {"model_name": name}
        cache_size = info.cache_size or self._last_cache()
        if cache_size:
            labels["cache_size"] = cache_size
        cores = info.cores_per_socket or len(parts(self._files, packages(self._files)[0], "core"))
        cycle.add("model_info", cores, labels)

    def nodes(self, cycle: Cycle) -> None:
        """NUMA nodes, and the processors of each: nodes differ, and those of accelerators or expanders have none."""
        nodes = listed(self._files, f"{_NODE}/online")
        cycle.add("numa_node_num", len(nodes))
        for node in nodes:
            labels = {"node": str(node)}
            path = f"{_NODE}/node{node}/cpulist"
            with told(cycle, "numa_core_num", labels):
                cycle.add("numa_core_num", len(cpu_list.parse(self._files.read(path), path)), labels)

    def caches(self, cycle: Cycle) -> None:
        """Caches that the first processor uses."""
        core = str(listed(self._files, f"{_CPU}/online")[0])
        folder = f"{_CPU}/cpu{core}/cache"
        labels = {"core": core}
        found: set[str] = set()
        for index in self._indexes(folder):
            base = f"{folder}/{index}"
            try:
                kind = sys_cpu_cache.kind(self._files.read(f"{base}/level"), self._files.read(f"{base}/type"))
            except NoData:
                continue
            name = f"{kind}_cache_size"
            if kind and name not in found:
                found.add(name)
                with told(cycle, name, labels):
                    cycle.add(name, sys_cpu_cache.parse_size_kib(self._files.read(f"{base}/size"), f"{base}/size"), labels)
        unseen = NoData(Absence.UNSUPPORTED, f"{folder} shows no such cache; the firmware does not describe it")
        cycle.miss_all((name for name in CACHES if name not in found), unseen, labels)

    def smt(self, cycle: Cycle) -> None:
        """Whether cores run several threads."""
        active = self._files.read_int(f"{_CPU}/smt/active")
        cycle.add("smt_active", 1 if active else 0, {"control": self._files.read_text(f"{_CPU}/smt/control")})

    def zones(self, cycle: Cycle) -> None:
        """Free blocks of the page allocator by node and zone."""
        zones = proc_buddyinfo.parse(self._files.read("/proc/buddyinfo"))
        for zone in zones:
            labels = {"node": zone.node, "zone": zone.zone}
            cycle.add("numa_order_num", len(zone.free_blocks), labels)
            highest = next((order for order in range(len(zone.free_blocks) - 1, -1, -1) if zone.free_blocks[order]), None)
            if highest is None:
                cycle.miss("numa_info", Absence.UNKNOWN, "the zone has no free block of any order", labels)
            else:
                cycle.add("numa_info", highest, labels)

    def microcode(self, cycle: Cycle) -> None:
        """Microcode versions in use. Read anew each time: an administrator can load one into a running machine."""
        info = proc_cpuinfo.parse(self._files.read("/proc/cpuinfo"))
        if not info.microcodes:
            raise NoData(Absence.NOT_APPLICABLE, f"processors of {info.architecture or 'this kind'} state no microcode version")
        for version in info.microcodes:
            cycle.add("microcode_info", 1, {"version": version})

    def vulnerabilities(self, cycle: Cycle) -> None:
        """The kernel's view of known flaws."""
        for name in self._files.names(f"{_CPU}/vulnerabilities"):
            path = f"{_CPU}/vulnerabilities/{name}"
            with told(cycle, "vulnerability", {"vulnerability": name}):
                raw = self._files.read(path)
                detail = raw.decode("utf-8", "replace").strip()
                cycle.add("vulnerability", cpu_vulnerability.parse(raw, path), {"vulnerability": name, "detail": detail})

    def _model_name(self, info: CpuInfo) -> str:
        """As the processor says; where it has no name of its own (arm64), as the firmware says, else by its numbers."""
        if info.arm_parts:
            try:
                named = next(
                    (socket.version for socket in self._smbios.tables().processors if socket.populated and socket.version), ""
                )
            except NoData:
                named = ""
            return named or info.model_name
        return info.model_name

    def _last_cache(self) -> str:
        """Size of the highest cache of the first processor, in the words of ``/proc/cpuinfo``; empty where none is shown."""
        folder = f"{_CPU}/cpu0/cache"
        try:
            base = f"{folder}/{self._indexes(folder)[-1]}"
            return f"{sys_cpu_cache.parse_size_kib(self._files.read(f'{base}/size'), base)} KB"
        except (NoData, ParseError):
            return ""

    def _indexes(self, folder: str) -> list[str]:
        indexes = [name for name in self._files.names(folder) if name.startswith("index")]
        if not indexes:
            raise NoData(Absence.UNSUPPORTED, f"{folder} shows no cache; the firmware does not describe them")
        return indexes
