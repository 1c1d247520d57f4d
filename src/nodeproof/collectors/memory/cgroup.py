"""Limits of memory that a container, a service or a batch job puts on us, each named by the file it stands in."""

from typing import NamedTuple

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.cgroup import Cgroup, Cgroups
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import memory as catalogue
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_cgroup, proc_vmstat
from nodeproof.units import BYTES_PER_MIB

__all__ = ["groups"]

_NAMES = ("cgroup_limit", "cgroup_usage", "cgroup_detail", "cgroup_oom_kills")


class _Layout(NamedTuple):
    """Names of the files in one version of cgroups."""

    limit: str
    current: str
    stat: str
    inactive_file: str
    """Page cache that goes first when memory is short; nobody suffers for it."""
    swap_limit: str
    swap_current: str
    swap_with_memory: bool
    """The swap files count memory and swap together."""
    events: str


_LAYOUTS = {
    1: _Layout(
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.stat",
        "total_inactive_file",
        "memory.memsw.limit_in_bytes",
        "memory.memsw.usage_in_bytes",
        swap_with_memory=True,
        events="memory.oom_control",
    ),
    2: _Layout(
        "memory.max",
        "memory.current",
        "memory.stat",
        "inactive_file",
        "memory.swap.max",
        "memory.swap.current",
        swap_with_memory=False,
        events="memory.events",
    ),
}


def groups(machine: Machine) -> tuple[Group, ...]:
    """The one group of cgroups."""
    return (Group(_NAMES, _Limits(machine).read, every_s=catalogue.CGROUP_PERIOD_S),)


class _Limits:
    """Every cgroup that holds this process and limits its memory."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._cgroups = machine.shared(Cgroups)
        self._labels: dict[tuple[str, str], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        limited = False
        for cgroup in self._cgroups.holding("memory"):
            try:
                limit = self._amount(cgroup, _LAYOUTS[cgroup.version].limit)
            except (NoData, ParseError) as error:
                if isinstance(error, NoData) and error.state is Absence.UNSUPPORTED:
                    continue  # the root of the tree has no limit file, and neither has a cgroup without this controller
                absence = error if isinstance(error, NoData) else NoData(Absence.READ_ERROR, str(error))
                cycle.miss_all(_NAMES, absence, self._label(cgroup))
                limited = True
                continue
            if limit is not None:
                limited = True
                self._limited(cycle, cgroup, limit)
        if not limited:
            raise NoData(Absence.NOT_APPLICABLE, "no cgroup limits the memory of this process")

    def _limited(self, cycle: Cycle, cgroup: Cgroup, limit: int) -> None:
        layout, labels = _LAYOUTS[cgroup.version], self._label(cgroup)
        source = f"{cgroup.folder}/{layout.limit}"
        cycle.add("cgroup_limit", limit / BYTES_PER_MIB, self._label(cgroup, "source", source))
        self._use(cycle, cgroup, layout, limit)
        self._swap(cycle, cgroup, layout, limit)
        try:
            events = self._counts(cgroup, layout.events)
        except (NoData, ParseError) as error:
            state = error.state if isinstance(error, NoData) else Absence.READ_ERROR
            cycle.miss("cgroup_oom_kills", state, str(error), labels)
            return
        if "oom_kill" in events:
            cycle.add("cgroup_oom_kills", events["oom_kill"], labels)
        else:
            cycle.miss(
                "cgroup_oom_kills", Absence.UNSUPPORTED, f"{cgroup.folder}/{layout.events} has no oom_kill (Linux 4.13)", labels
            )

    def _use(self, cycle: Cycle, cgroup: Cgroup, layout: _Layout, limit: int) -> None:
        labels = self._label(cgroup)
        try:
            current = self._amount(cgroup, layout.current)
            inactive = self._counts(cgroup, layout.stat).get(layout.inactive_file)
        except (NoData, ParseError) as error:
            state = error.state if isinstance(error, NoData) else Absence.READ_ERROR
            cycle.miss_all(("cgroup_usage", "cgroup_detail"), NoData(state, str(error)), labels)
            return
        if current is None or inactive is None:
            reason = f"{cgroup.folder} does not tell use and {layout.inactive_file}"
            cycle.miss_all(("cgroup_usage", "cgroup_detail"), NoData(Absence.UNSUPPORTED, reason), labels)
            return
        # Both numbers are sampled at different moments and the kernel batches them: the difference may dip below 0.
        working_set = max(0, current - inactive)
        cycle.add("cgroup_usage", round(100.0 * working_set / limit, 2) if limit else 100.0, labels)
        cycle.add("cgroup_detail", current / BYTES_PER_MIB, self._label(cgroup, "field", "current"))
        cycle.add("cgroup_detail", working_set / BYTES_PER_MIB, self._label(cgroup, "field", "working_set"))

    def _swap(self, cycle: Cycle, cgroup: Cgroup, layout: _Layout, limit: int) -> None:
        try:
            swap_limit, swap = self._amount(cgroup, layout.swap_limit), self._amount(cgroup, layout.swap_current)
            memory = self._amount(cgroup, layout.current) or 0
        except (NoData, ParseError):
            return  # without swap accounting the files are not there; swap of the whole machine is told elsewhere
        if layout.swap_with_memory:
            swap = None if swap is None else max(0, swap - memory)
            swap_limit = None if swap_limit is None else max(0, swap_limit - limit)
        for field, amount in (("swap", swap), ("swap_limit", swap_limit)):
            if amount is not None:
                cycle.add("cgroup_detail", amount / BYTES_PER_MIB, self._label(cgroup, "field", field))

    def _amount(self, cgroup: Cgroup, file: str) -> int | None:
        path = f"{cgroup.folder}/{file}"
        return proc_cgroup.parse_limit(self._files.read(path), path)

    def _counts(self, cgroup: Cgroup, file: str) -> dict[str, int]:
        path = f"{cgroup.folder}/{file}"
        return proc_vmstat.parse(self._files.read(path), path)

    def _label(self, cgroup: Cgroup, key: str = "", value: str = "") -> Labels:
        labels = {"cgroup": cgroup.name, key: value} if key else {"cgroup": cgroup.name}
        return self._labels.setdefault((cgroup.name, f"{key}={value}"), labels)
