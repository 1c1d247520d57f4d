"""Time as a thing that is passed in."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.clock import Instant, SystemClock, rfc3339, rfc3339_parse


def test_both_clocks_of_the_machine() -> None:
    before = (time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))
    now = SystemClock().now()
    after = (time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))
    assert before[0] <= now.wall_s <= after[0]
    assert before[1] <= now.mono_s <= after[1]


def test_sleep_waits_at_least_so_long() -> None:
    clock = SystemClock()
    began = clock.now().mono_s
    clock.sleep(0.01)
    assert clock.now().mono_s - began >= 0.01


def test_an_instant_names_its_clocks() -> None:
    assert Instant(1.0, 2.0).wall_s == 1.0
    assert Instant(1.0, 2.0).mono_s == 2.0


@pytest.mark.parametrize(
    ("text", "wall_s"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-01T00:00:01.5z", 1.5),
        ("2026-11-30T22:20:41.123456+00:00", 1796077241.123456),
        ("2026-11-30T22:20:41.123456789+08:00", 1796048441.123456),
        ("2026-11-30T22:20:41.1-05:30", 1796097041.1),
    ],
)
def test_reading_rfc3339(text: str, wall_s: float) -> None:
    assert rfc3339_parse(text) == pytest.approx(wall_s, abs=1e-6)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-30T22:20:41", "2026-11-30T22:20:41.5", "2026-13-30T22:20:41Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        rfc3339_parse(text)


def test_a_time_without_offset_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'2026-11-30T22:20:41' has no offset from UTC"):
        rfc3339_parse("2026-11-30T22:20:41")


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2026-11-30T22:20:41.250000+00:00"),
        ("Asia/Shanghai", "2026-12-01T06:20:41.250000+08:00"),
        ("America/New_York", "2026-11-30T17:20:41.250000-05:00"),
    ],
)
def test_writing_rfc3339_in_local_time(zone: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert rfc3339(1796077241.25) == text
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.floats(0, 4e9, allow_nan=False))
def test_round_trip_to_a_microsecond(wall_s: float) -> None:
    assert rfc3339_parse(rfc3339(wall_s)) == pytest.approx(wall_s, abs=1e-6)
