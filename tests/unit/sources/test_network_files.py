"""Parsers of ``/proc/net``: exact values from real lines, damage that costs only its own line, and arbitrary bytes."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources import (
    lspci,
    proc_net_bonding,
    proc_net_dev,
    proc_net_snmp,
    proc_net_sockstat,
    proc_net_softnet,
    proc_net_tcp,
)
from nodeproof.sources.proc_net_bonding import Bond, BondMember
from nodeproof.sources.proc_net_dev import NetDevice
from nodeproof.sources.proc_net_softnet import Softnet
from nodeproof.sources.unsigned import unsigned

_DEV_HEADER = b"""\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
"""
_DEV = (
    _DEV_HEADER
    + b"""\
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
  eth0: 86659181    2391    2    1    3     4          5         6   169087    1480    7    8    9    10      11         12
"""
)
_ETH0 = NetDevice(86659181, 2391, 2, 1, 3, 4, 169087, 1480, 7, 8, 9, 10, 11)
_SNMP = b"""\
Ip: Forwarding DefaultTTL InReceives
Ip: 2 64 2416
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs
Tcp: 1 200 120000 -1 25 2 0 0 7 2367 1449 13
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors
Udp: 48 0 5 49 3 1 2
"""
_TCP_HEADER = (
    b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                   \n"
)
_BOND_LACP = b"""\
Ethernet Channel Bonding Driver: v6.1.0

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 100
Up Delay (ms): 0
Down Delay (ms): 0
Peer Notification Delay (ms): 0

802.3ad info
LACP active: on
LACP rate: fast
Min links: 0
Aggregator selection policy (ad_select): stable
System priority: 65535
System MAC address: 02:00:00:00:00:01
Active Aggregator Info:
\tAggregator ID: 2
\tNumber of ports: 1
\tActor Key: 21
\tPartner Key: 5
\tPartner Mac Address: 02:00:00:00:00:99

Slave Interface: ens1f0
MII Status: up
Speed: 100000 Mbps
Duplex: full
Link Failure Count: 3
Permanent HW addr: 02:00:00:00:00:02
Slave queue ID: 0
Aggregator ID: 2
Actor Churn State: none

Slave Interface: ens1f1
MII Status: up
Speed: 100000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: 02:00:00:00:00:03
Slave queue ID: 0
Aggregator ID: 3
Actor Churn State: churned

Slave Interface: ens2f0
MII Status: down
Speed: Unknown
Duplex: Unknown
Link Failure Count: 1
Aggregator ID: 2
"""


def test_net_dev_is_read_by_column_names() -> None:
    assert proc_net_dev.parse(_DEV)["eth0"] == _ETH0
    assert list(proc_net_dev.parse(_DEV)) == ["lo", "eth0"]
    assert list(proc_net_dev.parse(_DEV, keep=lambda name: name != "lo")) == ["eth0"]


def test_net_dev_follows_a_kernel_with_more_columns() -> None:
    raw = b"x\n face |bytes packets errs drop new fifo frame|bytes packets errs drop fifo colls carrier\n"
    raw += b"eth0: 1 2 3 4 99 5 6 7 8 9 10 11 12 13\n"
    assert proc_net_dev.parse(raw)["eth0"] == NetDevice(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)


def test_net_dev_alias_names_keep_their_colon_and_counters_may_touch_it() -> None:
    raw = _DEV_HEADER + b"eth0:1:1234 2 0 0 0 0 0 0 5 6 0 0 0 0 0 0\n eth1:77 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
    devices = proc_net_dev.parse(raw)
    assert devices["eth0:1"].rx_bytes == 1234
    assert devices["eth1"].rx_bytes == 77


@pytest.mark.parametrize(
    "damaged",
    [
        b"eth1: 1 2 3",
        b"eth1: 1 2 x 4 5 6 7 8 9 10 11 12 13 14 15 16",
        b"eth1: -1" + b" 0" * 15,
        b"eth1: 18446744073709551616" + b" 0" * 15,
    ],
)
def test_net_dev_one_damaged_line_costs_only_itself(damaged: bytes) -> None:
    assert list(proc_net_dev.parse(_DEV + damaged + b"\nno colon here\n")) == ["lo", "eth0"]


def test_net_dev_with_only_damaged_lines_or_no_header_is_refused() -> None:
    with pytest.raises(ParseError, match="16 counters"):
        proc_net_dev.parse(_DEV_HEADER + b"eth1: 1 2 3\n")
    with pytest.raises(ParseError, match="two header lines"):
        proc_net_dev.parse(b"")
    with pytest.raises(ParseError, match="line 2"):
        proc_net_dev.parse(b"a\nb\nc\n")
    assert proc_net_dev.parse(_DEV_HEADER) == {}


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=16, max_size=16), st.from_regex(r"[a-z][a-z0-9.:@-]{0,14}", fullmatch=True))
def test_net_dev_round_trip(numbers: list[int], name: str) -> None:
    line = f"{name}: " + " ".join(map(str, numbers))
    device = proc_net_dev.parse(_DEV_HEADER + line.encode() + b"\n")[name]
    assert device == (*numbers[:6], *numbers[8:15])


def test_tcp_counts_by_the_state_column() -> None:
    raw = (
        _TCP_HEADER
        + b"""\
   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1681 1 00000000ca2003bf 100 0 0 10 0
   1: 0100007F:07E8 0100007F:9C40 01 00000000:00000000 00:00000000 00000000    10        0 1 1 0 100 0 0 10 0
   2: 0100007F:07E8 0100007F:9C41 06 00000000:00000000 03:00000A06 00000000     0        0 0 3 0
   3: 0100007F:07E8 0100007F:9C42 06 00000000:00000000 03:00000A06 00000000     0        0 0 3 0
   4: 0100007F:07E8 0100007F:9C43 0C 00000000:00000000 03:00000A06 00000000     0        0 0 3 0
   5: 0100007F:07E8 0100007F:9C43 FF 00000000:00000000
   6: 0100007F
"""
    )
    assert proc_net_tcp.parse(raw) == {"LISTEN": 1, "ESTABLISHED": 1, "TIME_WAIT": 2, "SYN_RECV": 1}
    with pytest.raises(ParseError, match="column st"):
        proc_net_tcp.parse(b"\n" + raw)


@settings(deadline=None)
@given(st.lists(st.sampled_from(range(1, 12))))
def test_tcp_counts_every_socket_once(states: list[int]) -> None:
    lines = [
        f"{n:4d}: 0100007F:07E8 0100007F:9C40 {state:02X} 00000000:00000000 00:00000000 0 10 0 1 1"
        for n, state in enumerate(states)
    ]
    counts = proc_net_tcp.parse(_TCP_HEADER + "\n".join(lines).encode())
    assert sum(counts.values()) == len(states)
    assert all(counts[proc_net_tcp.STATES[state - 1]] == states.count(state) for state in states)


def test_sockstat() -> None:
    raw = b"sockets: used 17\nTCP: inuse 12 orphan 0 tw 3 alloc x mem 2\nbroken\nUDP: inuse\n"
    assert proc_net_sockstat.parse(raw) == {"sockets": {"used": 17}, "TCP": {"inuse": 12, "orphan": 0, "tw": 3, "mem": 2}}
    with pytest.raises(ParseError, match="pairs"):
        proc_net_sockstat.parse(b"TCP:\n")


def test_snmp_pairs_names_with_numbers() -> None:
    tables = proc_net_snmp.parse(_SNMP)
    assert tables["Tcp"]["CurrEstab"] == 7
    assert tables["Tcp"]["MaxConn"] == -1
    assert tables["Udp"]["InErrors"] == 5
    assert set(proc_net_snmp.parse(_SNMP, ("Tcp",))) == {"Tcp"}


def test_snmp_a_damaged_pair_costs_only_itself() -> None:
    raw = b"A: x y\nA: 1\nB: x\nB: q\nC: x\nC: 5\n\nD: lonely\n"
    assert proc_net_snmp.parse(raw) == {"C": {"x": 5}}
    with pytest.raises(ParseError, match="pairs of lines"):
        proc_net_snmp.parse(b"A: x\n")


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[A-Z][A-Za-z0-9]{0,12}", fullmatch=True), st.integers(-(2**63), 2**64), min_size=1))
def test_snmp_round_trip(table: dict[str, int]) -> None:
    raw = f"TcpExt: {' '.join(table)}\nTcpExt: {' '.join(map(str, table.values()))}\n"
    assert proc_net_snmp.parse(raw.encode()) == {"TcpExt": table}


def test_softnet_sums_hexadecimal_columns_over_processors() -> None:
    # 0x10 + 0x0f = 31 processed, 1 + 2 = 3 dropped, 0 + 0xa = 10 squeezed
    assert proc_net_softnet.parse(b"00000010 00000001 00000000 0\nbroken\n0000000f 00000002 0000000a\n") == Softnet(31, 3, 10)
    with pytest.raises(ParseError, match="hexadecimal"):
        proc_net_softnet.parse(b"1 2\n")


def test_bond_with_a_member_down_and_one_in_another_aggregator() -> None:
    bond = proc_net_bonding.parse(_BOND_LACP)
    members = (
        BondMember("ens1f0", up=True, link_failures=3, aggregator_id=2),
        BondMember("ens1f1", up=True, link_failures=0, aggregator_id=3),
        BondMember("ens2f0", up=False, link_failures=1, aggregator_id=2),
    )
    assert bond == Bond("IEEE 802.3ad Dynamic link aggregation", True, "", 2, members)
    assert [bond.carries(member) for member in members] == [True, False, False]


def test_bond_active_backup_and_what_it_does_not_tell() -> None:
    raw = (
        b"Bonding Mode: fault-tolerance (active-backup)\nCurrently Active Slave: eth1\nMII Status: up\n\nSlave Interface: eth1\n"
    )
    bond = proc_net_bonding.parse(raw)
    assert (bond.active_member, bond.aggregator_id) == ("eth1", None)
    assert bond.members == (BondMember("eth1", None, None, None),)
    assert bond.carries(bond.members[0]) is None
    none_active = proc_net_bonding.parse(b"Bonding Mode: x\nCurrently Active Slave: None\n")
    assert (none_active.active_member, none_active.up) == ("", None)
    with pytest.raises(ParseError, match="Bonding Mode"):
        proc_net_bonding.parse(b"Slave Interface: eth1\n")


def test_lspci_by_address_with_domain() -> None:
    raw = b"pcilib: warning\n0000:4b:00.0 Ethernet controller: Example Corp ConnectX-6 (rev 01)\n00:1f.0 ISA bridge: x\n"
    assert lspci.parse(raw) == {"0000:4b:00.0": "Example Corp ConnectX-6 (rev 01)"}
    with pytest.raises(ParseError, match="lspci"):
        lspci.parse(b"")


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), (" 42\n", 42), ("18446744073709551615", 2**64 - 1), ("18446744073709551616", None), ("-1", None)]
    + [(text, None) for text in ("", "1_0", "+1", "٣", "1.0", "9" * 5000)],
)
def test_unsigned(text: str, number: int | None) -> None:
    assert unsigned(text) == number


@pytest.mark.parametrize(
    "parse",
    [
        proc_net_dev.parse,
        proc_net_tcp.parse,
        proc_net_sockstat.parse,
        proc_net_snmp.parse,
        proc_net_softnet.parse,
        proc_net_bonding.parse,
        lspci.parse,
    ],
)
@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=100).map(lambda tail: _DEV[:300] + tail),
        st.binary(max_size=100).map(lambda tail: _SNMP[:200] + tail),
        st.binary(max_size=100).map(lambda tail: _TCP_HEADER + tail),
        st.binary(max_size=100).map(lambda tail: _BOND_LACP[:100] + tail),
    )
)
def test_arbitrary_bytes_raise_nothing_but_parse_error(parse: Callable[[bytes], object], raw: bytes) -> None:
    try:
        parse(raw)
    except ParseError as error:
        assert error.expected
