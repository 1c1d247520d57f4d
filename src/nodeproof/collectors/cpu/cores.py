"""Which logical processors there are, which may be used, and how long tasks wait for them."""

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.cpu.siblings import told
from nodeproof.collectors.services.cgroup import Cgroup, Cgroups
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import cgroup_cpu, cpu_list, pressure, proc_self_status

__all__ = ["CORES", "LIMITS", "PRESSURE", "Cores", "Limits", "Stalls"]

_CPU = "/sys/devices/system/cpu"

CORES = ("online_core_num", "offline_core_num", "isolated_core_num")
"""Metrics of :class:`Cores`."""
LIMITS = ("allowed_core_num", "cgroup_limit_cores")
"""Metrics of :class:`Limits`."""
PRESSURE = ("pressure", "pressure_stall_time")
"""Metrics of :class:`Stalls`."""


class Cores:
    """Counts of ``/sys/devices/system/cpu/{online,offline,isolated}``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        """Read the lists. A list that cannot be read leaves its own count out, never 0."""
        counts = (("online_core_num", self._online), ("offline_core_num", self._offline), ("isolated_core_num", self._isolated))
        for name, count in counts:
            with told(cycle, name):
                cycle.add(name, count())

    def _list(self, item: str) -> list[int]:
        return cpu_list.parse(self._files.read(f"{_CPU}/{item}"), f"{_CPU}/{item}")

    def _online(self) -> int:
        online = len(self._list("online"))
        if not online:
            raise NoData(Absence.READ_ERROR, f"{_CPU}/online is empty, though a processor runs this")
        return online

    def _offline(self) -> int:
        """Present ones only: the kernel also lists every empty place that the firmware has foreseen."""
        offline = self._list("offline")
        return len(set(offline).intersection(self._list("present"))) if offline else 0

    def _isolated(self) -> int:
        return len(self._list("isolated"))


class Limits:
    """What this process, and with it its container, may use."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._cgroups = machine.shared(Cgroups)
        self._labels: dict[str, Labels] = {}

    def read(self, cycle: Cycle) -> None:
        """Read the affinity and the quotas on the way from our control group up to the root."""
        with told(cycle, "cgroup_limit_cores"):
            self._quota(cycle)
        cycle.add("allowed_core_num", len(proc_self_status.parse_allowed_cpus(self._files.read("/proc/self/status"))))

    def _quota(self, cycle: Cycle) -> None:
        quotas: list[tuple[float, str]] = []
        groups = self._cgroups.holding("cpu")
        for group in groups:
            cores, path = self._of(group)
            if cores is not None:
                quotas.append((cores, path))
        if not quotas:
            raise NoData(Absence.NOT_APPLICABLE, f"no processor quota is set from {groups[0].folder} upwards")
        cores, path = min(quotas)
        if path not in self._labels:
            self._labels = {path: {"source": path}}
        cycle.add("cgroup_limit_cores", round(cores, 3), self._labels[path])

    def _of(self, group: Cgroup) -> tuple[float | None, str]:
        """Quota of one group; the root and groups without the controller have no file, and so no quota."""
        path = f"{group.folder}/{'cpu.max' if group.version == 2 else 'cpu.cfs_quota_us'}"
        try:
            raw = self._files.read(path)
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:
                return None, path
            raise
        if group.version == 2:
            return cgroup_cpu.parse_max(raw, path), path
        return cgroup_cpu.parse_quota(raw, self._files.read(f"{group.folder}/cpu.cfs_period_us"), path), path


_STALLS: tuple[tuple[str, Labels, tuple[Labels, Labels, Labels]], ...] = tuple(
    (
        stall,
        {"stall": stall},
        (
            {"stall": stall, "interval": "avg10"},
            {"stall": stall, "interval": "avg60"},
            {"stall": stall, "interval": "avg300"},
        ),
    )
    for stall in ("some", "full")
)


class Stalls:
    """``/proc/pressure/cpu``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        """Read both lines; kernels before 5.13 have the first only."""
        try:
            lines = pressure.parse(self._files.read_kept("/proc/pressure/cpu"))
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            raise NoData(
                absence.state, absence.reason, remedy="boot with psi=1 on a kernel of 4.20 or newer built with CONFIG_PSI"
            ) from None
        for stall, total_labels, average_labels in _STALLS:
            line = lines.some if stall == "some" else lines.full
            if line is None:
                reason = f"/proc/pressure/cpu has no usable line {stall}"
                cycle.miss_all(PRESSURE, NoData(Absence.UNSUPPORTED, reason), total_labels)
                continue
            for labels, value in zip(average_labels, line[:3], strict=True):
                cycle.add("pressure", value, labels)
            cycle.add("pressure_stall_time", line.total_s, total_labels)
