import msgspec

from nodeproof.model.metric import Metric
from nodeproof.sinks.static_specs import STATIC_METRIC_NAMES, SpecStash, filter_static
from support.batches import metric


def decoded(stash: SpecStash) -> list[Metric]:
    encoded = stash.json()
    assert isinstance(encoded, msgspec.Raw)
    return msgspec.json.decode(encoded, type=list[Metric])


def test_the_names_of_the_reference() -> None:
    # observe.md 4.5, without die_core_num, which 0.3.5 no longer has.
    names = (
        "model_info numa_node_num core_num numa_core_num cpu_num min_freq max_freq l1d_cache_size l1i_cache_size "
        "l2_cache_size l3_cache_size module_info module_size module_num"
    )
    assert set(names.split()) == STATIC_METRIC_NAMES


def test_filter_keeps_them_in_order_and_nothing_else() -> None:
    metrics = [metric("usage", 1.0), metric("max_freq", 3000.0), metric("core_num", 2.0)]
    assert filter_static(metrics) == metrics[1:]


def test_a_later_partial_set_loses_nothing_and_a_new_value_takes_its_place() -> None:
    stash = SpecStash("cpu")
    l2_of = [metric("l2_cache_size", 1024.0, {"core": str(core)}) for core in range(2)]
    stash.merge([metric("usage", 5.0), metric("core_num", 2.0), *l2_of])
    newer = metric("l2_cache_size", 2048.0, {"core": "1"})
    stash.merge([newer])
    assert decoded(stash) == stash.specs() == [metric("core_num", 2.0), l2_of[0], newer]
    stash.merge([metric("usage", 6.0)])
    assert len(stash.specs()) == 3


def test_labels_in_another_order_are_the_same_labels() -> None:
    stash = SpecStash("memory")
    stash.merge([metric("module_info", 1.0, {"locator": "A1", "type": "DDR5"})])
    stash.merge([metric("module_info", 2.0, {"type": "DDR5", "locator": "A1"})])
    assert [found.value for found in stash.specs()] == [2.0]


def test_identity_comes_after_what_was_collected() -> None:
    stash = SpecStash("disk")
    assert stash.json() is msgspec.UNSET
    identity = metric("disk_info", 274.9, {"device": "vda"}, component="disk", unit="GB")
    stash.set_identity([identity])
    stash.merge([metric("core_num", 2.0, component="disk")])
    assert decoded(stash) == [metric("core_num", 2.0, component="disk"), identity]
    stash.set_identity([])
    assert [found.name for found in decoded(stash)] == ["core_num"]


def test_the_same_objects_again_are_not_encoded_again() -> None:
    stash = SpecStash("cpu")
    kept = [metric("core_num", 2.0), metric("cpu_num", 1.0)]
    stash.merge(kept)
    first = stash.json()
    stash.merge([metric("usage", 1.0), *kept])
    assert stash.json() is first
