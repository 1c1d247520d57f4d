"""Equal kernel events become one; link flaps are counted and clear."""

import msgspec
import pytest

from nodeproof.faults.coalesce import Coalescer, FlapPolicy, LinkChange, link_flap
from nodeproof.model.event import EventKind, KernelEvent, Severity
from nodeproof.sources import kmsg
from nodeproof.sources.kernel_events import classify
from support.kernel_log import fixture, record, records_of_dmesg


def _event(
    device: str = "a", *, at_s: float = 1.0, severity: Severity = Severity.WARNING, kind: EventKind = EventKind.XID
) -> KernelEvent:
    return KernelEvent(kind, severity, device, "1", "text", 1, at_s, 0, True)


def test_storm_of_equal_xids_is_one_event() -> None:
    """Case 16: 10,000 lines of one tear-down in a second, told once, informational."""
    sample = records_of_dmesg(fixture("xid_storm.txt"))
    assert len(sample) == 4
    coalescer = Coalescer()
    told = 0
    for number in range(10_000):
        text = kmsg.parse(sample[number % 4]).text
        parsed = kmsg.parse(record(text, sequence=number, time_us=100_000_000 + number * 100))
        event = classify(parsed)
        assert event is not None
        told += coalescer.take(event) is not None
    (whole,) = coalescer.events()
    assert (whole.event.kind, whole.event.code, whole.event.device) == (EventKind.XID, "45", "0000:61:00")
    assert whole.event.severity is Severity.INFO
    assert whole.count == 10_000
    assert whole.first_s == 100.0
    assert whole.last_s == pytest.approx(100.9999)
    assert told == 1


def test_a_graver_event_is_told_at_once_and_marks_the_whole() -> None:
    coalescer = Coalescer()
    assert coalescer.take(_event(severity=Severity.WARNING)) is not None
    assert coalescer.take(_event(severity=Severity.INFO)) is None
    graver = coalescer.take(_event(severity=Severity.CRITICAL))
    assert graver is not None
    assert (graver.event.severity, graver.count) == (Severity.CRITICAL, 3)
    coalescer.take(_event(severity=Severity.INFO, at_s=2.0))
    assert [(one.event.severity, one.count, one.last_s) for one in coalescer.events()] == [(Severity.CRITICAL, 4, 2.0)]


def test_what_goes_on_is_told_once_a_minute() -> None:
    coalescer = Coalescer(tell_every_s=60.0)
    told = [second for second in range(200) if coalescer.take(_event(at_s=float(second))) is not None]
    assert told == [0, 60, 120, 180]


@pytest.mark.timeout(60)
def test_memory_is_bounded_under_a_million_lines_with_ever_new_devices() -> None:
    coalescer = Coalescer(keys_per_kind=128)
    coalescer.take(_event("only", kind=EventKind.FS_READONLY, severity=Severity.CRITICAL))
    template = _event()
    for number in range(1_000_000):
        coalescer.take(KernelEvent(template.kind, template.severity, f"d{number}", "1", "text", number, 1.0, 0, True))
    events = coalescer.events()
    assert len(events) == 129
    assert coalescer.dropped == 1_000_000 - 128
    assert any(one.event.kind is EventKind.FS_READONLY for one in events)


def test_unverified_events_do_not_add_to_true_ones() -> None:
    coalescer = Coalescer()
    coalescer.take(_event())
    coalescer.take(KernelEvent(EventKind.XID, Severity.INFO, "a", "1", "text", 2, 2.0, 1, False))
    assert sorted((one.event.verified, one.count) for one in coalescer.events()) == [(False, 1), (True, 1)]


def _changes() -> list[LinkChange]:
    events = [classify(kmsg.parse(raw)) for raw in records_of_dmesg(fixture("link_flap.txt"))]
    return [
        LinkChange(event.mono_s, event.code == "up") for event in events if event is not None and event.device == "enp75s0np0"
    ]


def test_link_flap_warns_within_the_window_and_clears_by_itself() -> None:
    """Case 20: three flaps; a warning, gone after a stable window; the history stays."""
    changes = _changes()
    assert len(changes) == 6
    flap = link_flap("enp75s0np0", changes, 902.0)
    assert flap is not None
    assert (flap.interface, flap.count, flap.severity, flap.up) == ("enp75s0np0", 3, Severity.WARNING, True)
    assert (flap.first_s, flap.last_s, flap.clears_at_s) == (500.1, 901.0, 1501.0)
    assert link_flap("enp75s0np0", changes, 1500.9) == flap
    later = link_flap("enp75s0np0", changes, 1501.0)
    assert later is not None
    assert (later.count, later.severity, later.clears_at_s) == (3, Severity.INFO, None)


def test_flap_windows_can_be_set() -> None:
    changes = _changes()
    strict = link_flap("x", changes, 905.0, FlapPolicy(window_s=600.0, least=2, stable_s=3.0))
    assert strict is not None
    assert strict.severity is Severity.INFO  # stable for 4 s
    narrow = link_flap("x", changes, 902.0, FlapPolicy(window_s=300.0))
    assert narrow is not None
    assert narrow.severity is Severity.INFO  # 503.9 to 901.0 are 397.1 s


def test_a_flapping_link_that_stays_down_does_not_clear() -> None:
    changes = [*_changes(), LinkChange(950.0, up=False), LinkChange(951.0, up=False)]
    flap = link_flap("x", changes, 10_000.0)
    assert flap is not None
    assert (flap.severity, flap.up, flap.clears_at_s) == (Severity.WARNING, False, None)


@pytest.mark.parametrize(
    "changes",
    [[], [LinkChange(1.0, up=True)], [LinkChange(1.0, up=False)], [LinkChange(1.0, up=True), LinkChange(2.0, up=False)]],
)
def test_a_link_that_never_came_back_did_not_flap(changes: list[LinkChange]) -> None:
    assert link_flap("x", changes, 10.0) is None


def test_what_is_kept_back_is_told_in_the_end_with_its_count() -> None:
    coalescer = Coalescer()
    assert coalescer.take(_event(at_s=100.0)) is not None
    assert [coalescer.take(_event(at_s=100.0 + n / 10)) for n in range(1, 50)] == [None] * 49
    assert coalescer.due(159.0) == []
    (whole,) = coalescer.due(160.0)
    assert (whole.count, whole.first_s) == (50, 100.0)
    assert coalescer.due(500.0) == []


def test_what_was_told_before_counts_and_is_no_news() -> None:
    coalescer = Coalescer()
    assert coalescer.take(_event(at_s=1.0), tell=False) is None
    whole = coalescer.take(_event(at_s=2.0))
    assert whole is not None
    assert whole.count == 2
    assert coalescer.take(_event(at_s=3.0)) is None
    assert coalescer.newest(whole).count == 3
    assert coalescer.due(1000.0) == []


def test_a_key_that_was_given_up_is_told_as_it_was_and_no_more() -> None:
    coalescer = Coalescer(keys_per_kind=1)
    first = coalescer.take(_event(at_s=1.0))
    assert first is not None
    assert coalescer.take(_event(at_s=2.0)) is None
    other = msgspec.structs.replace(_event(at_s=3.0), device="another")
    assert coalescer.take(other) is not None
    assert coalescer.newest(first) is first
    assert coalescer.due(1000.0) == []
    assert Coalescer().newest(first) is first
