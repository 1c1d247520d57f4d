"""Component network over whole fixture hosts: readings worked out by hand, the catalogue held to, other programs asked."""

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil
import pytest

from nodeproof.collectors.network import collector as network
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import component_specs
from nodeproof.model.metric import Batch
from support.hosts import KEPT
from support.hosts_network import NAMES, write_network
from support.network import Everything, Host, missing_of, readings

_VM_READINGS = [
    ("rx_bytes_total", ("eth0",), 86659181),  # the file's first column of eth0
    ("tx_bytes_total", ("eth0",), 169087),
    ("rx_bytes_total", ("tap0",), 7100),
    ("packet_total", ("eth0", "rx"), 2391),
    ("packet_total", ("tap0", "tx"), 69),
    ("error_total", ("eth0", "rx_drop"), 4),
    ("error_total", ("tap0", "tx_drop"), 2),
    ("interface_status", ("eth0", "up"), 1),
    ("interface_status", ("tap0", "unknown"), 1),  # no state kept, carrier 1
    ("interface_status", ("docker0", "down"), 0),
    ("link_lost", ("eth0",), 0),
    ("mtu", ("eth0",), 1400),
    ("carrier_changes", ("eth0",), 2),
    ("connection_count", ("LISTEN",), 2),  # 1 in tcp + 1 in tcp6
    ("connection_count", ("TIME_WAIT",), 2),
    ("connection_count", ("ESTABLISHED",), 1),
    ("connection_count", ("CLOSE_WAIT",), 1),  # state 08
    ("tcp_segments_sent", (), 1449),
    ("udp_errors", ("rcvbuf",), 4),
    ("listen_drops", (), 5),
    ("softnet_drops", (), 3),  # 1 + 2
    ("softnet_squeezes", (), 12),  # 2 + 0xa
    ("conntrack_usage", (), 25),  # 65536 / 262144
]
_BARE_READINGS = [
    # Two ticks in 4 s. Interface n (from 0) moves (n + 1) * 50000 rx bytes a tick: (n + 1) * 2 * 50000 / 4 s.
    ("throughput", ("ens1f0np0", "rx"), 25_000),  # n = 0: 1 * 100000 / 4
    ("throughput", ("ens1f0np0", "tx"), 35_000),  # 1 * 2 * 70000 / 4
    ("throughput", ("ens16f1np1", "rx"), 800_000),  # n = 31: 32 * 100000 / 4
    ("throughput", ("vxlan7", "tx"), 2_240_000),  # n = 63: 64 * 140000 / 4
    ("packet_count", ("ens1f0np0", "rx"), 25),  # 1 * 2 * 50 / 4
    ("packet_count", ("ib0", "tx"), 1155),  # n = 32: 33 * 2 * 70 / 4
    ("error_count", ("ens1f0np0", "rx_drop"), 4),  # 1 * 2 * 2
    ("error_count", ("bond0", "rx_drop"), 164),  # n = 40: 41 * 2 * 2
    ("error_count", ("bond0", "tx_err"), 0),
    ("rx_bytes_total", ("bond1",), 46_200_000),  # n = 41: 42 * (1000000 + 2 * 50000)
    ("tx_bytes_total", ("bond0.100",), 92_020_000),  # n = 42: 43 * (2000000 + 2 * 70000)
    ("bond_status", ("bond1", "IEEE 802.3ad Dynamic link aggregation"), 1),
    ("bond_members", ("bond1",), 4),
    ("bond_members_up", ("bond1",), 2),  # one down, one in an aggregator of its own
    ("bond_members_up", ("bond0",), 2),
    ("bond_member_status", ("bond1", "ens3f1np1"), 0),
    ("bond_link_failures", ("bond1", "ens3f1np1"), 3),
    ("link_lost", ("ens3f1np1",), 1),
    ("link_lost", ("eno2",), 0),  # switched off
    ("interface_admin_up", ("eno2",), 0),
    ("interface_status", ("tun0", "unknown"), 0),  # no state kept, carrier 0
    ("speed", ("eno1",), 1000),
    ("mtu", ("ens1f0np0",), 9000),
    ("pcie_link_width", ("ens4f1np1",), 8),
    ("pcie_link_width_max", ("ens4f1np1",), 16),
    ("connection_count", ("TIME_WAIT",), 30_000),  # 30000 + 2100 + 20 sockets are too many to list
    ("connection_count", ("ESTABLISHED",), 2000),
    ("conntrack_usage", (), 75),  # 196608 / 262144
    ("ib_rate", ("mlx5_0", "1", "NDR"), 400_000),
    ("ib_physical_state", ("mlx5_7", "1", "Polling"), 0),
]
_BARE_LATER = [
    # Two more ticks in 20 s: (10000 * 2) segments, 80 of them again; 16 datagrams, 20 connections, 4 packets lost.
    ("tcp_retransmit_ratio", (), 0.4),  # 80 / 20000
    ("udp_error_rate", (), 0.8),  # 16 / 20
    ("listen_drop_rate", (), 1),  # 20 / 20
    ("softnet_drop_rate", (), 0.2),  # 2 * 2 / 20, all on processor 0
    ("ib_throughput", ("mlx5_2", "1", "rx"), 1_200_000),  # 3 * 1000000 words * 2 ticks * 4 bytes / 20 s
    ("ib_data_total", ("mlx5_2", "1", "tx"), 120_000_000),  # 2 * 3 * 1000000 * (4 + 1) words * 4 bytes
    ("ib_errors", ("mlx5_3", "1", "symbol_error"), 6),  # 3 * 2 ticks
]
_IB_READINGS = [
    ("ib_port_state", ("mlx5_0", "1", "InfiniBand", "ACTIVE"), 1),
    ("ib_port_state", ("mlx5_2", "1", "Ethernet", "DOWN"), 0),
    ("ib_physical_state", ("mlx5_0", "1", "LinkUp"), 1),
    ("ib_rate", ("mlx5_0", "1", "EDR"), 100_000),  # 100 Gb/sec
    ("ib_width", ("mlx5_1", "1"), 4),
    ("ib_data_total", ("mlx5_0", "1", "rx"), 4_000_000),  # 1000000 words * 4
    ("ib_data_total", ("mlx5_0", "1", "tx"), 8_000_000),  # 2000000 words * 4
    ("ib_packet_total", ("mlx5_0", "1", "rx"), 4000),
    ("ib_error_total", ("mlx5_0", "1", "symbol_error"), 3),
    ("ib_error_total", ("mlx5_0", "1", "link_error_recovery"), 1),
    ("ib_error_total", ("mlx5_0", "1", "link_downed"), 0),
    ("ib_xmit_wait_total", ("mlx5_0", "1"), 77),
    ("ib_hw_total", ("mlx5_2", "1", "out_of_sequence"), 12),
    ("ib_hw_total", ("mlx5_2", "1", "np_cnp_sent"), 9001),
    ("ib_saturated", ("mlx5_1", "1", "link_downed"), 1),
    ("interface_status", ("ib0", "up"), 1),
    ("link_lost", ("ens2f0np0",), 1),  # switched on, 1 time up, now down
    ("speed", ("ib0",), 100_000),
    ("pcie_link_width", ("ens2f0np0",), 8),
    ("pcie_link_speed", ("ens2f0np0",), 8),
    ("pcie_link_speed_max", ("ens2f0np0",), 16),
    ("error_total", ("ib0", "rx_drop"), 7),
]


def _assert_readings(batch: Batch, expected: Sequence[tuple[str, tuple[str, ...], float]]) -> None:
    assert len(expected) >= 20
    assert [(name, labels, readings(batch, name).get(labels)) for name, labels, _ in expected] == expected


def test_vm_2cpu() -> None:
    batch = Host(KEPT / "vm-2cpu").collect()
    _assert_readings(batch, _VM_READINGS)
    assert {interface for (interface,) in readings(batch, "rx_bytes_total")} == {"eth0", "tap0", "docker0"}
    assert readings(batch, "speed") == {}


def test_bare_x86_256cpu(tmp_path: Path) -> None:
    write_network(str(tmp_path))
    host = Host(tmp_path)
    host.collect()
    write_network(str(tmp_path), tick=2)
    batch = host.cycle(4)
    _assert_readings(batch, _BARE_READINGS)
    host.collect(10)
    write_network(str(tmp_path), tick=4)
    later = host.collect(20)
    assert [(name, labels, readings(later, name).get(labels)) for name, labels, _ in _BARE_LATER] == _BARE_LATER
    assert len(readings(batch, "throughput")) == 2 * len(NAMES)
    assert len(batch.missing) < 50


def test_ib_hca() -> None:
    _assert_readings(Host(KEPT / "ib-hca").collect(), _IB_READINGS)


@pytest.mark.parametrize("kept", ["vm-2cpu", "ib-hca", None])
def test_every_row_of_the_catalogue_is_read_or_missing_on_every_host(tmp_path: Path, kept: str | None) -> None:
    if kept is None:
        write_network(str(tmp_path))
    host = Host(KEPT / kept if kept else tmp_path)
    host.collect()
    batch = host.collect(10)
    specs = component_specs("network")
    told = {metric.name for metric in batch.metrics} | {entry.name for entry in batch.missing}
    # Only counters that are stuck are listed under this name; who the interfaces are is told in the snapshot's specs alone.
    assert set(specs) - told <= {"ib_saturated", "net_info"}
    for metric in batch.metrics:
        assert set(metric.labels or {}) <= set(specs[metric.name].labels), metric
    keys = [(metric.name, tuple(sorted((metric.labels or {}).items()))) for metric in batch.metrics]
    assert len(keys) == len(set(keys))


def test_groups_run_no_slower_than_their_rows_say(tmp_path: Path) -> None:
    specs = component_specs("network")
    for group in Host(tmp_path).collector._groups:  # type: ignore[attr-defined] # the frame's own list
        # A group that is asked each cycle passes on what a slow source read; any other runs at its rows' own cadence.
        assert not group.every_s or {specs[name].period_s for name in group.names} == {group.every_s}


def test_an_empty_machine_gives_absences_alone(tmp_path: Path) -> None:
    batch = Host(tmp_path).collect()
    assert batch.metrics == []
    states = {entry.name: entry.state for entry in batch.missing}
    assert states["throughput"] is Absence.UNSUPPORTED
    assert states["bond_status"] is Absence.NOT_APPLICABLE


@pytest.fixture(scope="module")
def here() -> tuple[Batch, Machine]:
    """Two cycles on this very machine."""
    machine = Machine.here()
    collector = network.create(machine, Everything())
    collector.collect()
    machine.settle(5)
    time.sleep(0.2)
    return collector.collect(), machine


def test_oracle_psutil_counts_the_same_bytes(here: tuple[Batch, Machine]) -> None:
    batch, _ = here
    after = psutil.net_io_counters(pernic=True, nowrap=False)
    ours = readings(batch, "rx_bytes_total")
    assert ours
    for (name,), value in ours.items():
        assert 0 <= after[name].bytes_recv - value < 50_000_000
    speeds = {name: stats.speed for name, stats in psutil.net_if_stats().items()}
    assert readings(batch, "speed") == {(name,): speeds[name] for (name,) in readings(batch, "speed")}
    assert {(name,): float(psutil.net_if_stats()[name].mtu) for (name,) in readings(batch, "mtu")} == readings(batch, "mtu")


def _listening_here() -> tuple[float, float]:
    machine = Machine.here()
    counts = readings(network.create(machine, Everything()).collect(), "connection_count")
    machine.close()
    return counts["LISTEN",], [entry.status for entry in psutil.net_connections("tcp")].count(psutil.CONN_LISTEN)


def test_oracle_psutil_counts_our_own_sockets() -> None:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    try:
        # Other programs of this machine open and close sockets, too: one of a few looks finds both at one moment.
        looks = [_listening_here() for _ in range(5)]
        assert all(ours >= 3 for ours, _ in looks)
        assert any(ours == theirs for ours, theirs in looks), looks
    finally:
        for listener in listeners:
            listener.close()


def test_oracle_ip_says_the_same_of_state_and_size(here: tuple[Batch, Machine]) -> None:
    _, machine = here
    if machine.commands.find("ip") is None:
        pytest.skip("this machine has no ip (iproute2)")
    text = subprocess.run(["ip", "-o", "link"], capture_output=True, check=True, text=True).stdout  # noqa: S607 - found above
    batch, _ = here
    for name, status in readings(batch, "interface_status"):
        line = next(line for line in text.splitlines() if f": {name}:" in line or f": {name}@" in line)
        assert f" state {status.upper()} " in line
        assert f" mtu {readings(batch, 'mtu')[name,]:.0f} " in line
        assert ("UP" in line.partition("<")[2].partition(">")[0].split(",")) == bool(readings(batch, "interface_admin_up")[name,])


def test_oracle_ip_counts_the_same_errors_and_drops(here: tuple[Batch, Machine]) -> None:
    batch, machine = here
    if machine.commands.find("ip") is None:
        pytest.skip("this machine has no ip (iproute2)")
    raw = subprocess.run(["ip", "-s", "-s", "-j", "link"], capture_output=True, check=True).stdout  # noqa: S607 - found above
    links = {link["ifname"]: link["stats64"] for link in msgspec.json.decode(raw)}
    totals = readings(batch, "error_total")
    assert totals
    for (name, kind), value in totals.items():
        if kind == "rx_drop":  # the file adds what the adapter missed
            assert value <= links[name]["rx"]["dropped"] + links[name]["rx"].get("missed_errors", 0)
        elif kind in {"rx_err", "tx_err"}:
            assert value <= links[name][kind[:2]]["errors"]
    for (name, direction), value in readings(batch, "packet_total").items():
        assert 0 <= links[name][direction]["packets"] - value < 100_000


def test_conntrack_of_this_machine_is_read_or_explained(here: tuple[Batch, Machine]) -> None:
    batch, _ = here
    assert readings(batch, "conntrack_usage") or missing_of(batch, "conntrack_usage")[0].reason
