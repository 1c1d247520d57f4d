"""Parsers of ``/sys/class/net``, ``/sys/class/infiniband`` and ``/sys/bus/pci``."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources import sys_class_net, sys_infiniband, sys_pci
from nodeproof.sources.sys_infiniband import PortRate, PortState


@pytest.mark.parametrize(
    ("raw", "speed"),
    [
        (b"100000\n", 100000),
        (b"10\n", 10),
        (b"-1\n", None),
        (b"0\n", None),
        (b"65535\n", None),
        (b"4294967295\n", None),
        (b"99999999\n", None),
    ],
)
def test_case_32_speed_sentinels_are_absent(raw: bytes, speed: int | None) -> None:
    assert sys_class_net.parse_speed(raw) == speed


def test_class_net_values() -> None:
    assert sys_class_net.parse_flags(b"0x1003\n") is True
    assert sys_class_net.parse_flags(b"0x82\n") is False
    assert sys_class_net.parse_flag(b"1\n") is True
    assert sys_class_net.parse_flag(b"0\n") is False
    assert sys_class_net.parse_count(b"1500\n") == 1500
    assert sys_class_net.parse_word(b"lowerlayerdown\n") == "lowerlayerdown"
    assert sys_class_net.parse_word(b"\n") == ""
    for parse, raw in (
        (sys_class_net.parse_count, b"-3"),
        (sys_class_net.parse_speed, b"fast"),
        (sys_class_net.parse_flags, b""),
    ):
        with pytest.raises(ParseError):
            parse(raw)


@pytest.mark.parametrize(
    ("operstate", "admin_up", "carrier", "up"),
    [
        ("up", True, None, True),
        ("down", True, False, False),
        ("lowerlayerdown", True, None, False),
        ("dormant", True, True, False),
        ("unknown", True, True, True),
        ("unknown", True, False, False),
        ("unknown", True, None, None),
        ("unknown", False, None, False),
        ("unknown", None, None, None),
    ],
)
def test_unknown_is_not_down(operstate: str, admin_up: bool | None, carrier: bool | None, up: bool | None) -> None:  # noqa: FBT001 - columns of a table
    assert sys_class_net.is_up(operstate, admin_up=admin_up, carrier=carrier) is up


def test_virtual_interfaces_are_the_references_and_loopback_is_no_prefix() -> None:
    virtual = ["lo", "lo:0", "cali1a2b", "cni0", "veth3", "br-0a", "virbr0", "flannel.1", "ovs-system", "dummy0", "endvnic1"]
    assert [name for name in virtual if not sys_class_net.is_virtual(name)] == []
    real = ["eth0", "lom1", "local0", "bond0", "bond0.100", "br0", "ib0", "tap0", "eth0:1"]
    assert [name for name in real if sys_class_net.is_virtual(name)] == []


def test_infiniband_state_and_rate() -> None:
    assert sys_infiniband.parse_state(b"4: ACTIVE\n") == PortState(4, "ACTIVE")
    assert sys_infiniband.parse_state(b"5: LinkUp\n") == PortState(5, "LinkUp")
    assert sys_infiniband.parse_rate(b"100 Gb/sec (4X EDR)\n") == PortRate(100_000.0, 4, "EDR")
    assert sys_infiniband.parse_rate(b"2.5 Gb/sec (1X SDR)\n") == PortRate(2_500.0, 1, "SDR")
    assert sys_infiniband.parse_rate(b"10 Gb/sec (4X)\n") == PortRate(10_000.0, 4, "")
    assert sys_infiniband.parse_rate(b"10 Gb/sec\n") == PortRate(10_000.0, None, "")
    for raw in (b"ACTIVE", b"x: ACTIVE", b"4:"):
        with pytest.raises(ParseError):
            sys_infiniband.parse_state(raw)
    for raw in (b"", b"fast Gb/sec (4X)", b"nan Gb/sec", b"0 Gb/sec (4X)", b"100 Mb/sec (4X)", b"1e300 Gb/sec"):
        with pytest.raises(ParseError):
            sys_infiniband.parse_rate(raw)


@pytest.mark.parametrize(
    ("name", "value", "saturated"),
    [
        ("port_xmit_wait", 4294967295, True),
        ("link_downed", 255, True),
        ("port_xmit_discards", 65535, True),
        ("excessive_buffer_overrun_errors", 15, True),
        ("port_xmit_data", 205143497464492, False),
        ("symbol_error", 0, False),
        ("symbol_error", 255, False),
        ("symbol_error", 70000, False),
        ("link_downed", 254, False),
        ("port_xmit_data", 2**64 - 1, True),
    ],
)
def test_case_30_saturated_at_the_greatest_value_of_its_width(name: str, value: int, saturated: bool) -> None:  # noqa: FBT001 - a column
    assert sys_infiniband.parse_counter(f"{value}\n".encode()) == value
    assert sys_infiniband.is_saturated(name, value) is saturated


def test_a_counter_that_the_adapter_does_not_keep_is_refused() -> None:
    with pytest.raises(ParseError, match="not negative"):
        sys_infiniband.parse_counter(b"N/A (no PMA)\n")


@pytest.mark.parametrize(
    ("vendor", "device_class", "kind"),
    [
        (0x10DE, 0x030200, ("gpu", "nvidia")),
        (0x10DE, 0x030000, ("gpu", "nvidia")),
        (0x1002, 0x038000, ("gpu", "amd")),
        (0x1002, 0x120000, ("gpu", "amd")),
        (0x19E5, 0x120000, ("npu", "huawei")),
        (0x19E5, 0x030000, None),  # the display of a board management controller
        (0x10DE, 0x068000, None),  # NVSwitch
        (0x1A03, 0x030000, None),
    ],
)
def test_accelerators_by_vendor_and_class(vendor: int, device_class: int, kind: tuple[str, str] | None) -> None:
    assert sys_pci.accelerator_kind(vendor, device_class) == kind


def test_pci_values() -> None:
    assert sys_pci.parse_id(b"0x10de\n") == 0x10DE
    assert sys_pci.parse_link_speed(b"16.0 GT/s PCIe\n") == 16.0
    assert sys_pci.parse_link_speed(b"8 GT/s\n") == 8.0
    assert sys_pci.parse_link_speed(b"Unknown\n") is None
    assert sys_pci.parse_link_speed(b"Unknown speed\n") is None
    assert sys_pci.parse_link_width(b"16\n") == 16
    assert [sys_pci.parse_link_width(raw) for raw in (b"0\n", b"255\n")] == [None, None]
    with pytest.raises(ParseError):
        sys_pci.parse_id(b"-0x1")
    with pytest.raises(ParseError):
        sys_pci.parse_id(b"zz")
    for raw in (b"", b"fast GT/s", b"inf GT/s", b"16 Gb/s", b"16"):
        with pytest.raises(ParseError):
            sys_pci.parse_link_speed(raw)
    with pytest.raises(ParseError):
        sys_pci.parse_link_width(b"x16")


@pytest.mark.parametrize(
    "parse",
    [
        sys_class_net.parse_speed,
        sys_class_net.parse_flags,
        sys_class_net.parse_flag,
        sys_class_net.parse_count,
        sys_class_net.parse_word,
        sys_infiniband.parse_state,
        sys_infiniband.parse_rate,
        sys_infiniband.parse_counter,
        sys_pci.parse_id,
        sys_pci.parse_link_speed,
        sys_pci.parse_link_width,
    ],
)
@settings(deadline=None)
@given(st.one_of(st.binary(max_size=80), st.text("0123456789.-+eX xGb/sec()inf:", max_size=30).map(str.encode)))
def test_arbitrary_bytes_raise_nothing_but_parse_error(parse: Callable[[bytes], object], raw: bytes) -> None:
    try:
        parse(raw)
    except ParseError as error:
        assert error.expected


@settings(deadline=None)
@given(st.integers(1, 10_000_000))
def test_speed_round_trip(speed: int) -> None:
    assert sys_class_net.parse_speed(f"{speed}\n".encode()) == (None if speed == 65535 else speed)
