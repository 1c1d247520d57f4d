"""Metrics of component network (observe.md 1.7), and what an administrator of such nodes needs beyond them.

Loopback and the plumbing of containers and switches (``nodeproof.sources.sys_class_net.is_virtual``) are left out of every row
that has an ``interface``.
"""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_LOW = Priority.LOW
_DEV = "/proc/net/dev"
_CLASS = "/sys/class/net"
_BONDING = "/proc/net/bonding"
_SOFTNET = "/proc/net/softnet_stat"
_SNMP = "/proc/net/snmp"
_NETSTAT = "/proc/net/netstat"
_SOCKSTAT = "/proc/net/sockstat"
_NEIGHBOURS = "/proc/net/stat/arp_cache, ndisc_cache"
_CONNTRACK = "/proc/sys/net/netfilter"
_INFINIBAND = "/sys/class/infiniband"
_PORT = ("device", "port")

_STACK_PERIOD_S = 5.0
_LINK_PERIOD_S = 10.0
_SOCKET_PERIOD_S = 60.0
_TABLE_PERIOD_S = 15.0
_PCIE_PERIOD_S = 60.0


def _reference(name: str, unit: str, kind: Kind, text: str, source: str, *labels: str) -> MetricSpec:
    return MetricSpec("network", name, unit, kind, text, source, labels, reference=True)


def _stack(name: str, unit: str, kind: Kind, text: str, source: str, *labels: str) -> MetricSpec:
    return MetricSpec("network", name, unit, kind, text, source, labels, period_s=_STACK_PERIOD_S)


def _link(name: str, unit: str, kind: Kind, text: str, source: str, *labels: str) -> MetricSpec:
    return MetricSpec("network", name, unit, kind, text, source, labels, period_s=_LINK_PERIOD_S)


def _table(name: str, unit: str, kind: Kind, text: str, source: str, *labels: str) -> MetricSpec:
    return MetricSpec("network", name, unit, kind, text, source, labels, period_s=_TABLE_PERIOD_S)


def _pcie(name: str, unit: str, text: str, file: str) -> MetricSpec:
    source = f"{_CLASS}/*/device/{file}"
    return MetricSpec("network", name, unit, Kind.GAUGE, text, source, ("interface",), _LOW, period_s=_PCIE_PERIOD_S)


_TRAFFIC = (
    _reference(
        "throughput",
        "bytes/s",
        Kind.GAUGE,
        "Bytes a second over the last interval, by measured time.",
        _DEV,
        "interface",
        "direction",
    )._replace(priority=Priority.HIGH),
    _reference(
        "packet_count",
        "count/s",
        Kind.GAUGE,
        "Packets a second over the last interval, by measured time.",
        _DEV,
        "interface",
        "direction",
    ),
    _reference(
        "error_count",
        "count",
        Kind.GAUGE,
        "Errors and drops since the reading before; error_total counts them all.",
        _DEV,
        "interface",
        "type",
    ),
    _reference("rx_bytes_total", "bytes", Kind.COUNTER, "Bytes received.", _DEV, "interface")._replace(features=_ALL),
    _reference("tx_bytes_total", "bytes", Kind.COUNTER, "Bytes sent.", _DEV, "interface")._replace(features=_ALL),
    _stack("packet_total", "count", Kind.COUNTER, "Packets.", _DEV, "interface", "direction"),
    _stack(
        "error_total",
        "count",
        Kind.COUNTER,
        "Errors and drops by cause; the kernel counts rx_fifo and rx_frame within rx_err, tx_fifo and tx_carrier within tx_err.",
        _DEV,
        "interface",
        "type",
    ),
)

_LINKS = (
    _reference(
        "interface_status",
        "",
        Kind.STATE,
        "1 = can pass traffic, 0 = cannot; where the driver keeps no state (unknown) its carrier decides. An interface that an "
        "administrator has switched off stands at 0 as well: see interface_admin_up.",
        f"{_CLASS}/*/operstate",
        "interface",
        "status",
    )._replace(period_s=_LINK_PERIOD_S),
    _link(
        "interface_admin_up",
        "",
        Kind.STATE,
        "1 = switched on by the administrator, 0 = switched off: then being down is no fault.",
        f"{_CLASS}/*/flags",
        "interface",
    ),
    _link(
        "link_lost",
        "",
        Kind.STATE,
        "1 = a physical port that is switched on and has had a link since it appeared has none now.",
        f"{_CLASS}/*/carrier_up_count",
        "interface",
    ),
    _link("speed", "Mb/s", Kind.GAUGE, "Speed of the link.", f"{_CLASS}/*/speed", "interface"),
    MetricSpec(
        "network",
        "speed_max",
        "Mb/s",
        Kind.GAUGE,
        "Greatest speed that port, cable and transceiver can do together; a link below it was negotiated or configured down.",
        "ETHTOOL_GLINKSETTINGS",
        ("interface",),
        period_s=_PCIE_PERIOD_S,
    ),
    _link(
        "duplex",
        "",
        Kind.STATE,
        "1 = full duplex, 0 = half duplex, which on a switched network is a negotiation gone wrong.",
        f"{_CLASS}/*/duplex",
        "interface",
        "duplex",
    ),
    _link("mtu", "bytes", Kind.GAUGE, "Largest packet, without link header.", f"{_CLASS}/*/mtu", "interface"),
    _link(
        "carrier_changes",
        "count",
        Kind.COUNTER,
        "Times the link came or went.",
        f"{_CLASS}/*/carrier_changes",
        "interface",
    ),
    _link(
        "link_flaps",
        "count",
        Kind.GAUGE,
        "Times the link went down within the last hour, by the kernel log and the carrier counter, whichever saw more.",
        "kernel log",
        "interface",
    ),
    _link("bond_status", "", Kind.STATE, "1 = the bond has a link.", _BONDING, "interface", "mode"),
    _link("bond_members", "count", Kind.GAUGE, "Interfaces that belong to the bond.", _BONDING, "interface"),
    _link(
        "bond_members_up",
        "count",
        Kind.GAUGE,
        "Members that have a link and stand in the aggregator in use; fewer than bond_members = redundancy or bandwidth is lost.",
        _BONDING,
        "interface",
    ),
    _link(
        "bond_member_status",
        "",
        Kind.STATE,
        "1 = the member has a link and stands in the aggregator in use.",
        _BONDING,
        "interface",
        "member",
    ),
    _link(
        "bond_link_failures",
        "count",
        Kind.COUNTER,
        "Times the member's link failed since it joined the bond.",
        _BONDING,
        "interface",
        "member",
    ),
    _pcie("pcie_link_width", "count", "PCIe lanes that the adapter uses now.", "current_link_width"),
    _pcie("pcie_link_width_max", "count", "PCIe lanes that the adapter could use.", "max_link_width"),
    _pcie("pcie_link_speed", "GT/s", "PCIe rate of each lane now; some adapters lower it when idle.", "current_link_speed"),
    _pcie("pcie_link_speed_max", "GT/s", "PCIe rate that each lane could have.", "max_link_speed"),
)

_STACK = (
    MetricSpec(
        "network",
        "connection_count",
        "count",
        Kind.GAUGE,
        "TCP sockets by state, IPv4 and IPv6; with more than 20,000 only TIME_WAIT and ESTABLISHED (from Linux 6.10 on with "
        "CLOSE_WAIT in it).",
        "sock_diag(7), else /proc/net/tcp",
        ("state",),
        _LOW,
        default=False,
        period_s=_SOCKET_PERIOD_S,
        reference=True,
    ),
    _stack("tcp_segments_sent", "count", Kind.COUNTER, "TCP segments sent.", _SNMP),
    _stack("tcp_retransmits", "count", Kind.COUNTER, "TCP segments sent again.", _SNMP),
    _stack("tcp_retransmit_ratio", "%", Kind.GAUGE, "Share of the segments of the last interval that were sent again.", _SNMP),
    _stack("listen_overflows", "count", Kind.COUNTER, "Connections refused because a listener's queue was full.", _NETSTAT),
    _stack("listen_drops", "count", Kind.COUNTER, "Connections dropped by listeners for any cause.", _NETSTAT),
    _stack("listen_drop_rate", "count/s", Kind.GAUGE, "Connections a second dropped by listeners.", _NETSTAT),
    _stack(
        "udp_errors",
        "count",
        Kind.COUNTER,
        "UDP datagrams over IPv4 lost, by cause; in holds rcvbuf and csum too.",
        _SNMP,
        "type",
    ),
    _stack(
        "udp_error_rate",
        "count/s",
        Kind.GAUGE,
        "UDP datagrams a second lost on receipt or for want of send buffer.",
        _SNMP,
    ),
    _stack("softnet_drops", "count", Kind.COUNTER, "Packets dropped because a processor's backlog was full.", _SOFTNET),
    _stack("softnet_squeezes", "count", Kind.COUNTER, "Times that a poll for packets ran out of its budget.", _SOFTNET),
    _stack("softnet_drop_rate", "count/s", Kind.GAUGE, "Packets a second dropped because a backlog was full.", _SOFTNET),
    _stack(
        "tcp_events", "count", Kind.COUNTER, "Connections opened, failed and reset, and bad segments, by type.", _SNMP, "type"
    ),
    _stack(
        "tcp_trouble",
        "count",
        Kind.COUNTER,
        "What TCP had to bear, by type: SYNs sent again, timeouts, want of memory, queues that overflowed, SYN cookies.",
        _NETSTAT,
        "type",
    ),
    _stack("ip_errors", "count", Kind.COUNTER, "IPv4 packets thrown away, by cause.", _SNMP, "type"),
    _table("sockets", "count", Kind.GAUGE, "Sockets by kind; tcp_time_wait counts IPv4 and IPv6.", _SOCKSTAT, "kind"),
    _table("socket_memory", "bytes", Kind.GAUGE, "Memory that queues of sockets hold, by protocol.", _SOCKSTAT, "protocol"),
    _table(
        "tcp_memory_usage",
        "%",
        Kind.GAUGE,
        "Memory of TCP against net.ipv4.tcp_mem; at 100 % the kernel drops what it receives.",
        f"{_SOCKSTAT}, /proc/sys/net/ipv4/tcp_mem",
    ),
    _table("neighbour_entries", "count", Kind.GAUGE, "Entries of the ARP and the IPv6 neighbour table.", _NEIGHBOURS, "family"),
    _table(
        "neighbour_usage",
        "%",
        Kind.GAUGE,
        "Entries against net.*.neigh.default.gc_thresh3; at 100 % hosts that are not in the table cannot be reached.",
        _NEIGHBOURS,
        "family",
    ),
    _table("neighbour_table_full", "count", Kind.COUNTER, "Entries refused because the table was full.", _NEIGHBOURS, "family"),
    _table(
        "conntrack_errors",
        "count",
        Kind.COUNTER,
        "Packets that the firewall's table dropped (drop, insert_failed), made room for (early_drop) or found invalid.",
        "/proc/net/stat/nf_conntrack",
        "type",
    ),
    _link("conntrack_entries", "count", Kind.GAUGE, "Connections that the firewall tracks.", f"{_CONNTRACK}/nf_conntrack_count"),
    _link("conntrack_max", "count", Kind.GAUGE, "Connections that it can track.", f"{_CONNTRACK}/nf_conntrack_max"),
    _link(
        "conntrack_usage",
        "%",
        Kind.GAUGE,
        "Share of the table in use; at 100 % new connections are dropped.",
        f"{_CONNTRACK}/nf_conntrack_count",
    ),
)

_RDMA = (
    _link(
        "ib_port_state",
        "",
        Kind.STATE,
        "1 = ACTIVE.",
        f"{_INFINIBAND}/*/ports/*/state",
        *_PORT,
        "link_layer",
        "state",
    ),
    _link(
        "ib_physical_state",
        "",
        Kind.STATE,
        "1 = LinkUp; Polling = no cable or no partner, Disabled = switched off.",
        f"{_INFINIBAND}/*/ports/*/phys_state",
        *_PORT,
        "state",
    ),
    _link("ib_rate", "Mb/s", Kind.GAUGE, "Rate of an active port.", f"{_INFINIBAND}/*/ports/*/rate", *_PORT, "generation"),
    _link("ib_width", "count", Kind.GAUGE, "Lanes of an active port.", f"{_INFINIBAND}/*/ports/*/rate", *_PORT),
    _link(
        "ib_data_total",
        "bytes",
        Kind.COUNTER,
        "Bytes; the adapter counts words of four.",
        f"{_INFINIBAND}/*/ports/*/counters/port_*_data",
        *_PORT,
        "direction",
    ),
    _link(
        "ib_throughput",
        "bytes/s",
        Kind.GAUGE,
        "Bytes a second since the reading before.",
        f"{_INFINIBAND}/*/ports/*/counters/port_*_data",
        *_PORT,
        "direction",
    ),
    _link(
        "ib_packet_total",
        "count",
        Kind.COUNTER,
        "Packets.",
        f"{_INFINIBAND}/*/ports/*/counters/port_*_packets",
        *_PORT,
        "direction",
    ),
    _link(
        "ib_error_total",
        "count",
        Kind.COUNTER,
        "Errors by counter, since the counters were reset.",
        f"{_INFINIBAND}/*/ports/*/counters",
        *_PORT,
        "type",
    ),
    _link(
        "ib_errors",
        "count",
        Kind.GAUGE,
        "Errors since the reading before.",
        f"{_INFINIBAND}/*/ports/*/counters",
        *_PORT,
        "type",
    ),
    _link(
        "ib_xmit_wait_total",
        "count",
        Kind.COUNTER,
        "Ticks in which data waited and could not be sent: congestion.",
        f"{_INFINIBAND}/*/ports/*/counters/port_xmit_wait",
        *_PORT,
    ),
    _link(
        "ib_hw_total",
        "count",
        Kind.COUNTER,
        "The driver's own counters of loss, repetition and congestion.",
        f"{_INFINIBAND}/*/ports/*/hw_counters",
        *_PORT,
        "counter",
    ),
    _link(
        "ib_saturated",
        "",
        Kind.STATE,
        "1 = the counter stands at its greatest value and counts no further until it is reset; only such counters are listed.",
        f"{_INFINIBAND}/*/ports/*/counters",
        *_PORT,
        "counter",
    ),
)

_IDENTITY = MetricSpec(
    "network",
    "net_info",
    "",
    Kind.INFO,
    "An interface, in labels what it is; the value is its running number. In the snapshot's specs only.",
    f"{_CLASS}, lspci",
    ("interface", "mac", "mtu", "speed", "driver", "pci_addr", "pci_device"),
    _LOW,
    features=(Feature.WEB,),
    reference=True,
)

METRICS: tuple[MetricSpec, ...] = (*_TRAFFIC, *_LINKS, *_STACK, *_RDMA, _IDENTITY)
