"""State of the links, PCIe links and bonds."""

import errno
import threading
from pathlib import Path

import msgspec
import pytest

from nodeproof.collectors.network.collector import identity
from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.model.metric import Batch
from support.network import Host, link_settings_answer, missing_of, readings

_NET = "/sys/class/net"


def _interface(name: str, **files: str | int) -> dict[str, str | bytes | float]:
    values: dict[str, str | int] = {"operstate": "up", "flags": "0x1003", "mtu": 1500, "carrier_changes": 2, "carrier": 1}
    values |= files
    return {f"{_NET}/{name}/{file}": value for file, value in values.items()}


@pytest.fixture
def case_32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Interfaces of the public report; reading the speed of ``eno2`` fails with EINVAL, as the kernel has it."""
    host = Host(tmp_path)
    host.write(_interface("eno1", operstate="down", flags="0x1002", speed=-1))
    host.write(_interface("eno2", operstate="down", flags="0x1002", speed="EINVAL", carrier="EINVAL"))
    host.write(_interface("tap0", operstate="unknown", speed=4294967295))
    host.write(_interface("ens3", speed=100000, duplex="full"))
    host.write(_interface("bond0", speed=65535) | {f"{_NET}/bonding_masters": "bond0"})
    once = FileTree._read_once

    def read(tree: FileTree, real: str) -> bytes:
        raw = once(tree, real)
        if raw == b"EINVAL\n":
            raise OSError(errno.EINVAL, "Invalid argument")
        return raw

    monkeypatch.setattr(FileTree, "_read_once", read)
    return host


def test_case_32_unknown_speeds_are_absent(case_32: Host) -> None:
    batch = case_32.collect()
    assert readings(batch, "speed") == {("ens3",): 100000}  # 100000 Mb/s = 12.5e9 B/s
    assert readings(batch, "duplex") == {("ens3", "full"): 1.0}
    reasons = {(entry.state, entry.reason) for entry in missing_of(batch, "speed")}
    assert reasons == {
        (Absence.UNSUPPORTED, "the driver does not tell: bond0, eno1, tap0"),
        (Absence.UNKNOWN, "there is no link: eno2"),
    }


def test_case_32_a_port_that_is_switched_off_is_no_fault(case_32: Host) -> None:
    for name in ("eno1", "eno2"):
        case_32.write({f"{_NET}/{name}/device/vendor": "0x8086", f"{_NET}/{name}/carrier_up_count": 1})
    batch = case_32.collect()
    assert readings(batch, "interface_status") == {
        ("bond0", "up"): 1.0,
        ("eno1", "down"): 0.0,
        ("eno2", "down"): 0.0,
        ("ens3", "up"): 1.0,
        ("tap0", "unknown"): 1.0,
    }
    assert readings(batch, "interface_admin_up") == {("bond0",): 1, ("eno1",): 0, ("eno2",): 0, ("ens3",): 1, ("tap0",): 1}
    assert readings(batch, "link_lost") == {("eno1",): 0.0, ("eno2",): 0.0}


def test_a_port_that_had_a_link_and_has_none_is_lost(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("ens1", operstate="down", carrier=0, carrier_up_count=3))
    host.write(_interface("ens2", operstate="down", carrier=0, carrier_up_count=0))
    host.write(_interface("ens3", operstate="down", carrier=0))
    host.write(_interface("br0", operstate="down", carrier=0, carrier_up_count=5))
    host.write({f"{_NET}/{name}/device/vendor": "0x15b3" for name in ("ens1", "ens2", "ens3")})
    batch = host.collect()
    assert readings(batch, "link_lost") == {("ens1",): 1.0, ("ens2",): 0.0}
    (entry,) = missing_of(batch, "link_lost")
    assert (entry.state, entry.reason.rpartition(": ")[2]) == (Absence.UNSUPPORTED, "ens3")


def test_a_link_that_is_not_there_has_no_speed(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("ens1", operstate="down", carrier=0, speed=10000, duplex="full"))
    batch = host.collect()
    assert (readings(batch, "speed"), readings(batch, "duplex")) == ({}, {})
    assert [entry.reason for entry in missing_of(batch, "speed")] == ["there is no link: ens1"]


def test_files_that_are_damaged_cost_only_themselves(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("eth0", mtu="many", flags="zz", speed="fast", duplex="unknown"))
    host.write(_interface("eth1", speed=1000, duplex="half", operstate="unknown", carrier="?"))
    host.write({f"{_NET}/eth2/operstate": ""})
    batch = host.collect()
    assert readings(batch, "mtu") == {("eth1",): 1500}
    assert readings(batch, "duplex") == {("eth1", "half"): 0.0}
    assert missing_of(batch, "mtu")[0].reason == "not told for eth0"
    assert readings(batch, "interface_status") == {("eth0", "up"): 1.0}
    assert missing_of(batch, "interface_status")[0].reason == "the driver keeps neither a state nor a carrier: eth1"


def test_a_wedged_driver_costs_speed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path)
    host.write(_interface("eth0", speed=1000) | _interface("tap0", operstate="unknown"))
    wedged, once = threading.Event(), FileTree._read_once

    def read(tree: FileTree, real: str) -> bytes:
        if real.endswith("/speed"):
            wedged.wait(10)
        return once(tree, real)

    monkeypatch.setattr(FileTree, "_read_once", read)
    try:
        host.cycle(0)
        host.machine._slow[0].wait(5)  # the state answers, the speed does not
        batch = host.cycle(7)
        assert readings(batch, "interface_status") == {("eth0", "up"): 1.0}
        assert {entry.state for entry in missing_of(batch, "interface_status")} == {Absence.STALE}
        assert {entry.state for entry in missing_of(batch, "speed")} == {Absence.STALE}
        threads = threading.active_count()
        for _ in range(20):
            host.cycle(60)
        assert threading.active_count() <= threads + len(host.machine._slow)
    finally:
        wedged.set()
    host.machine.settle(5)
    batch = host.collect(60)
    assert readings(batch, "speed") == {("eth0",): 1000}


def test_slow_readings_bear_the_time_they_were_taken(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("eth0"))
    first = next(metric.timestamp for metric in host.collect().metrics if metric.name == "mtu")
    later = host.cycle(4)
    assert next(metric.timestamp for metric in later.metrics if metric.name == "mtu") == first
    assert later.timestamp != first


def test_an_interface_that_is_renamed_keeps_no_old_name(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("eth0"))
    assert set(readings(host.collect(), "mtu")) == {("eth0",)}
    (tmp_path / "sys/class/net/eth0").rename(tmp_path / "sys/class/net/ens5")
    assert set(readings(host.collect(10), "mtu")) == {("ens5",)}


def test_the_speed_a_port_could_have(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("ens1", speed=10000) | _interface("ens2", speed=1000) | _interface("br0"))
    host.write({f"{_NET}/ens1/device/vendor": "0x15b3", f"{_NET}/ens2/device/vendor": "0x1af4"})
    host.write({"/ethtool/ens1": link_settings_answer(12, 31, 36), "/ethtool/ens2": link_settings_answer()})
    batch = host.collect()
    assert readings(batch, "speed_max") == {("ens1",): 100_000}
    (entry,) = missing_of(batch, "speed_max")
    assert (entry.state, entry.reason) == (Absence.UNSUPPORTED, "the driver lists no link modes known here: ens2")


def test_ports_of_another_namespace_are_not_asked(tmp_path: Path) -> None:
    Host(tmp_path).write({"/proc/1/net/dev": ""} | _interface("ens1"))
    (entry,) = missing_of(Host(tmp_path).collect(), "speed_max")
    assert (entry.state, entry.remedy) == (Absence.UNSUPPORTED, "run the container with the host's network")


def test_without_ports_there_is_no_speed_to_have(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("br0"))
    assert missing_of(host.collect(), "speed_max")[0].state is Absence.NOT_APPLICABLE


def test_pcie_links_of_adapters(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("ens1") | _interface("ens2") | _interface("vf0"))
    link: dict[str, str | bytes | float] = {"current_link_width": 8, "max_link_width": 16}
    link |= {"current_link_speed": "8.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe"}
    host.write({f"{_NET}/ens1/device/{file}": value for file, value in link.items()})
    host.write({f"{_NET}/vf0/device/current_link_width": 0, f"{_NET}/vf0/device/current_link_speed": "Unknown"})
    batch = host.collect()
    assert readings(batch, "pcie_link_width") == {("ens1",): 8}
    assert readings(batch, "pcie_link_width_max") == {("ens1",): 16}
    assert readings(batch, "pcie_link_speed") == {("ens1",): 8.0}
    assert readings(batch, "pcie_link_speed_max") == {("ens1",): 16.0}
    assert [(entry.state, entry.labels) for entry in missing_of(batch, "pcie_link_width")] == [
        (Absence.UNSUPPORTED, {"interface": "vf0"})
    ]


_BOND = """\
Bonding Mode: fault-tolerance (active-backup)
Currently Active Slave: ens1
MII Status: up

Slave Interface: ens1
MII Status: up
Link Failure Count: 0
Permanent HW addr: 02:00:00:00:00:01

Slave Interface: ens2
MII Status: down
Link Failure Count: 4
"""


def test_bonds(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/bonding/bond0": _BOND, "/proc/net/bonding/bond1": "junk"})
    host.write({"/proc/net/bonding/bond2": "Bonding Mode: x\n\nSlave Interface: ens9\n"})
    (tmp_path / "proc/net/bonding/bond3").mkdir()
    batch = host.collect()
    assert readings(batch, "bond_status") == {("bond0", "fault-tolerance (active-backup)"): 1.0}
    assert readings(batch, "bond_members") == {("bond0",): 2, ("bond2",): 1}
    assert readings(batch, "bond_members_up") == {("bond0",): 1}
    assert readings(batch, "bond_member_status") == {("bond0", "ens1"): 1.0, ("bond0", "ens2"): 0.0}
    assert readings(batch, "bond_link_failures") == {("bond0", "ens1"): 0, ("bond0", "ens2"): 4}
    states = {(entry.name, str(entry.labels)): entry.state for entry in batch.missing if entry.name.startswith("bond_")}
    assert states["bond_status", "{'interface': 'bond1'}"] is Absence.READ_ERROR
    assert states["bond_members", "{'interface': 'bond3'}"] is Absence.READ_ERROR
    assert states["bond_members_up", "{'interface': 'bond2'}"] is Absence.UNKNOWN
    assert states["bond_member_status", "{'interface': 'bond2', 'member': 'ens9'}"] is Absence.UNKNOWN


def test_no_bonds_is_not_applicable_and_unreadable_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path)
    assert {entry.state for entry in missing_of(host.collect(), "bond_status")} == {Absence.NOT_APPLICABLE}

    def refuse(_tree: FileTree, path: str) -> list[str]:
        raise NoData(Absence.NO_PERMISSION, path)

    monkeypatch.setattr(FileTree, "names", refuse)
    batch = Host(tmp_path).collect()
    assert {entry.state for entry in missing_of(batch, "bond_status")} == {Absence.NO_PERMISSION}
    assert {entry.state for entry in missing_of(batch, "ib_port_state")} == {Absence.NO_PERMISSION}


def test_no_address_of_an_interface_leaves_the_collector(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write(_interface("eth0", address="02:00:00:00:00:77") | {"/proc/net/bonding/bond0": _BOND})
    batch = host.collect()
    assert "02:00:00:00:00" not in repr(batch)


def test_a_name_that_is_no_utf_8_is_legible_wherever_it_is_told(tmp_path: Path) -> None:
    host = Host(tmp_path)
    name = b"\xff\xfeth".decode("utf-8", "surrogateescape")
    host.write(_interface(name, speed=1000, duplex="full", carrier_up_count=1, carrier_down_count=0))
    host.write({f"{_NET}/{name}/device/vendor": "0x8086"})
    host.write({f"{_NET}/{name}/device/{link}_link_{what}": 8 for link in ("current", "max") for what in ("width", "speed")})
    host.write({f"/proc/net/bonding/{name}": "junk", "/proc/net/bonding/bond0": _BOND})
    batch = host.collect()
    assert batch == msgspec.json.decode(msgspec.json.encode(batch), type=Batch)
    assert readings(batch, "speed") == {("\ufffd\ufffdth",): 1000}
    assert readings(batch, "interface_status") == {("\ufffd\ufffdth", "up"): 1.0}
    assert [entry.labels for entry in missing_of(batch, "bond_status")] == [{"interface": "\ufffd\ufffdth"}]
    (info,) = identity(host.machine)
    assert info.labels is not None
    assert info.labels["interface"] == "\ufffd\ufffdth"
