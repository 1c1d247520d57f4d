"""How the kernel lays memory out: NUMA nodes, huge pages, compressed swap. All of it changes slowly and is read slowly."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import memory as catalogue
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_meminfo, proc_vmstat, zram
from nodeproof.units import BYTES_PER_MIB

__all__ = ["groups"]

_NODES = "/sys/devices/system/node"
_HUGE = "/sys/kernel/mm/hugepages"
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_OVERCOMMIT = "/proc/sys/vm/overcommit_memory"
_THP_STATES = {"never": 0.0, "madvise": 1.0, "always": 2.0}
_OVERCOMMIT_POLICIES = ("heuristic", "always", "never")


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of slow kernel files."""
    return (
        Group(("numa_detail", "numa_allocations_total"), _Numa(machine).read, every_s=catalogue.NUMA_PERIOD_S),
        Group(("hugepages",), _HugePages(machine).read, every_s=catalogue.SETTING_PERIOD_S),
        Group(("transparent_hugepages",), _TransparentHugePages(machine).read, every_s=catalogue.SETTING_PERIOD_S),
        Group(("overcommit_policy",), _Overcommit(machine).read, every_s=catalogue.SETTING_PERIOD_S),
        Group(("zram_detail",), _Zram(machine).read, every_s=catalogue.ZRAM_PERIOD_S),
    )


class _Shared:
    """Labels made once."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._labels: dict[tuple[str, str], Labels] = {}

    def _label(self, key: str, name: str, other: str, value: str) -> Labels:
        return self._labels.setdefault((name, value), {key: name, other: value})


class _Numa(_Shared):
    """Each NUMA node: what it has, and whether allocations found their memory where they wanted it."""

    _SIZES = (("total", "MemTotal"), ("free", "MemFree"), ("used", "MemUsed"))
    _OUTCOMES = (
        ("hit", "numa_hit"),
        ("miss", "numa_miss"),
        ("foreign", "numa_foreign"),
        ("interleave_hit", "interleave_hit"),
        ("local", "local_node"),
        ("other", "other_node"),
    )

    def read(self, cycle: Cycle) -> None:
        nodes = [name[4:] for name in self._files.names(_NODES) if name.startswith("node") and name[4:].isdecimal()]
        if not nodes:
            raise NoData(Absence.UNSUPPORTED, f"{_NODES} shows no node: this kernel was built without NUMA")
        for node in sorted(nodes, key=int):
            self._sizes(cycle, node)
            self._outcomes(cycle, node)

    def _sizes(self, cycle: Cycle, node: str) -> None:
        path = f"{_NODES}/node{node}/meminfo"
        try:
            sizes = proc_meminfo.parse(self._files.read(path), path).sizes_bytes
        except (NoData, ParseError) as error:
            _miss(cycle, "numa_detail", error, {"node": node})
            return
        for field, name in self._SIZES:
            # A node without memory of its own has MemTotal 0; that is a fact about it.
            if name in sizes:
                cycle.add("numa_detail", sizes[name] / BYTES_PER_MIB, self._label("node", node, "field", field))

    def _outcomes(self, cycle: Cycle, node: str) -> None:
        path = f"{_NODES}/node{node}/numastat"
        try:
            counts = proc_vmstat.parse(self._files.read(path), path)
        except (NoData, ParseError) as error:
            _miss(cycle, "numa_allocations_total", error, {"node": node})
            return
        for outcome, name in self._OUTCOMES:
            if name in counts:
                cycle.add("numa_allocations_total", counts[name], self._label("node", node, "type", outcome))


class _HugePages(_Shared):
    """Pools of huge pages, by page size."""

    _FIELDS = (
        ("total", "nr_hugepages"),
        ("free", "free_hugepages"),
        ("reserved", "resv_hugepages"),
        ("surplus", "surplus_hugepages"),
    )

    def read(self, cycle: Cycle) -> None:
        pools = [name for name in self._files.names(_HUGE) if name.startswith("hugepages-")]
        if not pools:
            raise NoData(Absence.UNSUPPORTED, f"{_HUGE} shows no page size")
        for pool in pools:
            size = pool.removeprefix("hugepages-")
            for field, file in self._FIELDS:
                labels = self._label("size", size, "field", field)
                try:
                    cycle.add("hugepages", self._files.read_int(f"{_HUGE}/{pool}/{file}"), labels)
                except NoData as absence:
                    cycle.miss("hugepages", absence.state, absence.reason, labels, remedy=absence.remedy)


class _TransparentHugePages(_Shared):
    """Whether the kernel gives out huge pages by itself: ``always [madvise] never``."""

    def read(self, cycle: Cycle) -> None:
        text = self._files.read_text(_THP)
        state = text.partition("[")[2].partition("]")[0]
        if state not in _THP_STATES:
            raise ParseError(_THP, 1, text, "one of always, madvise, never in brackets")
        cycle.add("transparent_hugepages", _THP_STATES[state], self._labels.setdefault(("thp", state), {"state": state}))


class _Overcommit(_Shared):
    """How the kernel judges promises of memory: vm.overcommit_memory."""

    def read(self, cycle: Cycle) -> None:
        policy = self._files.read_int(_OVERCOMMIT)
        if not 0 <= policy < len(_OVERCOMMIT_POLICIES):
            raise NoData(Absence.READ_ERROR, f"{_OVERCOMMIT} holds {policy}, which is no policy we know")
        name = _OVERCOMMIT_POLICIES[policy]
        cycle.add("overcommit_policy", policy, self._labels.setdefault(("overcommit", name), {"policy": name}))


class _Zram(_Shared):
    """Compressed memory used as swap or disk."""

    def read(self, cycle: Cycle) -> None:
        try:
            names = [name for name in self._files.names("/sys/block") if name.startswith("zram")]
        except NoData:
            names = []
        used = [device for name in names if (device := self._device(cycle, name))]
        if not used:
            raise NoData(Absence.NOT_APPLICABLE, "no zram device is set up")

    def _device(self, cycle: Cycle, name: str) -> bool:
        folder = f"/sys/block/{name}"
        try:
            disk_bytes = self._files.read_int(f"{folder}/disksize")
            if disk_bytes == 0:
                return False
            state = zram.parse(self._files.read(f"{folder}/mm_stat"), f"{folder}/mm_stat")
        except (NoData, ParseError) as error:
            _miss(cycle, "zram_detail", error, {"device": name})
            return True
        for field, size_bytes in (
            ("disk", disk_bytes),
            ("original", state.original_bytes),
            ("compressed", state.compressed_bytes),
            ("used", state.used_bytes),
        ):
            cycle.add("zram_detail", size_bytes / BYTES_PER_MIB, self._label("device", name, "field", field))
        return True


def _miss(cycle: Cycle, metric: str, error: NoData | ParseError, labels: Labels) -> None:
    if isinstance(error, NoData):
        cycle.miss(metric, error.state, error.reason, labels, remedy=error.remedy)
    else:
        cycle.miss(metric, Absence.READ_ERROR, str(error), labels)
