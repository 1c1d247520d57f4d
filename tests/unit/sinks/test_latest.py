import threading

from nodeproof.errors import Absence
from nodeproof.host.recorded import ManualClock
from nodeproof.sinks.base import StaleAfter
from nodeproof.sinks.latest import LatestStore
from support.batches import batch, metric, missing


def store_at(clock: ManualClock) -> LatestStore:
    return LatestStore(clock, StaleAfter({"cpu": 1.0, "disk": 5.0}))


def test_nothing_is_ready_before_the_first_batch() -> None:
    store = store_at(ManualClock())
    assert not store.ready
    assert store.batches() == {}
    assert store.metrics() == []
    store.write(batch([metric("usage", 1.0)]))
    assert store.ready


def test_a_new_batch_takes_the_place_of_its_components_old_one_as_a_whole() -> None:
    store = store_at(ManualClock())
    store.write(batch([metric("io", 1.0, {"device": "sda"}), metric("io", 2.0, {"device": "sdb"})], component="disk"))
    store.write(batch([metric("usage", 9.0)]))
    gone = batch([metric("io", 3.0, {"device": "sda"})], component="disk", sequence=2)
    store.write(gone)
    assert store.batches()["disk"] is gone
    assert list(store.batches()) == ["cpu", "disk"]


def test_defect_20_a_component_that_no_longer_reads_loses_its_numbers_and_says_for_how_long() -> None:
    clock = ManualClock()
    store = store_at(clock)
    old = batch([metric("usage", 1.0, {"core": "0"}), metric("usage", 2.0, {"core": "1"})], [missing("temperature")])
    store.write(old)
    clock.advance(5.0)
    assert store.batches()["cpu"] is old
    clock.advance(7.0)
    stale = store.batches()["cpu"]
    assert stale.metrics == []
    assert [(entry.name, entry.state, entry.reason) for entry in stale.missing] == [
        ("usage", Absence.STALE, "the last reading is 12 s old"),
        ("temperature", Absence.STALE, "the last reading is 12 s old"),
    ]
    assert stale.mono_s == old.mono_s
    assert store.metrics() == []
    assert store.ready
    entry = store.entries()["cpu"]
    assert (entry.expired, entry.age_s) == (True, 12.0)


def test_it_is_the_present_again_with_the_next_batch() -> None:
    clock = ManualClock()
    store = store_at(clock)
    store.write(batch([metric("usage", 1.0)]))
    clock.advance(60.0)
    store.write(batch([metric("usage", 4.0)], at=clock.now(), sequence=2))
    assert [found.value for found in store.metrics()] == [4.0]


def test_the_wall_clock_has_no_part_in_it() -> None:
    clock = ManualClock()
    store = store_at(clock)
    store.write(batch([metric("usage", 1.0)]))
    for jump in (+1e8, -1e8):
        clock.wall_s += jump
        assert not store.entries()["cpu"].expired


def test_a_component_can_be_forgotten() -> None:
    store = store_at(ManualClock())
    store.write(batch([metric("usage", 1.0)]))
    store.forget("cpu")
    assert store.batches() == {}


def test_flush_and_close_leave_it_as_it_is() -> None:
    clock = ManualClock()
    store = store_at(clock)
    store.write(batch([metric("usage", 1.0)]))
    store.flush(clock.now())
    store.close()
    assert [found.value for found in store.metrics()] == [1.0]


def test_writers_side_by_side_lose_nothing() -> None:
    store = store_at(ManualClock())
    names = [f"c{number}" for number in range(8)]

    def work(name: str) -> None:
        for sequence in range(200):
            store.write(batch([metric("usage", float(sequence), component=name)], component=name, sequence=sequence))

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: found.sequence for name, found in store.batches().items()} == dict.fromkeys(names, 199)
