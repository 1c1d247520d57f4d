import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.rapl import ZoneName, energy_used_j, parse_energy_uj, zone_name

_RANGE_UJ = 262_143_328_850


@pytest.mark.parametrize(
    ("name", "parent", "expected"),
    [
        ("package-0", "", ZoneName("0", "package")),
        ("package-1-die-1", "", ZoneName("1", "package-die-1")),
        ("dram", "package-1", ZoneName("1", "dram")),
        ("core", "package-1-die-1", ZoneName("1", "die-1-core")),
        ("psys", "", ZoneName("", "psys")),
        ("dram", "psys", ZoneName("", "dram")),
    ],
)
def test_zone_names(name: str, parent: str, expected: ZoneName) -> None:
    assert zone_name(name, parent) == expected


def test_energy_between_two_readings() -> None:
    # 1,500 J in 10 s
    assert energy_used_j(1_000_000_000, 2_500_000_000, _RANGE_UJ, 10.0) == pytest.approx(1500.0)


def test_energy_over_the_end_of_the_range() -> None:
    # 100 J up to the end of the range and 50 J after it
    assert energy_used_j(_RANGE_UJ - 100_000_000, 50_000_000, _RANGE_UJ, 1.0) == pytest.approx(150.0)


@pytest.mark.parametrize(
    ("before", "now", "range_uj", "elapsed_s"),
    [
        (5, 6, _RANGE_UJ, 0.0),
        (6, 5, 0, 1.0),  # stepped back, and nobody knows the range
        (0, 2_001_000_000, _RANGE_UJ, 1.0),  # 2,001 W
        (200_000_000_000, 5, _RANGE_UJ, 10.0),  # set anew: 62 kJ in 10 s
        (5, 6, _RANGE_UJ, 140.0),  # at 2 kW it goes round in 131 s
    ],
)
def test_what_cannot_be_told(before: int, now: int, range_uj: int, elapsed_s: float) -> None:
    assert energy_used_j(before, now, range_uj, elapsed_s) is None


def test_counters() -> None:
    assert parse_energy_uj(b"65532610987\n", "e") == 65_532_610_987
    for raw in (b"", b"-1", b"1.5", b"9" * 30, b"\xb2"):
        with pytest.raises(ParseError, match="microjoules"):
            parse_energy_uj(raw, "e")


@given(st.binary(max_size=30))
def test_any_bytes_give_a_counter_or_a_parse_error(raw: bytes) -> None:
    try:
        assert parse_energy_uj(raw, "e") >= 0
    except ParseError:
        return


@given(st.integers(0, _RANGE_UJ - 1), st.integers(0, 1_000_000_000))
def test_wherever_the_counter_stands_the_energy_is_the_same(before: int, used_uj: int) -> None:
    assert energy_used_j(before, (before + used_uj) % _RANGE_UJ, _RANGE_UJ, 1.0) == pytest.approx(used_uj / 1e6)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_name_has_an_answer(name: str, parent: str) -> None:
    assert zone_name(name, parent).domain or not name
