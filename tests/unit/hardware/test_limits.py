"""Limits of hardware classes: pinned values, and each contradiction refused by name."""

import math
import tomllib
from typing import Any

import msgspec
import pytest

from nodeproof.errors import ConfigError
from nodeproof.hardware.class_ids import KNOWN
from nodeproof.hardware.limits import LIMITS, ceilings_of, limits_of, read_limits
from nodeproof.hardware.policy import Ceilings

DOCUMENT = """
[benchmarks.limits.thermal]
chassis_park_c = 80
chassis_resume_c = 70
chassis_equivalence_delta_c = 15
gpu_ceiling_c = 75
[benchmarks.limits.memory]
min_free_fraction = 0.85
[benchmarks.limits.timing]
serve_allowance_s = 600
boot_timeout_s = 900
shard_overhead_s = 420
shard_floor_s = 300
build_allowance_s = 1800
[benchmarks.limits.equivalence]
clock_spread = 0.01
mem_spread = 0.05
"""


def changed(table: str, key: str, value: float) -> dict[str, Any]:
    document = tomllib.loads(DOCUMENT)
    document["benchmarks"]["limits"][table][key] = value
    return document


def test_the_committed_class_has_the_reference_values() -> None:
    assert read_limits(tomllib.loads(DOCUMENT)) == LIMITS["gb10"]
    assert ceilings_of("gb10") == Ceilings(gpu_c=75, chassis_c=80)


def test_no_other_class_declares_any_and_none_is_borrowed() -> None:
    for name in (*KNOWN, "cpu-epyc"):
        if name != "gb10":
            assert ceilings_of(name) == Ceilings()


def test_two_refusals_are_told_apart() -> None:
    assert limits_of("gb10") is LIMITS["gb10"]
    with pytest.raises(ConfigError, match="known, and nothing was measured"):
        limits_of("h200")
    with pytest.raises(ConfigError, match="no known class"):
        limits_of("GB10")


@pytest.mark.parametrize("document", [{}, {"benchmarks": {}}, {"benchmarks": 3}, {"other": 1}])
def test_a_file_without_the_table_declares_nothing(document: dict[str, object]) -> None:
    assert read_limits(document) is None


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("thermal", "chassis_resume_c", 80),
        ("thermal", "chassis_equivalence_delta_c", 0),
        ("thermal", "gpu_ceiling_c", math.nan),
        ("memory", "min_free_fraction", 0),
        ("memory", "min_free_fraction", 1),
        ("equivalence", "clock_spread", 0),
        ("equivalence", "mem_spread", -1),
        ("timing", "serve_allowance_s", 0),
        ("timing", "boot_timeout_s", 0),
        ("timing", "build_allowance_s", math.inf),
        ("timing", "shard_overhead_s", -1),
        ("timing", "shard_floor_s", -1),
    ],
)
def test_each_contradiction_is_refused_by_name(table: str, key: str, value: float) -> None:
    with pytest.raises(ConfigError) as caught:
        read_limits(changed(table, key, value), "HARDWARE.toml")
    assert caught.value.path == f"benchmarks.limits.{table}.{key}"


def test_unknown_missing_and_mistyped_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match="park"):
        read_limits(changed("thermal", "park", 1))
    document = tomllib.loads(DOCUMENT)
    del document["benchmarks"]["limits"]["timing"]
    with pytest.raises(ConfigError, match="timing"):
        read_limits(document)
    document = changed("memory", "min_free_fraction", 1)
    document["benchmarks"]["limits"]["memory"]["min_free_fraction"] = "most"
    with pytest.raises(ConfigError, match="min_free_fraction"):
        read_limits(document)


def test_limits_survive_json() -> None:
    kind = type(LIMITS["gb10"])
    assert msgspec.json.decode(msgspec.json.encode(LIMITS["gb10"]), type=kind) == LIMITS["gb10"]
