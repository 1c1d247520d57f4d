"""Energy of a run by rail (bench.md 3.9)."""

import pytest

from nodeproof.hardware.energy import Power, Rails, rail_energy
from nodeproof.model.hardware import DeviceState


def chip(number: int, watts: float | None, at_s: float | None = None) -> DeviceState:
    return DeviceState(f"npu{number}", power_w=watts, power_rail="npu_rail" if watts is not None else "", power_at_s=at_s)


def test_readings_hold_until_the_next_and_the_first_holds_back() -> None:
    """10..20 s: 100 W until 14, 300 W until 18, 200 W until 20."""
    keys = rail_energy("npu_rail", [Power(12.0, 100.0), Power(14.0, 300.0), Power(18.0, 200.0)], 10.0, 20.0)
    assert keys == {
        "npu_rail_energy_j": 400.0 + 1200.0 + 400.0,
        "npu_rail_mean_power_w": 200.0,
        "npu_rail_max_power_w": 300.0,
        "npu_rail_power_samples": 3.0,
        "npu_rail_energy_window_s": 10.0,
    }


@pytest.mark.parametrize(("begin_s", "end_s"), [(0.0, 11.0), (13.0, 20.0), (12.0, 12.0), (12.5, 12.1)])
def test_without_a_reading_inside_nothing_is_known(begin_s: float, end_s: float) -> None:
    assert rail_energy("npu_rail", [Power(12.0, 100.0)], begin_s, end_s) == {}


def test_devices_of_a_rail_add_up_and_rails_stay_apart() -> None:
    rails = Rails()
    board = DeviceState("gpu0", power_w=50.0, power_rail="gpu_rail")
    for at_s in (0.0, 1.0):
        rails.take(at_s, [chip(0, 100.0), chip(1, 150.0), board])
    keys = rails.energy(0.0, 2.0)
    assert (keys["npu_rail_energy_j"], keys["gpu_rail_energy_j"]) == (500.0, 100.0)


def test_a_look_that_lacks_one_device_is_no_reading() -> None:
    rails = Rails()
    rails.take(0.0, [chip(0, 100.0), chip(1, 100.0)])
    rails.take(1.0, [chip(0, 100.0), chip(1, None)])
    rails.take(2.0, [chip(0, 100.0), chip(1, 100.0)])
    keys = rails.energy(0.0, 2.0)
    assert (keys["npu_rail_power_samples"], keys["npu_rail_energy_j"]) == (2.0, 400.0)


def test_the_same_reading_twice_is_one() -> None:
    rails = Rails()
    for at_s in (1.0, 1.5, 2.0):
        rails.take(at_s, [chip(0, 100.0, 1.0)])
    assert rails.energy(0.0, 2.0)["npu_rail_power_samples"] == 1.0


def test_a_long_run_is_thinned_and_its_energy_stays() -> None:
    rails = Rails()
    for number in range(10_000):
        rails.take(float(number), [chip(0, 100.0)])
    keys = rails.energy(0.0, 10_000.0)
    assert keys["npu_rail_energy_j"] == pytest.approx(1_000_000.0)
    assert keys["npu_rail_power_samples"] < 4096


def test_without_power_there_are_no_keys() -> None:
    rails = Rails()
    rails.take(0.0, [chip(0, None)])
    assert rails.energy(0.0, 1.0) == {}
