"""Names of hardware classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.hardware.class_ids import KNOWN, class_id, cpu_class, perf_class


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Strix Halo", "strix"),
        ("AMD Strix HIP", "strix-hip"),
        ("NVIDIA A100-SXM4-80GB", "a100sxm480gb"),
        ("Ascend910B2", "ascend910b2"),
        ("NVIDIA", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ("H100NVL", "h100nvl"),
    ],
)
def test_a_known_id_is_a_whole_word_of_the_name(name: str | None, expected: str) -> None:
    assert class_id(name) == expected


@pytest.mark.parametrize("known", KNOWN)
def test_every_id_is_its_own(known: str) -> None:
    assert class_id(known.upper()) == known


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Intel(R) Xeon(R) Gold 5122 CPU @ 3.60GHz", "cpu-xeongold5122"),
        ("AMD EPYC 7763 64-Core Processor", "cpu-epyc776364"),
        ("Kunpeng-920", "cpu-kunpeng920"),
        ("", "unknown"),
        (None, "unknown"),
        ("@ 3 GHz", "unknown"),
    ],
)
def test_a_box_without_accelerators_is_called_by_its_processor(model: str | None, expected: str) -> None:
    assert cpu_class(model) == expected


def test_unknown_halves_stay_apart() -> None:
    assert (perf_class("gb10", None), perf_class("", "a")) == ("gb10@unknown", "unknown@a")


@given(st.text(max_size=60))
def test_any_name_has_a_plain_id(name: str) -> None:
    for made in (class_id(name), cpu_class(name)):
        assert made
        assert all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in made)
