"""The network stack's own counters: TCP repetition, full listeners, lost datagrams, full backlogs, the firewall's table."""

from collections.abc import Iterable, Mapping

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import LINK_PERIOD_S, Rate, is_foreign_namespace, net_root
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_net_snmp, proc_net_softnet

__all__ = ["Stack"]

_PERIOD_S = 5.0
_CONNTRACK = "/proc/sys/net/netfilter"
_UDP_ERRORS: tuple[tuple[str, Labels], ...] = (
    ("InErrors", {"type": "in"}),
    ("RcvbufErrors", {"type": "rcvbuf"}),
    ("SndbufErrors", {"type": "sndbuf"}),
    ("InCsumErrors", {"type": "csum"}),
)
_TCP_EVENTS: tuple[tuple[str, Labels], ...] = (
    ("ActiveOpens", {"type": "active_open"}),
    ("PassiveOpens", {"type": "passive_open"}),
    ("AttemptFails", {"type": "attempt_failed"}),
    ("EstabResets", {"type": "established_reset"}),
    ("OutRsts", {"type": "reset_sent"}),
    ("InErrs", {"type": "bad_segment"}),
)
_TCP_TROUBLE: tuple[tuple[str, Labels], ...] = (
    ("TCPSynRetrans", {"type": "syn_sent_again"}),
    ("TCPTimeouts", {"type": "timeout"}),
    ("TCPAbortOnMemory", {"type": "abort_on_memory"}),
    ("TCPMemoryPressures", {"type": "memory_pressure"}),
    ("TCPRcvQDrop", {"type": "receive_queue_drop"}),
    ("TCPBacklogDrop", {"type": "backlog_drop"}),
    ("SyncookiesSent", {"type": "syncookie_sent"}),
    ("SyncookiesFailed", {"type": "syncookie_failed"}),
)
_IP_ERRORS: tuple[tuple[str, Labels], ...] = (
    ("InHdrErrors", {"type": "in_header"}),
    ("InAddrErrors", {"type": "in_address"}),
    ("InDiscards", {"type": "in_discard"}),
    ("OutDiscards", {"type": "out_discard"}),
    ("OutNoRoutes", {"type": "out_no_route"}),
    ("ReasmFails", {"type": "reassembly"}),
    ("FragFails", {"type": "fragmentation"}),
)
_SNMP_NAMES = (
    "tcp_segments_sent",
    "tcp_retransmits",
    "tcp_retransmit_ratio",
    "tcp_events",
    "ip_errors",
    "udp_errors",
    "udp_error_rate",
)
_LISTEN_NAMES = ("listen_overflows", "listen_drops", "listen_drop_rate", "tcp_trouble")
_SOFTNET_NAMES = ("softnet_drops", "softnet_squeezes", "softnet_drop_rate")
_CONNTRACK_NAMES = ("conntrack_entries", "conntrack_max", "conntrack_usage")


class Stack:
    """Counters of one network namespace."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._root = net_root(machine.files)
        self._segments, self._retransmits, self._udp, self._listen, self._softnet = (Rate() for _ in range(5))

    def groups(self) -> tuple[Group, ...]:
        """The groups of these sources."""
        return (
            Group(_SNMP_NAMES, self._read_snmp, _PERIOD_S),
            Group(_LISTEN_NAMES, self._read_netstat, _PERIOD_S),
            Group(_SOFTNET_NAMES, self._read_softnet, _PERIOD_S),
            Group(_CONNTRACK_NAMES, self._read_conntrack, LINK_PERIOD_S),
        )

    def _read_snmp(self, cycle: Cycle) -> None:
        tables = proc_net_snmp.parse(self._files.read_kept(f"{self._root}/snmp"), ("Ip", "Tcp", "Udp"))
        self._tcp(cycle, tables.get("Tcp", {}))
        _counters(cycle, "tcp_events", tables.get("Tcp", {}), _TCP_EVENTS)
        _counters(cycle, "ip_errors", tables.get("Ip", {}), _IP_ERRORS)
        udp = tables.get("Udp", {})
        for name, labels in _UDP_ERRORS:
            _counter(cycle, "udp_errors", udp, name, labels)
        lost = udp["InErrors"] + udp.get("SndbufErrors", 0) if "InErrors" in udp else None
        _rate(cycle, "udp_error_rate", self._udp, lost)

    def _tcp(self, cycle: Cycle, tcp: Mapping[str, int]) -> None:
        sent = _counter(cycle, "tcp_segments_sent", tcp, "OutSegs")
        again = _counter(cycle, "tcp_retransmits", tcp, "RetransSegs")
        sent_growth, again_growth = self._segments.step(sent, cycle.at), self._retransmits.step(again, cycle.at)
        if sent_growth is None or again_growth is None:
            cycle.miss("tcp_retransmit_ratio", Absence.UNKNOWN, f"needs two readings of Tcp in {self._root}/snmp")
        elif sent_growth[0] == 0:
            cycle.miss("tcp_retransmit_ratio", Absence.UNKNOWN, "no TCP segment was sent since the last reading")
        elif again_growth[0] > sent_growth[0]:
            # Repeated segments are counted among those sent, but before they are: some did not get out.
            cycle.miss("tcp_retransmit_ratio", Absence.UNKNOWN, "more segments were repeated than sent since the last reading")
        else:
            cycle.add("tcp_retransmit_ratio", round(100.0 * again_growth[0] / sent_growth[0], 3))

    def _read_netstat(self, cycle: Cycle) -> None:
        table = proc_net_snmp.parse(self._files.read_kept(f"{self._root}/netstat"), ("TcpExt",)).get("TcpExt", {})
        _counter(cycle, "listen_overflows", table, "ListenOverflows")
        drops = _counter(cycle, "listen_drops", table, "ListenDrops")
        _rate(cycle, "listen_drop_rate", self._listen, drops)
        _counters(cycle, "tcp_trouble", table, _TCP_TROUBLE)

    def _read_softnet(self, cycle: Cycle) -> None:
        sums = proc_net_softnet.parse(self._files.read_kept(f"{self._root}/softnet_stat"))
        cycle.add("softnet_drops", sums.dropped)
        cycle.add("softnet_squeezes", sums.squeezed)
        _rate(cycle, "softnet_drop_rate", self._softnet, sums.dropped)

    def _read_conntrack(self, cycle: Cycle) -> None:
        if is_foreign_namespace(self._files):
            raise NoData(
                Absence.UNSUPPORTED,
                f"{_CONNTRACK} shows the network namespace of this container, not the host's",
                remedy="run the container with the host's network",
            )
        if not self._files.exists(f"{_CONNTRACK}/nf_conntrack_max"):
            raise NoData(Absence.NOT_APPLICABLE, "connection tracking is not loaded")
        count = self._files.read_int(f"{_CONNTRACK}/nf_conntrack_count")
        limit = self._files.read_int(f"{_CONNTRACK}/nf_conntrack_max")
        cycle.add("conntrack_entries", count)
        cycle.add("conntrack_max", limit)
        if limit > 0:
            cycle.add("conntrack_usage", round(100.0 * count / limit, 2))
        else:
            cycle.miss("conntrack_usage", Absence.NOT_APPLICABLE, "the table has no limit")


def _counter(cycle: Cycle, metric: str, table: Mapping[str, int], name: str, labels: Labels | None = None) -> int | None:
    value = table.get(name)
    if value is None:
        cycle.miss(metric, Absence.UNSUPPORTED, f"this kernel does not count {name}", labels)
    else:
        cycle.add(metric, value, labels)
    return value


def _counters(cycle: Cycle, metric: str, table: Mapping[str, int], names: Iterable[tuple[str, Labels]]) -> None:
    """Those that this kernel has; older ones lack some. One absence where it has none."""
    found = [(table[name], labels) for name, labels in names if name in table]
    for value, labels in found:
        cycle.add(metric, value, labels)
    if not found:
        cycle.miss(metric, Absence.UNSUPPORTED, "this kernel counts none of them")


def _rate(cycle: Cycle, metric: str, counter: Rate, value: int | None) -> None:
    growth = counter.step(value, cycle.at)
    if growth is None:
        cycle.miss(metric, Absence.UNKNOWN, "needs two readings, and a counter that did not step back between them")
    else:
        cycle.add(metric, round(growth[0] / growth[1], 2))
