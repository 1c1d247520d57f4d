"""Traffic of the interfaces."""

from pathlib import Path

from nodeproof.errors import Absence
from support.hosts_network import NAMES, write_network
from support.network import DEV_HEADER, Host, dev_line, missing_of, readings

_DEV = "/proc/net/dev"


def _host(root: Path, *lines: str) -> Host:
    host = Host(root)
    host.write({_DEV: DEV_HEADER + "".join(lines)})
    return host


def test_defect_7_rates_divide_by_measured_time_not_by_three_seconds(tmp_path: Path) -> None:
    host = _host(tmp_path, dev_line("eth0", 1000, 10, 0, 0, 4000, 40))
    host.cycle(0)
    host.write({_DEV: DEV_HEADER + dev_line("eth0", 6000, 20, 0, 0, 4500, 41)})
    batch = host.cycle(2.5)
    # (6000-1000)/2.5 = 2000, (4500-4000)/2.5 = 200; (20-10)/2.5 = 4, (41-40)/2.5 = 0.4
    assert readings(batch, "throughput") == {("eth0", "rx"): 2000.0, ("eth0", "tx"): 200.0}
    assert readings(batch, "packet_count") == {("eth0", "rx"): 4.0, ("eth0", "tx"): 0.4}
    assert readings(batch, "rx_bytes_total") == {("eth0",): 6000}
    assert readings(batch, "tx_bytes_total") == {("eth0",): 4500}


def test_errors_are_the_growth_since_the_cycle_before_and_totals_stand_beside(tmp_path: Path) -> None:
    host = _host(tmp_path, dev_line("eth0", 1, 1, 100, 200, 1, 1, 300, 400))
    first = host.cycle(0)
    assert readings(first, "error_count") == {}
    host.write({_DEV: DEV_HEADER + dev_line("eth0", 1, 1, 101, 202, 1, 1, 303, 404)})
    batch = host.cycle(5)
    types = ("rx_err", "rx_drop", "tx_err", "tx_drop")
    assert readings(batch, "error_count") == dict(zip([("eth0", kind) for kind in types], (1, 2, 3, 4), strict=True))
    totals = readings(batch, "error_total")
    assert [totals["eth0", kind] for kind in types] == [101, 202, 303, 404]
    assert totals["eth0", "rx_frame"] == 0


def test_a_first_reading_is_unknown_and_never_zero(tmp_path: Path) -> None:
    batch = _host(tmp_path, *(dev_line(f"eth{number}", 5) for number in range(6))).cycle(0)
    assert readings(batch, "throughput") == {}
    (entry,) = missing_of(batch, "throughput")
    assert (entry.state, entry.labels) == (Absence.UNKNOWN, None)
    assert entry.reason == "needs a second reading of /proc/net/dev: eth0, eth1, eth2 and 3 more"


def test_defect_9_a_counter_that_steps_back_is_a_restart_and_no_negative_rate(tmp_path: Path) -> None:
    host = _host(tmp_path, dev_line("eth0", 9000, 90, 5, 0, 10, 1), dev_line("eth1", 0))
    host.cycle(0)
    host.write({_DEV: DEV_HEADER + dev_line("eth0", 1000, 10, 0, 0, 20, 2) + dev_line("eth1", 8)})
    batch = host.cycle(1)
    assert readings(batch, "throughput") == {("eth0", "tx"): 10.0, ("eth1", "rx"): 8.0, ("eth1", "tx"): 0.0}
    assert ("eth0", "rx_err") not in readings(batch, "error_count")
    reasons = {(entry.name, entry.reason) for entry in batch.missing if "stepped back" in entry.reason}
    assert reasons == {
        (name, "the counter stepped back: the interface or its driver has restarted: eth0")
        for name in ("throughput", "packet_count", "error_count")
    }
    host.write({_DEV: DEV_HEADER + dev_line("eth0", 1500, 10, 0, 0, 20, 2)})
    assert readings(host.cycle(1), "throughput")["eth0", "rx"] == 500.0


def test_a_counter_gone_wild_is_refused_not_clamped(tmp_path: Path) -> None:
    host = _host(tmp_path, dev_line("eth0", 1, 1))
    host.cycle(0)
    host.write({_DEV: DEV_HEADER + dev_line("eth0", 2**63, 2)})
    batch = host.cycle(1)
    assert readings(batch, "throughput") == {("eth0", "tx"): 0.0}
    assert [entry.state for entry in missing_of(batch, "throughput")] == [Absence.READ_ERROR]


def test_loopback_and_plumbing_are_left_out(tmp_path: Path) -> None:
    host = _host(tmp_path, *(dev_line(name, 1) for name in ("lo", "veth1", "cali2", "br-3", "eth0", "lom1")))
    assert readings(host.cycle(0), "rx_bytes_total") == {("eth0",): 1, ("lom1",): 1}


def test_only_loopback_is_said_and_not_silence(tmp_path: Path) -> None:
    batch = _host(tmp_path, dev_line("lo", 1)).cycle(0)
    assert {entry.state for entry in missing_of(batch, "throughput")} == {Absence.NOT_APPLICABLE}


def test_interfaces_come_and_go_without_leaving_anything(tmp_path: Path) -> None:
    write_network(str(tmp_path), veths=1000)
    host = Host(tmp_path)
    assert len(readings(host.cycle(0), "rx_bytes_total")) == len(NAMES)
    traffic = host.collector._groups[0].read.__self__  # type: ignore[attr-defined] # what is kept between cycles
    for number in range(20):
        host.write({_DEV: DEV_HEADER + dev_line(f"hot{number}", 1000 * number)})
        batch = host.cycle(1)
        assert readings(batch, "throughput") == {}
        assert list(traffic._interfaces) == [f"hot{number}"]
    # Back under an old name with a greater counter: a new interface all the same, so no spike.
    host.write({_DEV: DEV_HEADER + dev_line("hot0", 999_999)})
    assert readings(host.cycle(1), "throughput") == {}


def test_an_unreadable_file_costs_one_cycle_and_time_goes_on_being_measured(tmp_path: Path) -> None:
    host = _host(tmp_path, dev_line("eth0", 1000))
    host.cycle(0)
    host.write({_DEV: "garbage\n"})
    batch = host.cycle(1)
    assert {entry.state for entry in missing_of(batch, "throughput")} == {Absence.READ_ERROR}
    host.write({_DEV: DEV_HEADER + dev_line("eth0", 5000)})
    assert readings(host.cycle(1), "throughput")["eth0", "rx"] == 2000.0  # 4000 bytes in 2 s


def test_two_readings_in_one_moment_give_no_rate(tmp_path: Path) -> None:
    host = _host(tmp_path, dev_line("eth0", 1000))
    host.cycle(0)
    assert readings(host.cycle(0), "throughput") == {}


def test_the_hosts_namespace_is_read_from_process_1_where_its_files_are_mounted_elsewhere(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({"/proc/net/dev": DEV_HEADER + dev_line("eth0", 1)})
    host.write({"/proc/1/net/dev": DEV_HEADER + dev_line("ens1", 7)})
    inside = Host(tmp_path)
    assert readings(inside.cycle(0), "rx_bytes_total") == {("ens1",): 7}
