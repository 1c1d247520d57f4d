"""Tables and memory of the network stack that can run full: neighbours, tracked connections, sockets."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import is_foreign_namespace, net_root
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_net_sockstat, proc_net_stat

__all__ = ["Tables"]

_PERIOD_S = 15.0
_PAGE_BYTES = 4096
_SOCKETS: tuple[tuple[str, str, Labels], ...] = (
    ("sockets", "used", {"kind": "all"}),
    ("TCP", "inuse", {"kind": "tcp_in_use"}),
    ("TCP", "orphan", {"kind": "tcp_orphan"}),
    ("TCP", "tw", {"kind": "tcp_time_wait"}),
    ("TCP", "alloc", {"kind": "tcp_allocated"}),
    ("UDP", "inuse", {"kind": "udp_in_use"}),
)
_MEMORY: tuple[tuple[str, Labels], ...] = (("TCP", {"protocol": "tcp"}), ("UDP", {"protocol": "udp"}))
_NEIGHBOURS: tuple[tuple[str, str, Labels], ...] = (
    ("arp_cache", "/proc/sys/net/ipv4/neigh/default/gc_thresh3", {"family": "ipv4"}),
    ("ndisc_cache", "/proc/sys/net/ipv6/neigh/default/gc_thresh3", {"family": "ipv6"}),
)
_CONNTRACK: tuple[tuple[str, Labels], ...] = tuple(
    (name, {"type": name}) for name in ("insert_failed", "drop", "early_drop", "invalid")
)


class Tables:
    """How full they are, and what was lost because they were."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._root = net_root(machine.files)

    def groups(self) -> tuple[Group, ...]:
        """The groups of these sources."""
        return (
            Group(("sockets", "socket_memory", "tcp_memory_usage"), self._read_sockets, _PERIOD_S),
            Group(("neighbour_entries", "neighbour_usage", "neighbour_table_full"), self._read_neighbours, _PERIOD_S),
            Group(("conntrack_errors",), self._read_conntrack, _PERIOD_S),
        )

    def _read_sockets(self, cycle: Cycle) -> None:
        found = proc_net_sockstat.parse(self._files.read_kept(f"{self._root}/sockstat"))
        for protocol, name, labels in _SOCKETS:
            number = found.get(protocol, {}).get(name)
            if number is None:
                cycle.miss("sockets", Absence.UNSUPPORTED, f"this kernel does not count {name} of {protocol}", labels)
            else:
                cycle.add("sockets", number, labels)
        for protocol, labels in _MEMORY:
            pages = found.get(protocol, {}).get("mem")
            if pages is None:
                cycle.miss("socket_memory", Absence.UNSUPPORTED, f"this kernel does not count memory of {protocol}", labels)
            else:
                cycle.add("socket_memory", pages * _PAGE_BYTES, labels)
        self._usage(cycle, found.get("TCP", {}).get("mem"))

    def _usage(self, cycle: Cycle, pages: int | None) -> None:
        """TCP's memory against the last number of tcp_mem (tcp(7)): there the kernel drops what it receives."""
        if is_foreign_namespace(self._files):
            cycle.miss("tcp_memory_usage", Absence.UNSUPPORTED, "/proc/sys/net shows the network namespace of this container")
            return
        limits = self._files.read_text("/proc/sys/net/ipv4/tcp_mem").split()
        if pages is None or len(limits) != 3 or not limits[2].isdecimal() or int(limits[2]) == 0:
            cycle.miss("tcp_memory_usage", Absence.READ_ERROR, "/proc/sys/net/ipv4/tcp_mem or sockstat does not say how much")
        else:
            cycle.add("tcp_memory_usage", round(100.0 * pages / int(limits[2]), 2))

    def _read_neighbours(self, cycle: Cycle) -> None:
        for file, limit_file, labels in _NEIGHBOURS:
            try:
                table = proc_net_stat.parse(self._files.read_kept(f"{self._root}/stat/{file}"), file)
                entries = table.get("entries", 0)
                cycle.add("neighbour_entries", entries, labels)
                if "table_fulls" in table:
                    cycle.add("neighbour_table_full", table["table_fulls"], labels)
                else:
                    cycle.miss("neighbour_table_full", Absence.UNSUPPORTED, "this kernel does not count full tables", labels)
                limit = self._files.read_int(limit_file)
                if limit > 0:
                    cycle.add("neighbour_usage", round(100.0 * entries / limit, 2), labels)
            except NoData as absence:
                cycle.miss_all(("neighbour_entries", "neighbour_usage", "neighbour_table_full"), absence, labels)

    def _read_conntrack(self, cycle: Cycle) -> None:
        path = f"{self._root}/stat/nf_conntrack"
        if not self._files.exists(path):
            raise NoData(Absence.NOT_APPLICABLE, "connection tracking is not loaded")
        table = proc_net_stat.parse(self._files.read_kept(path), "nf_conntrack")
        for name, labels in _CONNTRACK:
            if name in table:
                cycle.add("conntrack_errors", table[name], labels)
