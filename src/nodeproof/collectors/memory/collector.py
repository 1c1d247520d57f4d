"""Component memory: use, swap, pressure and faults; see the modules ``memory_*`` beside this one for the rest of it."""

from typing import NamedTuple

from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.memory import cgroup, ecc, layout, modules
from nodeproof.collectors.services.ipmi import Ipmi
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import memory as catalogue
from nodeproof.model.metric import Labels
from nodeproof.sources import pressure, proc_buddyinfo, proc_meminfo, proc_vmstat
from nodeproof.sources.pressure import Stall
from nodeproof.sources.proc_meminfo import MemInfo
from nodeproof.units import BYTES_PER_MIB

__all__ = ["create"]

_MEMINFO = ("usage", "usage_detail", "swap_usage", "swap_detail", "breakdown", "commit_usage", "hardware_corrupted")
_VMSTAT = (
    "swap_in",
    "swap_out",
    "page_faults",
    "isolated_pages",
    "isolated_anon_pages",
    "isolated_file_pages",
    "free_pages",
    "oom_count",
    "allocation_stalls",
    "refaults",
)
_PRESSURE = ("saturation", "pressure", "pressure_stall_time")


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    groups = (
        Group(_MEMINFO, _Use(machine).read),
        Group(_VMSTAT, _Activity(machine).read),
        Group(_PRESSURE, _Pressure(machine).read),
        Group(("fragmentation",), _Fragmentation(machine).read, every_s=catalogue.ZONE_PERIOD_S),
        Group(("power",), _Power(machine).read, every_s=catalogue.POWER_PERIOD_S),
        *ecc.groups(machine),
        *layout.groups(machine),
        *cgroup.groups(machine),
        *modules.groups(machine),
    )
    return GroupCollector("memory", groups, machine, selection)


def _field(name: str) -> Labels:
    return {"field": name}


class _Use:
    """``/proc/meminfo``: how much there is and who has it."""

    _DETAIL = tuple(
        (_field(field), name)
        for field, name in (
            ("available", "MemAvailable"),
            ("free", "MemFree"),
            ("buffers", "Buffers"),
            ("cached", "Cached"),
            ("sreclaimable", "SReclaimable"),
            ("unevictable", "Unevictable"),
        )
    )
    _BREAKDOWN = tuple(
        (_field(field), name)
        for field, name in (
            ("anon", "AnonPages"),
            ("anon_huge_pages", "AnonHugePages"),
            ("mapped", "Mapped"),
            ("shmem", "Shmem"),
            ("mlocked", "Mlocked"),
            ("dirty", "Dirty"),
            ("writeback", "Writeback"),
            ("slab", "Slab"),
            ("slab_unreclaimable", "SUnreclaim"),
            ("kernel_stack", "KernelStack"),
            ("page_tables", "PageTables"),
            ("vmalloc_used", "VmallocUsed"),
            ("percpu", "Percpu"),
            ("hugetlb", "Hugetlb"),
            ("committed", "Committed_AS"),
            ("commit_limit", "CommitLimit"),
            ("balloon", "Balloon"),
            ("swap_cached", "SwapCached"),
            ("zswap", "Zswap"),
            ("zswapped", "Zswapped"),
        )
    )
    _MAY_EXCEED_TOTAL = frozenset({"Committed_AS", "CommitLimit", "Zswapped"})
    """Promises and compressed contents; whatever else exceeds MemTotal is a wrong number."""
    _TOTAL, _USED, _FREE = _field("total"), _field("used"), _field("free")

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        info = proc_meminfo.parse(self._files.read_kept("/proc/meminfo"))
        self._usage(cycle, info)
        self._swap(cycle, info)
        self._breakdown(cycle, info)
        self._commit(cycle, info)
        self._corrupted(cycle, info)

    def _usage(self, cycle: Cycle, info: MemInfo) -> None:
        try:
            total = _size(info, "MemTotal")
        except NoData as absence:
            cycle.miss_all(("usage", "usage_detail"), absence)
            return
        cycle.add("usage_detail", total / BYTES_PER_MIB, self._TOTAL)
        try:
            available = _size(info, "MemAvailable", limit=total)
        except NoData as absence:
            cycle.miss("usage", absence.state, absence.reason)
            cycle.miss("usage_detail", absence.state, absence.reason, self._USED)
        else:
            cycle.add("usage", round(100.0 * (total - available) / total, 2))
            cycle.add("usage_detail", (total - available) / BYTES_PER_MIB, self._USED)
        for labels, name in self._DETAIL:
            size = info.sizes_bytes.get(name)
            if size is not None:
                _part(cycle, "usage_detail", labels, size, total)

    def _swap(self, cycle: Cycle, info: MemInfo) -> None:
        try:
            total = _size(info, "SwapTotal", limit=_ANY)
            free = _size(info, "SwapFree", limit=total)
        except NoData as absence:
            cycle.miss_all(("swap_usage", "swap_detail"), absence)
            return
        # No swap is a state of the machine, known for certain: nothing of it is used.
        cycle.add("swap_usage", round(100.0 * (total - free) / total, 2) if total else 0.0)
        cycle.add("swap_detail", total / BYTES_PER_MIB, self._TOTAL)
        cycle.add("swap_detail", (total - free) / BYTES_PER_MIB, self._USED)
        cycle.add("swap_detail", free / BYTES_PER_MIB, self._FREE)

    def _breakdown(self, cycle: Cycle, info: MemInfo) -> None:
        if not cycle.wants("breakdown"):
            return
        total = info.sizes_bytes.get("MemTotal") or 0
        if not total:
            cycle.miss("breakdown", Absence.READ_ERROR, "/proc/meminfo has no MemTotal to judge the parts by")
            return
        for labels, name in self._BREAKDOWN:
            size = info.sizes_bytes.get(name)
            if size is None:
                continue  # names come and go with kernel versions and options
            _part(cycle, "breakdown", labels, size, size if name in self._MAY_EXCEED_TOTAL else total)

    @staticmethod
    def _commit(cycle: Cycle, info: MemInfo) -> None:
        committed, limit = info.sizes_bytes.get("Committed_AS"), info.sizes_bytes.get("CommitLimit")
        if committed is None or limit is None:
            cycle.miss("commit_usage", Absence.UNSUPPORTED, "/proc/meminfo has no Committed_AS or CommitLimit")
        elif limit == 0:
            cycle.miss("commit_usage", Absence.NOT_APPLICABLE, "the commit limit of this machine is 0 (vm.overcommit_ratio)")
        else:
            cycle.add("commit_usage", round(100.0 * committed / limit, 2))

    @staticmethod
    def _corrupted(cycle: Cycle, info: MemInfo) -> None:
        corrupted = info.sizes_bytes.get("HardwareCorrupted")
        if corrupted is None:
            cycle.miss(
                "hardware_corrupted", Absence.UNSUPPORTED, "this kernel does not count bad pages (CONFIG_MEMORY_FAILURE is off)"
            )
        else:
            cycle.add("hardware_corrupted", corrupted / BYTES_PER_MIB)


def _part(cycle: Cycle, metric: str, labels: Labels, size: int, limit: int) -> None:
    """A part of what there is in all; more than that is no reading."""
    if size > limit:
        cycle.miss(metric, Absence.UNKNOWN, _too_large(labels["field"], size, limit), labels)
    else:
        cycle.add(metric, size / BYTES_PER_MIB, labels)


_ANY = 1 << 64
"""More than any size that the parser lets through."""


def _size(info: MemInfo, name: str, limit: int | None = None) -> int:
    """Size ``name``, above 0 unless ``limit`` bounds it. Raises NoData."""
    size = info.sizes_bytes.get(name)
    if size is None:
        if name in info.rejected:
            raise NoData(Absence.UNKNOWN, f"{name} in /proc/meminfo is no plausible number")
        if name == "MemAvailable":
            raise NoData(Absence.UNSUPPORTED, "/proc/meminfo has no MemAvailable: the kernel is older than 3.14")
        raise NoData(Absence.READ_ERROR, f"/proc/meminfo has no {name}")
    if limit is None and size == 0:
        raise NoData(Absence.UNKNOWN, f"{name} in /proc/meminfo is 0")
    if limit is not None and size > limit:
        raise NoData(Absence.UNKNOWN, _too_large(name, size, limit))
    return size


def _too_large(name: str, size: int, limit: int) -> str:
    return f"{name} in /proc/meminfo ({size} bytes) is more than there is in all ({limit} bytes)"


class _Activity:
    """``/proc/vmstat``: what the memory management does; rates by the time measured between two readings."""

    _RATES: tuple[tuple[str, str, Labels | None], ...] = (
        ("swap_in", "swap_in", None),
        ("swap_out", "swap_out", None),
        ("minor", "page_faults", {"type": "minor"}),
        ("major", "page_faults", {"type": "major"}),
        ("stalls", "allocation_stalls", None),
        ("refault_anon", "refaults", {"type": "anon"}),
        ("refault_file", "refaults", {"type": "file"}),
    )
    """Our name of a counter, the metric that is its rate, and its labels."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._log = machine.shared(KernelLog)
        self._before: dict[str, int] = {}
        self._before_s = 0.0

    def read(self, cycle: Cycle) -> None:
        values = proc_vmstat.parse(self._files.read_kept("/proc/vmstat"))
        self._rates(cycle, _counters(values))
        self._pages(cycle, values)
        self._oom(cycle, values)

    def _rates(self, cycle: Cycle, counters: dict[str, int]) -> None:
        elapsed_s = cycle.at.mono_s - self._before_s
        for key, metric, labels in self._RATES:
            before, now = self._before.get(key), counters.get(key)
            if now is None:
                cycle.miss(metric, Absence.UNSUPPORTED, "this kernel's /proc/vmstat has no such counter", labels)
            elif before is None or elapsed_s <= 0:
                cycle.miss(metric, Absence.UNKNOWN, "needs a second reading of /proc/vmstat", labels)
            elif now < before:
                cycle.miss(metric, Absence.UNKNOWN, f"the counter stepped back from {before} to {now}", labels)
            else:
                cycle.add(metric, round((now - before) / elapsed_s, 2), labels)
        self._before, self._before_s = counters, cycle.at.mono_s

    @staticmethod
    def _pages(cycle: Cycle, values: dict[str, int]) -> None:
        anon, file = values.get("nr_isolated_anon"), values.get("nr_isolated_file")
        both = None if anon is None or file is None else anon + file
        for metric, pages in (
            ("isolated_pages", both),
            ("isolated_anon_pages", anon),
            ("isolated_file_pages", file),
            ("free_pages", values.get("nr_free_pages")),
        ):
            if pages is None:
                cycle.miss(metric, Absence.UNSUPPORTED, "this kernel's /proc/vmstat has no such number")
            else:
                cycle.add(metric, pages)

    def _oom(self, cycle: Cycle, values: dict[str, int]) -> None:
        """One a killed process, since boot: the kernel's own counter, or, before Linux 4.13, what its log tells."""
        if not cycle.wants("oom_count"):
            return
        kills = values.get("oom_kill")
        if kills is None:
            try:
                kills = self._log.counts().oom_kills
            except NoData as absence:
                cycle.miss("oom_count", absence.state, absence.reason, remedy=absence.remedy, source="/dev/kmsg")
                return
        cycle.add("oom_count", kills)


def _counters(values: dict[str, int]) -> dict[str, int]:
    """Counters that rates are made of, by our names; those the kernel does not have are left out."""
    counters = {ours: values[theirs] for ours, theirs in _RATED if theirs in values}
    if "pgfault" in values and "pgmajfault" in values:
        counters["minor"] = values["pgfault"] - values["pgmajfault"]
    stalls = [count for name, count in values.items() if name.startswith("allocstall")]
    if stalls:
        counters["stalls"] = sum(stalls)
    return counters


_RATED = (
    ("swap_in", "pswpin"),
    ("swap_out", "pswpout"),
    ("major", "pgmajfault"),
    ("refault_anon", "workingset_refault_anon"),
    ("refault_file", "workingset_refault_file"),
    ("refault_file", "workingset_refault"),  # before Linux 5.9 there was one counter, of file pages
)


class _Pressure:
    """``/proc/pressure/memory``: how long tasks stood still for want of memory."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        try:
            raw = self._files.read_kept("/proc/pressure/memory")
        except NoData as absence:
            remedy = absence.remedy or "boot a kernel with CONFIG_PSI and psi=1"
            raise NoData(absence.state, absence.reason, remedy=remedy) from None
        stalls = pressure.parse(raw)
        _stall(cycle, "saturation", _SOME, stalls.some)
        _stall(cycle, "pressure", _FULL, stalls.full)


class _StallLabels(NamedTuple):
    """Labels of one line."""

    averages: tuple[Labels, ...]
    time: Labels


_WINDOWS = ("avg10", "avg60", "avg300")
_SOME = _StallLabels(tuple({"interval": window} for window in _WINDOWS), {"stall": "some"})
_FULL = _StallLabels(tuple({"stall": "full", "interval": window} for window in _WINDOWS), {"stall": "full"})


def _stall(cycle: Cycle, metric: str, labels: _StallLabels, stall: Stall | None) -> None:
    if stall is None:
        reason = f"/proc/pressure/memory has no usable line {labels.time['stall']}"
        cycle.miss(metric, Absence.READ_ERROR, reason)
        cycle.miss("pressure_stall_time", Absence.READ_ERROR, reason, labels.time)
        return
    for window, share in zip(labels.averages, stall[:3], strict=True):
        cycle.add(metric, share, window)
    cycle.add("pressure_stall_time", stall.total_s, labels.time)


class _Fragmentation:
    """``/proc/buddyinfo``: the share of free memory that is single pages."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._labels: dict[tuple[str, str], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        for zone in proc_buddyinfo.parse(self._files.read("/proc/buddyinfo")):
            labels = self._labels.setdefault(zone[:2], {"node": zone.node, "zone": zone.zone})
            pages = zone.free_pages
            if pages:
                cycle.add("fragmentation", round(100.0 * zone.free_blocks[0] / pages, 2), labels)
            else:
                cycle.miss("fragmentation", Absence.NOT_APPLICABLE, "this zone has no free page now", labels)


class _Power:
    """Power drawn by memory, where the BMC has a sensor for it."""

    def __init__(self, machine: Machine) -> None:
        self._ipmi = machine.shared(Ipmi)
        self._labels: dict[str, Labels] = {}

    def read(self, cycle: Cycle) -> None:
        answer = self._ipmi.sensors()
        taken = cycle.as_of(answer.at)
        sensors = [sensor for sensor in answer.value if sensor.unit == "W" and _is_memory_power(sensor.name)]
        if not sensors:
            raise NoData(Absence.UNSUPPORTED, "the BMC has no sensor for the power of memory")
        for sensor in sensors:
            labels = self._labels.setdefault(sensor.name, {"sensor": sensor.name})
            if sensor.value is None:
                taken.miss("power", Absence.READ_ERROR, sensor.problem or f"status {sensor.status}", labels)
            else:
                taken.add("power", round(sensor.value, 2), labels)
        cycle.take(taken)


def _is_memory_power(name: str) -> bool:
    words = name.lower()
    return "mem" in words and ("pwr" in words or "power" in words)
