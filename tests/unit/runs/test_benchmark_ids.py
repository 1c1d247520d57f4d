"""The reference's names of benchmarks mean ours, wherever they are said."""

from nodeproof.bench.benchmarks import DESCRIPTORS
from nodeproof.runs.benchmark_ids import REFERENCE_IDS, aliases_of, canonical
from nodeproof.runs.registry import discover


def test_a_name_of_the_reference_is_ours_and_any_other_its_own() -> None:
    assert canonical("quick-speed-bench") == "quick-speed"
    assert canonical("ttft-warm-gate") == "ttft-warm"
    assert canonical("quick-speed") == "quick-speed"
    assert canonical("somebody-else-s") == "somebody-else-s"
    assert aliases_of("quick-speed") == ("quick-speed-bench",)
    assert aliases_of("load") == ()
    assert not REFERENCE_IDS.keys() & set(REFERENCE_IDS.values())


def test_what_a_benchmark_answers_to_stands_in_the_table_alone() -> None:
    for descriptor in DESCRIPTORS:
        assert descriptor.aliases == aliases_of(descriptor.id), descriptor.id


def test_the_registry_finds_a_benchmark_by_either() -> None:
    registry = discover()
    assert registry.problems == []
    for name, ours in REFERENCE_IDS.items():
        if ours in {descriptor.id for descriptor in DESCRIPTORS}:
            assert registry.get(name).id == registry.get(ours).id == ours
