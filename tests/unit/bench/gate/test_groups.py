"""Shards make a whole only when each is there, once, of one instrument; counts are added and ratios made of the sums."""

from pathlib import Path
from typing import Any

import pytest

from nodeproof.bench.gate.groups import owed, whole
from nodeproof.bench.gate.instrument import identity_of, shard_of
from nodeproof.bench.gate.judgement import Judgement, Standing
from nodeproof.model.hardware import Validity
from nodeproof.runs.store import RunStore
from support.gate import NOW, Site, entry, record, tallied

TALLIES = {"simple_python": (8, 10), "simple_java": (1, 2), "multiple": (4, 5), "live_simple": (3, 4), "irrelevance": (9, 10)}
BOUND = "[benchmarks.metrics.overall_accuracy]\nmin = 80"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "node")


def judged(site: Site, shards: int = 2) -> Judgement:
    return site.judge().judge(entry(f"shards = {shards}", id="known", metrics=BOUND))


def put(site: Site, shard: str, tallies: dict[str, tuple[int, int]] | None = None, **changes: Any) -> str:
    return site.put(tallied(shard, TALLIES if tallies is None else tallies, **changes))


def test_a_complete_partition_is_judged_by_its_sums(site: Site) -> None:
    first, second = put(site, "0/2"), put(site, "1/2", {"simple_python": (9, 9), "live_simple": (0, 1)})
    found = judged(site)
    # hits 8+1+4+3+9+9+0 = 34 of 10+2+5+4+10+9+1 = 41
    assert (found.standing, found.runs) == (Standing.PASS, [first, second])
    assert found.reasons == ["overall_accuracy is 82.93, at least 80"]
    assert found.signed_by == [site.key.public.key_id]


@pytest.mark.parametrize(
    ("second", "standing", "reason"),
    [
        (None, Standing.MISSING, "no record of shard 1 of 2"),
        ({"metrics": {"transport_errors": 2.0}}, Standing.REFUSED, "shard 1/2: 2 samples of run-"),
        ({"tallies": {}}, Standing.REFUSED, "cannot be added: the record holds no counts"),
        ({"kind": "fail"}, Standing.REFUSED, "shard 1/2: the verdict of run-"),
        ({"kind": "inconclusive"}, Standing.REFUSED, "shard 1/2: the verdict of run-"),
        ({"params": {"temperature": "1"}}, Standing.MISSING, "no record of shard 0 of 2"),
        ({"shard": "0/1"}, Standing.REFUSED, "no record of shard 1 of 2"),
        ({"validity": Validity.INVALID}, Standing.REFUSED, "shard 1/2: the box was not fit"),
        ({"status": "failed"}, Standing.REFUSED, "shard 1/2: run-"),
    ],
)
def test_what_keeps_shards_from_being_a_whole(site: Site, second: dict[str, Any] | None, standing: Standing, reason: str) -> None:
    put(site, "0/2", recorded_at=NOW - 200)
    if second is not None:
        changes = dict(second)
        put(site, changes.pop("shard", "1/2"), changes.pop("tallies", None), **changes)
    found = judged(site)
    assert (found.standing, reason in found.reasons[0]) == (standing, True), found.reasons


def test_a_record_of_the_whole_is_no_shard(site: Site) -> None:
    put(site, "0/1")
    found = judged(site)
    assert (found.standing, "is of the whole work, not a shard of it" in found.reasons[0]) == (Standing.REFUSED, True)


def test_a_shard_that_is_not_signed_is_not_counted(site: Site) -> None:
    put(site, "0/2")
    site.put(tallied("1/2", TALLIES), store=RunStore(str(site.folder)))
    assert judged(site).reasons[0].endswith("it is not signed")


def test_a_shard_run_again_replaces_the_older_one_for_better_and_worse(site: Site) -> None:
    put(site, "0/2", recorded_at=NOW - 500)
    put(site, "1/2", recorded_at=NOW - 400)
    put(site, "1/2", recorded_at=NOW - 300, metrics={"transport_errors": 1.0})
    assert judged(site).standing is Standing.REFUSED
    newest = put(site, "1/2", recorded_at=NOW - 200)
    assert (judged(site).standing, judged(site).runs[1]) == (Standing.PASS, newest)


def test_the_newest_complete_partition_wins(site: Site) -> None:
    for index in range(2):
        put(site, f"{index}/2", {"multiple": (0, 10)}, recorded_at=NOW - 500 + index)
    assert judged(site).standing is Standing.FAIL
    for index in range(3):
        put(site, f"{index}/3", {"multiple": (10, 10)}, recorded_at=NOW - 300 + index)
    assert judged(site).standing is Standing.PASS
    assert len(judged(site).runs) == 3


def test_what_is_owed(site: Site) -> None:
    judge = site.judge()
    wanted = entry("shards = 4", id="known", metrics=BOUND)
    assert judge.owed_shards(wanted) == ([0, 1, 2, 3], 4)
    put(site, "2/3")
    assert judge.owed_shards(wanted) == ([0, 1], 3)
    put(site, "0/3")
    put(site, "1/3")
    assert judge.owed_shards(wanted) == ([], 3)
    assert owed(whole([]), 2) == ([0, 1], 2)


def test_a_fingerprint_is_that_of_the_whole_whatever_the_shard(site: Site) -> None:
    records = [tallied(f"{index}/2", TALLIES, dataset=f"file-sha256:1;draw-sha256:{index}") for index in range(2)]
    assert len({identity_of(one) for one in records}) == 1
    assert len({one.fingerprint for one in records}) == 2
    assert identity_of(tallied("0/2", TALLIES, dataset="file-sha256:2;draw-sha256:0")) != identity_of(records[0])
    for one in records:
        site.put(one)
    judge = site.judge()
    wanted = f'shards = 2\nfingerprint = "{identity_of(records[0])}"'
    assert judge.judge(entry(wanted, id="known", metrics=BOUND)).standing is Standing.PASS
    assert judge.judge(entry(f'shards = 2\nfingerprint = "{"0" * 64}"', id="known", metrics=BOUND)).standing is Standing.REFUSED


def test_ratios_are_made_of_the_sums(site: Site) -> None:
    put(site, "0/2", {"simple_python": (8, 10), "multiple": (1, 1), "irrelevance": (9, 10)})
    put(site, "1/2", {"simple_java": (1, 2), "multiple": (0, 9), "live_simple": (3, 4)})
    group = site.judge().group(entry("shards = 2", id="known", metrics=BOUND))
    # 22 of 36; non_live: mean of simple (0.8 + 0.5) / 2 and multiple 0.1 = 0.375; live 0.75; hallucination 0.9
    assert group.metrics["overall_accuracy"] == 61.11
    assert group.metrics["normalized_single_turn_score"] == 67.5
    assert (group.metrics["samples"], group.metrics["subset.multiple.n"], group.metrics["transport_errors"]) == (36, 10, 0)


def test_the_shard_of_a_record() -> None:
    assert shard_of(tallied("1/4", TALLIES)) == (1, 4)
    assert shard_of(tallied("inherit", TALLIES, metrics={"shard.index": 2.0, "shard.count": 3.0})) == (2, 3)
    assert shard_of(tallied("inherit", TALLIES)) is None
    assert shard_of(tallied("4/4", TALLIES)) is None
    assert shard_of(record()) is None
