"""Network part of the generated host ``bare-x86-256cpu``: 64 interfaces beside loopback, and any number of veths.

Interface number ``n`` (from 0, in the order of :data:`NAMES`) stands at ``(n + 1)`` times the base counters and grows by
``(n + 1)`` times the steps each tick, so that every reading can be worked out by hand.
"""

import os
from collections.abc import Mapping, Sequence

from nodeproof.sources.sys_infiniband import ERROR_COUNTERS

__all__ = ["NAMES", "write_network"]

_PORTS = tuple(f"ens{card}f{port}np{port}" for card in range(1, 17) for port in range(2))
"""32 ports of sixteen two-port adapters."""
_IB = tuple(f"ib{number}" for number in range(8))
_BONDS = ("bond0", "bond1")
_VLANS = tuple(f"bond{bond}.{vlan}" for bond in range(2) for vlan in range(100, 108))
_OTHERS = ("eno1", "eno2", "br0", "tap0", "tun0", "vxlan7")
NAMES = (*_PORTS, *_IB, *_BONDS, *_VLANS, *_OTHERS)
"""64 interfaces."""

_HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)
_BASE = {"rx_bytes": 1_000_000, "rx_packets": 1_000, "rx_drop": 3, "tx_bytes": 2_000_000, "tx_packets": 2_000, "tx_errs": 1}
_STEP = {"rx_bytes": 50_000, "rx_packets": 50, "rx_drop": 2, "tx_bytes": 70_000, "tx_packets": 70, "tx_errs": 0}
_MEMBERS = {"bond0": _PORTS[0:2], "bond1": _PORTS[2:6]}
_DOWN = {_PORTS[5]}
"""Switched on, had a link, lost it."""
_OFF = {"eno2"}
"""Switched off by the administrator."""
_UNKNOWN = {"tap0": "1", "tun0": "0", "vxlan7": "1"}
"""Interfaces that keep no state, and their carrier."""


def write_network(
    root: str, *, tick: int = 0, veths: int = 32, names: Sequence[str] = NAMES, adapters: int = len(_IB), cpus: int = 256
) -> None:
    """Write the files as they stand after ``tick`` steps; ``names``: other interfaces than those of the large host."""
    lines = [_line(name, number + 1, tick) for number, name in enumerate(names)]
    lines += [_line(f"veth{number:07x}", 1, tick) for number in range(veths)]
    _write(root, {"proc/net/dev": _HEADER + _line("lo", 5, tick) + "".join(lines)})
    # Processor number n has processed n + 1 packets a tick; processor 0 has dropped two more each tick.
    rows = [f"{(cpu + 1) * (tick + 1):08x} {2 * tick if cpu == 0 else 0:08x} 00000001 00000000\n" for cpu in range(cpus)]
    _write(root, {"proc/net/softnet_stat": "".join(rows)})
    _write(root, {f"proc/net/bonding/{bond}": _bond(bond) for bond in _BONDS if bond in names})
    _write(root, _stack(tick))
    for number in range(adapters):
        _write(root, _adapter(number, tick))
    if not os.path.exists(os.path.join(root, "sys/class/net/lo")):
        for name in ("lo", *names, *(f"veth{number:07x}" for number in range(veths))):
            _class_files(root, name)


def _line(name: str, factor: int, tick: int) -> str:
    at = {key: factor * (_BASE[key] + tick * _STEP[key]) for key in _BASE}
    receive = f"{at['rx_bytes']} {at['rx_packets']} 0 {at['rx_drop']} 0 0 0 0"
    return f"{name:>6}: {receive} {at['tx_bytes']} {at['tx_packets']} {at['tx_errs']} 0 0 0 0 0\n"


def _stack(tick: int) -> dict[str, str]:
    """30,000 sockets wait, 2,000 connections stand: too many to list. 40 of 10,000 segments a tick are repeated."""
    tcp = f"{1_000_000 + 10_000 * tick} {500 + 40 * tick} 2000"
    return {
        "proc/net/sockstat": "sockets: used 2500\nTCP: inuse 2100 orphan 0 tw 30000 alloc 2200 mem 900\nUDP: inuse 12 mem 4\n",
        "proc/net/sockstat6": "TCP6: inuse 20\nUDP6: inuse 4\n",
        "proc/net/snmp": f"Tcp: OutSegs RetransSegs CurrEstab\nTcp: {tcp}\n"
        f"Udp: InErrors RcvbufErrors SndbufErrors InCsumErrors\nUdp: {8 * tick} {8 * tick} 0 0\n",
        "proc/net/netstat": f"TcpExt: ListenOverflows ListenDrops\nTcpExt: {6 * tick} {10 * tick}\n",
        "proc/sys/net/netfilter/nf_conntrack_count": "196608\n",
        "proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
    }


def _adapter(number: int, tick: int) -> dict[str, str]:
    """One InfiniBand adapter with one port; the last one's cable is out."""
    folder = f"sys/class/infiniband/mlx5_{number}/ports/1"
    state = (
        ("1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)")
        if number == len(_IB) - 1
        else ("4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)")
    )
    counters = dict.fromkeys(ERROR_COUNTERS, 0) | {"symbol_error": number * tick, "port_xmit_wait": 9}
    words = (number + 1) * 1_000_000 * (tick + 1)
    counters |= {"port_rcv_data": words, "port_xmit_data": 2 * words, "port_rcv_packets": 10, "port_xmit_packets": 20}
    files = dict(zip(("state", "phys_state", "rate"), state, strict=True)) | {"link_layer": "InfiniBand"}
    files |= {f"counters/{name}": str(value) for name, value in counters.items()}
    files |= {f"hw_counters/{name}": "0" for name in ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err")}
    return {f"{folder}/{file}": f"{text}\n" for file, text in files.items()}


def _bond(bond: str) -> str:
    lacp = bond == "bond1"
    mode = "IEEE 802.3ad Dynamic link aggregation" if lacp else "fault-tolerance (active-backup)"
    text = f"Ethernet Channel Bonding Driver: v6.1.0\n\nBonding Mode: {mode}\n"
    text += "" if lacp else f"Currently Active Slave: {_MEMBERS[bond][0]}\n"
    text += "MII Status: up\nMII Polling Interval (ms): 100\n"
    text += "\n802.3ad info\nActive Aggregator Info:\n\tAggregator ID: 1\n\tNumber of ports: 2\n" if lacp else ""
    for number, member in enumerate(_MEMBERS[bond]):
        status = "down" if member in _DOWN else "up"
        text += (
            f"\nSlave Interface: {member}\nMII Status: {status}\nSpeed: 100000 Mbps\nDuplex: full\nLink Failure Count: {number}\n"
        )
        # The third member of bond1 talks to a switch that is not set up for it: it stands in an aggregator of its own.
        text += f"Permanent HW addr: 02:00:00:00:01:{number:02x}\n"
        text += f"Aggregator ID: {2 if number == 2 else 1}\n" if lacp else ""
    return text


def _class_files(root: str, name: str) -> None:
    physical = name.startswith(("ens", "ib", "eno"))
    down, off = name in _DOWN, name in _OFF
    files = {
        "operstate": "unknown" if name in _UNKNOWN or name == "lo" else "down" if down or off else "up",
        "flags": "0x1002" if off else "0x1003",
        "mtu": "9000" if name.startswith("ens") else "1500",
        "carrier_changes": "3" if down else "2",
        "carrier_up_count": "0" if off else "1",
        "carrier_down_count": "2" if down else "1",
        "address": "02:00:00:00:02:00",
    }
    if not off:  # the kernel answers EINVAL for an interface that is switched off
        files["carrier"] = _UNKNOWN.get(name, "0" if down else "1")
        files["speed"] = "-1" if down else _speed(name)
        files["duplex"] = "unknown" if down else "full"
    folder = f"sys/class/net/{name}"
    _write(root, {f"{folder}/{file}": f"{text}\n" for file, text in files.items()})
    if physical:
        width = "8" if name == _PORTS[7] else "16"
        link = {"current_link_width": width, "max_link_width": "16"}
        link |= {"current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe"}
        _write(root, {f"{folder}/device/{file}": f"{text}\n" for file, text in link.items()})


def _speed(name: str) -> str:
    if name in _UNKNOWN:
        return "4294967295" if name == "tap0" else "10"
    if name.startswith("bond"):
        return "65535" if name == "bond1" else "100000"
    return {"eno1": "1000", "br0": "-1"}.get(name, "100000")


def _write(root: str, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="ascii") as file:
            file.write(text)
