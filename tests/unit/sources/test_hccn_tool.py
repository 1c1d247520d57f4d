"""``hccn_tool``: halves of answers, unknown words, counters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import NoData, ParseError
from nodeproof.model.catalogue import component_specs
from nodeproof.sources import hccn_tool
from support.npu import hccn_output


def test_case_34_half_an_answer_is_half_an_answer() -> None:
    assert hccn_tool.bandwidth(hccn_output("case-34.1.txt")) == {"net_tx": 12.5}
    assert hccn_tool.link(hccn_output("case-34.2.txt")) == "DEGRADED"
    assert "degraded" not in hccn_tool.LINK_WORDS
    assert hccn_tool.LINK_WORDS[hccn_tool.link(hccn_output("case-34.3.txt")).lower()] is True
    for parse in (hccn_tool.bandwidth, hccn_tool.link, hccn_tool.speed, hccn_tool.statistics):
        with pytest.raises(ParseError, match="busy, please try again"):
            parse(hccn_output("case-34.4.txt"))


def test_both_ways_of_printing_a_rate() -> None:
    assert hccn_tool.bandwidth(b"Bandwidth TX: 0.00 MB/sec\nBandwidth RX: 1250.5 MB/sec\n") == {"net_tx": 0.0, "net_rx": 1250.5}
    old = b"Net TX: 1250.0\nNet RX: 3\nPCIe TX: 7.5\nPCIe RX: 8\n"
    assert hccn_tool.bandwidth(old) == {"net_tx": 1250.0, "net_rx": 3.0, "pcie_tx": 7.5, "pcie_rx": 8.0}


def test_speed_in_words_and_a_port_that_does_not_know_it() -> None:
    assert hccn_tool.speed(b"Speed: 200000 Mb/s\n") == "200000 Mb/s"
    assert hccn_tool.speed(b"Speed: 100Gbps\n") == "100Gbps"
    with pytest.raises(NoData, match="there is no link"):
        hccn_tool.speed(b"Speed: Unknown!\n")


def test_counters_by_their_names_and_by_other_versions_names() -> None:
    text = b"packet statistics:\nmac_tx_mac_pause_num:3\nroce_retrans_pkt_num: 9\nnic_rx_all_oct_num:482237805\nodd_one:1\nx:-1\n"
    assert hccn_tool.statistics(text) == {"mac_tx_mac_pause_num": 3.0, "roce_new_pkt_rty": 9.0, "nic_rx_all_oct_num": 482237805.0}


def test_every_counter_has_a_row_in_the_catalogue() -> None:
    rows = component_specs("npu")
    assert len(hccn_tool.STATISTICS) == 46
    assert [name for name in hccn_tool.STATISTICS if rows[name].kind != "counter"] == []


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for parse in (hccn_tool.bandwidth, hccn_tool.link, hccn_tool.speed, hccn_tool.statistics):
        try:
            assert parse(raw)
        except (ParseError, NoData):
            continue
