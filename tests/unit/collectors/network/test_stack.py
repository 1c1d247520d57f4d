"""Counters of the network stack, and sockets by state."""

from pathlib import Path

from nodeproof.errors import Absence
from support import tree
from support.network import Host, missing_of, readings

_TCP_NAMES = "Tcp: OutSegs RetransSegs CurrEstab\n"
_UDP_NAMES = "Udp: InErrors RcvbufErrors SndbufErrors InCsumErrors\n"
_TCP_HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def _snmp(tcp: str, udp: str = "0 0 0 0") -> str:
    return f"{_TCP_NAMES}Tcp: {tcp}\n{_UDP_NAMES}Udp: {udp}\n"


def _sockets(*states: str) -> str:
    lines = [f"{number}: 0100007F:07E8 0100007F:9C40 {state} 0:0 00:0 0 0 0 1\n" for number, state in enumerate(states)]
    return _TCP_HEADER + "".join(lines)


def test_retransmit_ratio_and_rates_between_two_readings(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/snmp": _snmp("1000 10 3", "5 2 1 0")})
    host.write({"/proc/net/netstat": "TcpExt: ListenOverflows ListenDrops\nTcpExt: 3 5\n"})
    host.write({"/proc/net/softnet_stat": "0000000a 00000001 00000002\n0000000b 00000002 00000000\n"})
    first = host.cycle(0)
    for name in ("tcp_retransmit_ratio", "udp_error_rate", "listen_drop_rate", "softnet_drop_rate"):
        assert readings(first, name) == {}
        assert [entry.state for entry in missing_of(first, name)] == [Absence.UNKNOWN]
    host.write({"/proc/net/snmp": _snmp("1800 12 3", "11 2 4 0")})
    host.write({"/proc/net/netstat": "TcpExt: ListenOverflows ListenDrops\nTcpExt: 3 25\n"})
    host.write({"/proc/net/softnet_stat": "0000000a 00000006 00000002\n0000000b 00000007 00000000\n"})
    batch = host.cycle(5)
    assert readings(batch, "tcp_segments_sent") == {(): 1800}
    assert readings(batch, "tcp_retransmits") == {(): 12}
    assert readings(batch, "tcp_retransmit_ratio") == {(): 0.25}  # (12-10)/(1800-1000) = 0.25 %
    assert readings(batch, "udp_errors") == {("in",): 11, ("rcvbuf",): 2, ("sndbuf",): 4, ("csum",): 0}
    assert readings(batch, "udp_error_rate") == {(): 1.8}  # (11-5 + 4-1) / 5 s
    assert readings(batch, "listen_overflows") == {(): 3}
    assert readings(batch, "listen_drops") == {(): 25}
    assert readings(batch, "listen_drop_rate") == {(): 4.0}  # (25-5) / 5 s
    assert readings(batch, "softnet_drops") == {(): 13}
    assert readings(batch, "softnet_squeezes") == {(): 2}
    assert readings(batch, "softnet_drop_rate") == {(): 2.0}  # (13-3) / 5 s


def test_events_of_tcp_and_packets_that_ip_threw_away(tmp_path: Path) -> None:
    host = Host(tmp_path)
    ip = "Ip: InHdrErrors InDiscards OutNoRoutes\nIp: 1 2 3\n"
    tcp = "Tcp: ActiveOpens AttemptFails EstabResets InErrs OutRsts\nTcp: 9 8 7 6 5\n"
    host.write({"/proc/net/snmp": ip + tcp})
    host.write({"/proc/net/netstat": "TcpExt: TCPSynRetrans TCPTimeouts SyncookiesSent\nTcpExt: 4 3 2\n"})
    batch = host.cycle(0)
    assert readings(batch, "tcp_events") == {
        ("active_open",): 9,
        ("attempt_failed",): 8,
        ("established_reset",): 7,
        ("bad_segment",): 6,
        ("reset_sent",): 5,
    }
    assert readings(batch, "ip_errors") == {("in_header",): 1, ("in_discard",): 2, ("out_no_route",): 3}
    assert readings(batch, "tcp_trouble") == {("syn_sent_again",): 4, ("timeout",): 3, ("syncookie_sent",): 2}
    host.write({"/proc/net/snmp": "Udp: InErrors\nUdp: 0\n"})
    assert [entry.state for entry in missing_of(host.cycle(5), "ip_errors")] == [Absence.UNSUPPORTED]


def test_a_ratio_without_traffic_or_beyond_reason_is_unknown(tmp_path: Path) -> None:
    host = Host(tmp_path)
    reasons = []
    for tcp in ("1000 10 0", "1000 10 0", "1001 12 0", "500 0 0"):
        host.write({"/proc/net/snmp": _snmp(tcp)})
        reasons.append(missing_of(host.cycle(5), "tcp_retransmit_ratio")[0].reason)
    assert [reason.split(" since")[0].split(" of ")[0] for reason in reasons] == [
        "needs two readings",
        "no TCP segment was sent",
        "more segments were repeated than sent",
        "needs two readings",
    ]


def test_counters_this_kernel_does_not_have_are_unsupported(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/snmp": "Ip: a\nIp: 1\n", "/proc/net/netstat": "IpExt: a\nIpExt: 1\n"})
    batch = host.cycle(0)
    for name in ("tcp_segments_sent", "tcp_retransmits", "listen_overflows", "listen_drops"):
        assert [entry.state for entry in missing_of(batch, name)] == [Absence.UNSUPPORTED]
    assert [entry.labels for entry in missing_of(batch, "udp_errors")] == [
        {"type": "in"},
        {"type": "rcvbuf"},
        {"type": "sndbuf"},
        {"type": "csum"},
    ]
    assert missing_of(batch, "connection_count")[0].state is Absence.UNSUPPORTED


_CONNTRACK = "/proc/sys/net/netfilter"


def test_conntrack_usage(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({f"{_CONNTRACK}/nf_conntrack_count": 65536, f"{_CONNTRACK}/nf_conntrack_max": 262144})
    batch = host.cycle(0)
    assert readings(batch, "conntrack_usage") == {(): 25.0}
    assert (readings(batch, "conntrack_entries"), readings(batch, "conntrack_max")) == ({(): 65536}, {(): 262144})
    host.write({f"{_CONNTRACK}/nf_conntrack_max": 0})
    assert missing_of(host.cycle(10), "conntrack_usage")[0].state is Absence.NOT_APPLICABLE


def test_conntrack_not_loaded_is_not_applicable(tmp_path: Path) -> None:
    assert {entry.state for entry in missing_of(Host(tmp_path).cycle(0), "conntrack_usage")} == {Absence.NOT_APPLICABLE}


def test_conntrack_of_another_namespace_is_not_taken_for_the_hosts(tmp_path: Path) -> None:
    Host(tmp_path).write({"/proc/1/net/dev": "", f"{_CONNTRACK}/nf_conntrack_count": 1, f"{_CONNTRACK}/nf_conntrack_max": 2})
    (entry,) = missing_of(Host(tmp_path).cycle(0), "conntrack_usage")
    assert (entry.state, entry.remedy) == (Absence.UNSUPPORTED, "run the container with the host's network")
    tree.link(str(tmp_path), "/proc/1/ns/net", "net:[4026531840]")
    tree.link(str(tmp_path), "/proc/self/ns/net", "net:[4026531840]")
    assert readings(Host(tmp_path).cycle(0), "conntrack_usage") == {(): 50.0}


def _socket_host(root: Path, *, in_use: int, time_wait: int, established: int) -> Host:
    host = Host(root)
    host.write({"/proc/net/sockstat": f"TCP: inuse {in_use} orphan 0 tw {time_wait} alloc 9 mem 2\n"})
    host.write({"/proc/net/snmp": _snmp(f"1 0 {established}")})
    return host


def test_sockets_by_state_with_zero_for_what_health_needs(tmp_path: Path) -> None:
    host = _socket_host(tmp_path, in_use=4, time_wait=0, established=1)
    host.write({"/proc/net/tcp": _sockets("0A", "01", "08"), "/proc/net/tcp6": _sockets("0A")})
    assert readings(host.cycle(0), "connection_count") == {
        ("ESTABLISHED",): 1,
        ("TIME_WAIT",): 0,
        ("LISTEN",): 2,
        ("CLOSE_WAIT",): 1,
    }


def test_too_many_sockets_are_not_listed(tmp_path: Path) -> None:
    host = _socket_host(tmp_path, in_use=9000, time_wait=9000, established=8000)
    host.write({"/proc/net/sockstat6": "TCP6: inuse 2001\n", "/proc/net/tcp": _sockets("01")})
    batch = host.cycle(0)
    assert readings(batch, "connection_count") == {("ESTABLISHED",): 8000, ("TIME_WAIT",): 9000}
    (entry,) = missing_of(batch, "connection_count")
    assert entry.state is Absence.UNSUPPORTED
    assert entry.reason.startswith("20001 sockets are too many to list")  # 9000 + 9000 + 2001
    host.write({"/proc/net/sockstat6": "TCP6: inuse 2000\n"})
    assert readings(host.cycle(60), "connection_count") == {("ESTABLISHED",): 1, ("TIME_WAIT",): 0}


def test_sockets_that_cannot_be_counted_are_missing(tmp_path: Path) -> None:
    host = _socket_host(tmp_path, in_use=1, time_wait=0, established=0)
    assert missing_of(host.cycle(0), "connection_count")[0].state is Absence.UNSUPPORTED  # no /proc/net/tcp
    host.write({"/proc/net/tcp": _sockets("01"), "/proc/net/tcp6": "junk\n"})
    assert missing_of(host.cycle(60), "connection_count")[0].state is Absence.READ_ERROR
    host.write({"/proc/net/snmp": "Ip: a\nIp: 1\n"})
    assert "does not count established" in missing_of(host.cycle(60), "connection_count")[0].reason
    host.write({"/proc/net/sockstat": "UDP: inuse 1\n"})
    assert "does not count TCP" in missing_of(host.cycle(60), "connection_count")[0].reason


def test_an_unreadable_half_of_the_sockets_is_no_whole(tmp_path: Path) -> None:
    host = _socket_host(tmp_path, in_use=1, time_wait=0, established=0)
    host.write({"/proc/net/tcp": _sockets("01")})
    (tmp_path / "proc/net/tcp6").mkdir()
    assert missing_of(host.cycle(0), "connection_count")[0].state is Absence.READ_ERROR
    (tmp_path / "proc/net/sockstat6").mkdir()
    assert missing_of(host.cycle(60), "connection_count")[0].state is Absence.READ_ERROR
