"""Tables of the network stack that can run full."""

from pathlib import Path

from nodeproof.errors import Absence
from support.network import Host, missing_of, readings

SOCKSTAT = "sockets: used 73\nTCP: inuse 10 orphan 1 tw 70 alloc 12 mem 256\nUDP: inuse 3 mem 2\n"
TABLE = "entries allocs table_fulls\n00000100 00000002 00000003\n00000100 00000008 00000004\n"


def test_sockets_and_their_memory(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/sockstat": SOCKSTAT, "/proc/sys/net/ipv4/tcp_mem": "256 512 1024\n"})
    batch = host.cycle(0)
    assert readings(batch, "sockets") == {
        ("all",): 73,
        ("tcp_in_use",): 10,
        ("tcp_orphan",): 1,
        ("tcp_time_wait",): 70,
        ("tcp_allocated",): 12,
        ("udp_in_use",): 3,
    }
    assert readings(batch, "socket_memory") == {("tcp",): 1048576, ("udp",): 8192}  # 256 and 2 pages of 4096 bytes
    assert readings(batch, "tcp_memory_usage") == {(): 25.0}  # 256 of 1024 pages


def test_what_this_kernel_does_not_count_is_missing(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/sockstat": "sockets: used 1\nTCP: inuse 1 orphan 0\n", "/proc/sys/net/ipv4/tcp_mem": "1 2\n"})
    batch = host.cycle(0)
    assert readings(batch, "sockets") == {("all",): 1, ("tcp_in_use",): 1, ("tcp_orphan",): 0}
    assert {(entry.labels or {})["kind"] for entry in missing_of(batch, "sockets")} == {
        "tcp_time_wait",
        "tcp_allocated",
        "udp_in_use",
    }
    assert [entry.state for entry in missing_of(batch, "tcp_memory_usage")] == [Absence.READ_ERROR]
    assert len(missing_of(batch, "socket_memory")) == 2


def test_neighbours_against_their_limit(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/stat/arp_cache": TABLE, "/proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n"})
    host.write({"/proc/net/stat/ndisc_cache": "entries allocs\n00000001 00000002\n"})
    host.write({"/proc/sys/net/ipv6/neigh/default/gc_thresh3": "0\n"})
    batch = host.cycle(0)
    assert readings(batch, "neighbour_entries") == {("ipv4",): 256, ("ipv6",): 1}  # 0x100, in the lines of both processors
    assert readings(batch, "neighbour_usage") == {("ipv4",): 25.0}  # 256 of 1024; no limit for IPv6
    assert readings(batch, "neighbour_table_full") == {("ipv4",): 7}  # 3 + 4
    assert [entry.labels for entry in missing_of(batch, "neighbour_table_full")] == [{"family": "ipv6"}]


def test_a_kernel_without_ipv6_costs_its_half_only(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/stat/arp_cache": TABLE, "/proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n"})
    batch = host.cycle(0)
    assert readings(batch, "neighbour_entries") == {("ipv4",): 256}
    assert [(entry.state, entry.labels) for entry in missing_of(batch, "neighbour_entries")] == [
        (Absence.UNSUPPORTED, {"family": "ipv6"})
    ]


def test_what_the_firewalls_table_dropped(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (absence,) = missing_of(host.cycle(0), "conntrack_errors")
    assert absence.state is Absence.NOT_APPLICABLE
    header = "entries invalid insert_failed drop early_drop\n"
    host.write({"/proc/net/stat/nf_conntrack": f"{header}5 1 2 3 4\n5 10 0 0 a\n"})
    assert readings(host.cycle(15), "conntrack_errors") == {
        ("invalid",): 17,  # 0x1 + 0x10
        ("insert_failed",): 2,
        ("drop",): 3,
        ("early_drop",): 14,  # 0x4 + 0xa
    }
