"""InfiniBand and RoCE ports."""

import shutil
from pathlib import Path

import pytest

from nodeproof.errors import Absence
from support.hosts import KEPT
from support.network import Host, missing_of, readings

_PORTS = "/sys/class/infiniband"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """The kept host ``ib-hca``."""
    shutil.copytree(KEPT / "ib-hca", tmp_path / "host", symlinks=True)
    return Host(tmp_path / "host")


def _counter(device: str, name: str) -> str:
    return f"{_PORTS}/{device}/ports/1/counters/{name}"


def test_states_and_rates(host: Host) -> None:
    batch = host.collect()
    assert readings(batch, "ib_port_state") == {
        ("mlx5_0", "1", "InfiniBand", "ACTIVE"): 1.0,
        ("mlx5_1", "1", "InfiniBand", "ACTIVE"): 1.0,
        ("mlx5_2", "1", "Ethernet", "DOWN"): 0.0,
    }
    assert readings(batch, "ib_physical_state")["mlx5_2", "1", "Disabled"] == 0.0
    # The kernel says "10 Gb/sec (4X SDR)" of the port without a link: that is no reading.
    assert readings(batch, "ib_rate") == {("mlx5_0", "1", "EDR"): 100_000.0, ("mlx5_1", "1", "EDR"): 100_000.0}
    assert readings(batch, "ib_width") == {("mlx5_0", "1"): 4, ("mlx5_1", "1"): 4}
    assert [entry.labels for entry in missing_of(batch, "ib_rate")] == [{"device": "mlx5_2", "port": "1"}]


def test_case_30_saturated_counters_are_unknown_and_named(host: Host) -> None:
    host.collect()
    batch = host.collect(10)
    stuck = {"port_xmit_wait", "link_downed", "port_xmit_discards", "excessive_buffer_overrun_errors"}
    assert readings(batch, "ib_saturated") == {("mlx5_1", "1", name): 1.0 for name in stuck}
    errors = {kind for device, _, kind in readings(batch, "ib_error_total") if device == "mlx5_1"}
    assert errors.isdisjoint(stuck)
    assert ("mlx5_1", "1") not in readings(batch, "ib_xmit_wait_total")
    for metric in ("ib_error_total", "ib_errors"):
        told = {(entry.labels or {})["type"]: entry for entry in missing_of(batch, metric) if "type" in (entry.labels or {})}
        assert set(told) == stuck - {"port_xmit_wait"}
        assert {(entry.state, entry.reason) for entry in told.values()} == {(Absence.UNKNOWN, "counter saturated, reset needed")}
        assert {entry.remedy for entry in told.values()} == {"reset the port's counters (perfquery -R)"}
    # 205143497464492 words of 4 bytes
    assert readings(batch, "ib_data_total")["mlx5_1", "1", "tx"] == 820_573_989_857_968
    assert readings(batch, "ib_error_total")["mlx5_1", "1", "symbol_error"] == 0


def test_a_counter_that_reaches_its_end_and_is_reset_gives_no_false_rate(host: Host) -> None:
    seen = []
    for value in (254, 255, 0, 2):
        host.write({_counter("mlx5_0", "link_downed"): value})
        seen.append(readings(host.collect(10), "ib_errors").get(("mlx5_0", "1", "link_downed")))
    assert seen == [None, None, None, 2]


def test_growth_between_two_answers_by_measured_time(host: Host) -> None:
    first = host.collect()
    assert readings(first, "ib_errors") == {}
    host.write({_counter("mlx5_0", "port_rcv_data"): 1_000_000 + 5_000, _counter("mlx5_0", "symbol_error"): 8})
    batch = host.collect(20)
    assert readings(batch, "ib_throughput")["mlx5_0", "1", "rx"] == 1000.0  # 5000 words * 4 bytes / 20 s
    assert readings(batch, "ib_throughput")["mlx5_0", "1", "tx"] == 0.0
    assert readings(batch, "ib_errors")["mlx5_0", "1", "symbol_error"] == 5  # 8 - 3
    assert readings(batch, "ib_packet_total")["mlx5_0", "1", "tx"] == 8000
    assert readings(batch, "ib_xmit_wait_total")["mlx5_0", "1"] == 77


def test_hw_counters_without_the_drivers_own_settings(host: Host) -> None:
    counters = {name: value for (device, _, name), value in readings(host.collect(), "ib_hw_total").items() if device == "mlx5_2"}
    assert {name: value for name, value in counters.items() if value} == {
        "out_of_sequence": 12,
        "packet_seq_err": 5,
        "local_ack_timeout_err": 2,
        "np_cnp_sent": 9001,
        "rp_cnp_handled": 8002,
        "out_of_buffer": 4,
    }
    assert "lifespan" not in counters


def test_what_a_port_does_not_tell_is_missing(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.write({f"{_PORTS}/a/ports/1/state": "4: ACTIVE", f"{_PORTS}/a/ports/1/counters/symbol_error": "N/A (no PMA)"})
    host.write({f"{_PORTS}/b/ports/1/phys_state": "5: LinkUp", f"{_PORTS}/c/ports/1/state": "4: ACTIVE"})
    host.write({f"{_PORTS}/c/ports/1/rate": "25 Gb/sec", f"{_PORTS}/c/ports/1/link_layer": "Ethernet"})
    batch = host.collect()
    states = {(entry.name, (entry.labels or {}).get("device")): entry.state for entry in batch.missing}
    assert states["ib_rate", "a"] is Absence.UNSUPPORTED
    assert states["ib_physical_state", "a"] is Absence.READ_ERROR
    assert states["ib_port_state", "b"] is Absence.READ_ERROR
    assert states["ib_width", "c"] is Absence.UNSUPPORTED
    assert states["ib_error_total", "a"] is Absence.UNSUPPORTED
    assert states["ib_hw_total", "a"] is Absence.UNSUPPORTED
    assert readings(batch, "ib_rate") == {("c", "1"): 25_000.0}
    assert readings(batch, "ib_error_total") == {}


def test_no_adapter_is_not_applicable(tmp_path: Path) -> None:
    assert {entry.state for entry in missing_of(Host(tmp_path).collect(), "ib_port_state")} == {Absence.NOT_APPLICABLE}


def test_an_adapter_that_is_removed_leaves_nothing(host: Host, tmp_path: Path) -> None:
    host.collect()
    shutil.rmtree(tmp_path / "host/sys/class/infiniband/mlx5_1")
    batch = host.collect(10)
    assert {device for device, *_ in readings(batch, "ib_data_total")} == {"mlx5_0", "mlx5_2"}
    assert all((entry.labels or {}).get("device") != "mlx5_1" for entry in batch.missing)
