"""What was not read anew is not reckoned anew, and the verdict is the same as if it were."""

from hypothesis import given
from hypothesis import strategies as st

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.health import Evaluator, Readings
from nodeproof.health.growth import Growth
from nodeproof.health.rules import How, Probe
from nodeproof.health.sample import Moment, Seen, Sight, look
from nodeproof.model.metric import Batch, Metric, Missing

START = Instant(1_790_000_000.0, 1_000.0)


def later(seconds: float) -> Instant:
    return Instant(START.wall_s + seconds, START.mono_s + seconds)


def see(probe: Probe, batch: Batch, seen: dict[int, Seen], growth: Growth | None = None, at: Instant = START) -> Sight:
    return look(probe, Moment(Readings({batch.component: batch}), growth or Growth(), at, {batch.component}, seen))


def usage(value: float, at: Instant = START) -> Metric:
    return Metric("disk", "space_usage", value, "%", {"device": "sda"}, rfc3339(at.wall_s))


PROBE = Probe("disk", ("space_usage", "inode_usage"), entity=("device",))


def test_the_same_readings_give_the_same_sight() -> None:
    kept = usage(50.0)
    seen: dict[int, Seen] = {}
    first = see(PROBE, Batch("disk", "", 1.0, [kept], []), seen)
    assert [sample.value for sample in first.samples] == [50.0]
    assert see(PROBE, Batch("disk", "", 2.0, [kept], []), seen) is first


def test_an_equal_reading_taken_anew_is_another_sight() -> None:
    seen: dict[int, Seen] = {}
    first = see(PROBE, Batch("disk", "", 1.0, [usage(50.0)], []), seen)
    second = see(PROBE, Batch("disk", "", 2.0, [usage(50.0)], []), seen)
    assert second == first
    assert second is not first


def test_an_absence_that_comes_or_goes_is_another_sight() -> None:
    kept = usage(50.0)
    seen: dict[int, Seen] = {}
    absence = Missing("disk", "inode_usage", Absence.READ_ERROR, "Input/output error", {"device": "sdb"})
    assert see(PROBE, Batch("disk", "", 1.0, [kept], []), seen).known == 1.0
    assert see(PROBE, Batch("disk", "", 2.0, [kept], [absence]), seen).unread == [absence]
    assert see(PROBE, Batch("disk", "", 3.0, [kept], []), seen).unread == []


def test_growth_fades_though_nothing_is_read_anew() -> None:
    probe = Probe("disk", ("crc",), how=How.GROWTH, window_s=60.0)
    growth = Growth()
    seen: dict[int, Seen] = {}
    low, high = (Metric("disk", "crc", value, "count", None, str(value)) for value in (5.0, 8.0))
    gains = []
    for seconds, metric in ((0.0, low), (10.0, high), (20.0, high), (80.0, high), (90.0, high)):
        at = later(seconds)
        gains.append(
            [sample.value for sample in see(probe, Batch("disk", "", at.mono_s, [metric], []), seen, growth, at).samples]
        )
    assert gains == [[], [3.0], [3.0], [0.0], [0.0]]


# Series with the kinds of rule that look at them: thresholds, growth of counters, gains, pools, factors, peaks.
SERIES: tuple[tuple[str, str, dict[str, str], tuple[float, ...]], ...] = (
    ("cpu", "usage", {"core": "total"}, (10.0, 85.0, 99.0)),
    ("cpu", "temperature", {"cpu": "0", "sensor": "Package"}, (50.0, 91.0, 99.0)),
    ("cpu", "load_average", {"interval": "5m"}, (0.5, 9.0, 40.0)),
    ("cpu", "core_num", {}, (2.0, 8.0)),
    ("cpu", "cpu_uce_errors", {"cpu": "0"}, (0.0, 1.0)),
    ("memory", "usage", {}, (10.0, 91.0, 97.0)),
    ("memory", "ecc_ce_errors", {"mc": "mc0"}, (0.0, 3.0, 200.0)),
    ("disk", "space_detail", {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4", "field": "total"}, (100.0, 200.0)),
    ("disk", "space_detail", {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4", "field": "used"}, (50.0, 95.0)),
    ("disk", "smart_status", {"device": "sda", "status": "PASSED"}, (1.0, 0.0)),
    ("disk", "smart_crc_errors", {"device": "sda"}, (0.0, 5.0, 6.0)),
    ("network", "error_count", {"interface": "eth0", "type": "rx_err"}, (0.0, 150.0)),
    ("network", "link_lost", {"interface": "eth0"}, (0.0, 1.0)),
    ("network", "speed", {"interface": "eth0"}, (100.0, 1000.0)),
)

steps = st.lists(
    st.tuples(
        st.sampled_from((1.0, 3.0, 40.0, 4000.0)),
        st.dictionaries(
            st.integers(0, len(SERIES) - 1),
            st.one_of(st.integers(0, 2), st.sampled_from((Absence.STALE, Absence.NOT_APPLICABLE, None))),
            max_size=6,
        ),
    ),
    min_size=1,
    max_size=12,
)


@given(steps, st.booleans())
def test_the_verdict_is_that_of_an_evaluator_that_looks_at_everything_each_time(
    moves: list[tuple[float, dict[int, int | Absence | None]]],
    confirm: bool,  # noqa: FBT001 - drawn
) -> None:
    quick, thorough = Evaluator(confirm=confirm), Evaluator(confirm=confirm)
    held: dict[int, Metric | Missing] = {}
    at = START
    for wait_s, changes in moves:
        at = Instant(at.wall_s + wait_s, at.mono_s + wait_s)
        for number, change in changes.items():
            component, name, labels, values = SERIES[number]
            if change is None:
                held.pop(number, None)
            elif isinstance(change, Absence):
                held[number] = Missing(component, name, change, "told by the test", labels or None, "/file")
            else:
                held[number] = Metric(component, name, values[change % len(values)], "", labels or None, rfc3339(at.wall_s))
        batches = {
            component: Batch(
                component,
                rfc3339(at.wall_s),
                at.mono_s,
                [one for one in held.values() if isinstance(one, Metric) and one.component == component],
                [one for one in held.values() if isinstance(one, Missing) and one.component == component],
            )
            for component in ("cpu", "memory", "disk", "network")
        }
        for evaluator in (quick, thorough):
            for batch in batches.values():
                evaluator.note(batch)
        thorough._seen.clear()
        thorough._latches._fed.clear()
        thorough._watch._looks.clear()
        assert quick.evaluate(Readings(batches), at) == thorough.evaluate(Readings(batches), at)


def test_a_component_without_a_fresh_batch_is_left_alone() -> None:
    seen: dict[int, Seen] = {}
    first = see(PROBE, Batch("disk", "", 1.0, [usage(50.0)], []), seen)
    fresh = Readings({"disk": Batch("disk", "", 2.0, [usage(99.0)], [])})
    assert look(PROBE, Moment(fresh, Growth(), START, {"cpu"}, seen)) is first
    assert look(PROBE, Moment(fresh, Growth(), START, {"disk"}, seen, {"disk": {"inode_usage"}})) is not first
    assert look(PROBE, Moment(fresh, Growth(), START, {"disk"}, seen)).samples[0].value == 99.0
