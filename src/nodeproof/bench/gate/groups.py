"""A work that was divided: whether the shards at hand are all of it, and what the whole says."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nodeproof.bench.bfcl.scores import Tally, add, scores_of, tallies_in, tally_metrics
from nodeproof.bench.gate.instrument import identity_of, shard_of
from nodeproof.errors import RecordError
from nodeproof.model.run import RunRecord, VerdictKind
from nodeproof.runs.store import StoredRun

__all__ = ["Group", "Part", "owed", "whole"]


class Part(NamedTuple):
    """One shard, with every reason why it proves nothing."""

    run: StoredRun
    problems: list[str]
    key_id: str


class Group(NamedTuple):
    """What there is of the whole."""

    complete: bool
    size: int
    """Shards that make the whole."""
    runs: list[StoredRun]
    """By index where it is complete; else what there is of it."""
    missing: list[int]
    """Indices of which no record counts."""
    refused: bool
    """There are records that would have belonged to it and prove nothing."""
    reasons: list[str]
    """Why it is not complete."""
    key_ids: list[str]
    metrics: dict[str, float]
    """Of the whole; empty where it is not complete."""


def whole(parts: Sequence[Part], unread: Sequence[str] = ()) -> Group:
    """What the newest record of each shard makes, ``parts`` being newest first: the newest complete partition, or what lacks.

    ``unread`` are the reasons why some records could not be read.
    """
    partitions: dict[tuple[str, int], dict[int, Part]] = {}
    stray = list(unread)
    for part in parts:
        shard = None if part.run.problems else shard_of(part.run.record)
        if shard is None:
            stray += part.problems if part.run.problems else [f"{part.run.record.run_id} is of the whole work, not a shard of it"]
            continue
        # A shard that was run again is replaced by its newest record, also when that proves nothing.
        partitions.setdefault((identity_of(part.run.record), shard[1]), {}).setdefault(shard[0], part)
    groups = [_group(count, by_index) for (_, count), by_index in partitions.items()]
    done = [group for group in groups if group.complete]
    if done:
        return max(done, key=lambda group: (_newest(group.runs), group.size))
    if not groups:
        return Group(False, 0, [], [], bool(stray), stray or ["there is no record of a shard"], [], {})
    best = max(groups, key=lambda group: (len(group.runs) / group.size, _newest(group.runs)))
    return best._replace(reasons=[*best.reasons, *stray], refused=best.refused or bool(stray))


def owed(group: Group, wanted: int) -> tuple[list[int], int]:
    """Indices that are still to be run, and of how many; ``wanted`` where nothing has begun."""
    if group.complete:
        return [], group.size
    if not group.size or not group.runs:
        return list(range(wanted)), wanted
    return group.missing, group.size


def _group(count: int, by_index: dict[int, Part]) -> Group:
    reasons, good, tallies = [], {}, []
    for index, part in sorted(by_index.items()):
        problems = [*part.problems, *_own_problems(part.run.record)]
        try:
            found = tallies_in(part.run.record.frame.metrics)
        except RecordError as error:
            problems.append(f"{part.run.record.run_id} cannot be added: {error}")
            found = {}
        if problems:
            reasons += [f"shard {index}/{count}: {problem}" for problem in problems]
        else:
            good[index] = part
            tallies.append(found)
    missing = [index for index in range(count) if index not in good]
    absent = [index for index in missing if index not in by_index]
    if absent:
        reasons.append(f"no record of shard {_listed(absent)} of {count}")
    complete = not missing
    return Group(
        complete=complete,
        size=count,
        runs=[part.run for part in good.values()],
        missing=missing,
        refused=len(missing) > len(absent),
        reasons=reasons,
        key_ids=[part.key_id for part in good.values()],
        metrics=_metrics(good.values(), tallies) if complete else {},
    )


def _own_problems(record: RunRecord) -> list[str]:
    lost = record.frame.metrics.get("transport_errors", 0.0)
    problems = [f"{lost:g} samples of {record.run_id} were lost on the way, and were never answered"] if lost else []
    if record.verdict.kind is VerdictKind.FAIL:
        problems.append(f"the verdict of {record.run_id} is fail: {record.verdict.reason}")
    return problems


def _metrics(parts: Iterable[Part], tallies: list[dict[str, Tally]]) -> dict[str, float]:
    every = [part.run.record.frame.metrics for part in parts]
    counted = ("drawn", "transport_errors", "unmatched_responses", "known_partition_sensitive")
    sums = {key: float(sum(one[key] for one in every)) for key in counted if all(key in one for one in every)}
    whole = add(tallies)
    samples = float(sum(tally.n for tally in whole.values()))
    return {**scores_of(whole).metrics(), **tally_metrics(whole), **sums, "samples": samples, "shard.count": float(len(every))}


def _newest(runs: Sequence[StoredRun]) -> float:
    return max((run.record.recorded_at for run in runs), default=0.0)


def _listed(indices: Sequence[int]) -> str:
    shown = ", ".join(str(index) for index in indices[:10])
    return shown if len(indices) <= 10 else f"{shown} and {len(indices) - 10} more"
