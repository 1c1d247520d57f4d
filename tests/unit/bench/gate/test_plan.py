"""What is owed, and with which parameters."""

import pytest

from nodeproof.bench.gate.judgement import Judgement, Standing
from nodeproof.bench.gate.plan import Unit, fill_thresholds, plan_entry
from nodeproof.bench.gate.schema import Entry
from nodeproof.errors import ConfigError
from support.gate import descriptor, entry

TOY = descriptor("toy", threshold_params=(("min_rate", "rate"), ("max_wait", "wait_ms")))


def units(one: Entry, standing: Standing, *, again: bool = False, owed: tuple[list[int], int] = ([], 1)) -> list[Unit]:
    judgement = Judgement(place="", id="toy", title="", required=True, standing=standing, reasons=["why not"])
    return plan_entry(one, TOY, judgement, lambda: owed, 90.0, again=again)


def test_what_is_missing_or_proves_nothing_is_owed_and_a_failure_only_again() -> None:
    for standing, count in (
        (Standing.PASS, 0),
        (Standing.MISSING, 1),
        (Standing.REFUSED, 1),
        (Standing.FAIL, 0),
        (Standing.UNMEASURED, 0),
    ):
        assert len(units(entry(), standing)) == count, standing
    assert len(units(entry(), Standing.FAIL, again=True)) == 1
    assert units(entry("required = false"), Standing.MISSING) == []


def test_a_unit_says_what_and_why() -> None:
    (unit,) = units(entry("param_overrides = {concurrency = 4}"), Standing.MISSING)
    assert unit.params == {"concurrency": "4", "min_rate": "20"}
    assert (unit.title, unit.why, unit.expected_s) == ("toy", "why not", 90.0)
    assert unit.deadline_s(3.0) == 870.0


def test_shards_that_are_owed() -> None:
    found = units(entry("shards = 4"), Standing.MISSING, owed=([1, 3], 4))
    assert [(unit.shard, unit.params["shard"], unit.expected_s) for unit in found] == [("1/4", "1/4", 22.5), ("3/4", "3/4", 22.5)]
    assert found[0].title == "toy shard 1/4"
    again = units(entry("shards = 2"), Standing.FAIL, again=True, owed=([], 4))
    assert [unit.shard for unit in again] == ["0/2", "1/2"]


@pytest.mark.parametrize(
    ("bounds", "filled"),
    [
        ("[benchmarks.metrics.rate]\nmin = 20\nnoise = 0.5", {"min_rate": "19.5"}),
        ("[benchmarks.metrics.rate]\nmax = 20\nnoise = 0.5", {"min_rate": "20.5"}),
        ("[benchmarks.metrics.rate]\nmin = 0.1\nnoise = 0.005", {"min_rate": "0.095"}),
        ("[benchmarks.metrics.rate]\nmin = 1234567.25", {"min_rate": "1234567.25"}),
        ("[benchmarks.metrics.rate]\nmin = 1\n[benchmarks.metrics.wait_ms]\nmax = 8", {"min_rate": "1", "max_wait": "8"}),
        ("[benchmarks.metrics.other]\nmin = 1", {}),
    ],
)
def test_parameters_that_follow_from_bounds(bounds: str, filled: dict[str, str]) -> None:
    assert fill_thresholds(entry(metrics=bounds), TOY) == filled


def test_a_bound_on_both_sides_gives_no_parameter() -> None:
    with pytest.raises(ConfigError, match=r"benchmarks\[0\].metrics.rate: has min and max"):
        fill_thresholds(entry(metrics="[benchmarks.metrics.rate]\nmin = 1\nmax = 2"), TOY)
