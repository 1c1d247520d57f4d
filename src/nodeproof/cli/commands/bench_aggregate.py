"""``nodeproof bench aggregate``: the shards of a work made one, by the rules of the gate."""

import argparse
from collections.abc import Iterator, Sequence

import msgspec

from nodeproof.bench.bfcl.scores import tallies_in
from nodeproof.bench.gate.archive import Archive, StoredRuns
from nodeproof.bench.gate.groups import Group
from nodeproof.bench.gate.instrument import identity_of, shard_of
from nodeproof.bench.gate.judge import Judge
from nodeproof.bench.gate.schema import Entry
from nodeproof.bench.gate.trust import trusted_keys
from nodeproof.cli.bench_executor import as_json, signing_key, told
from nodeproof.cli.bench_trusted import opened
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import RecordError, UsageError
from nodeproof.model.hardware import Validity
from nodeproof.model.run import ExitCode
from nodeproof.runs.registry import discover
from nodeproof.runs.store import StoredRun

__all__ = ["run"]


class _Shard(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    count: int
    record: str
    hits: int
    n: int


class _Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """For programs; keys of the reference. Scores are null where the whole is not complete: never 0."""

    group: str
    complete: bool
    shard_count: int
    fault: str | None
    shards: list[_Shard]
    overall_accuracy: float | None
    normalized_single_turn_score: float | None
    samples: float | None
    metrics: dict[str, float]
    fingerprint: str
    """Of the instrument without the shard."""


class _Named:
    """An archive of named runs."""

    def __init__(self, runs: Sequence[StoredRun]) -> None:
        self._runs = sorted(runs, key=lambda run: (run.record.recorded_at, run.record.run_id), reverse=True)

    def newest_first(self, benchmark_id: str) -> Iterator[StoredRun | RecordError]:
        """See Archive."""
        yield from (run for run in self._runs if run.record.benchmark_id == benchmark_id)


def _run(options: argparse.Namespace) -> int:
    registry = discover()
    store = opened(options)
    archive: Archive = StoredRuns(store)
    if all(name.startswith("run-") for name in options.what):
        runs = [store.inspect(name) for name in dict.fromkeys(options.what)]
        names = {run.record.benchmark_id for run in runs}
        if len(names) > 1:
            raise UsageError(f"these are shards of different works: {', '.join(sorted(names))}")
        archive = _Named(runs)
        name = names.pop()
    elif len(options.what) == 1:
        name = registry.get(options.what[0]).id
    else:
        raise UsageError("name one benchmark, or the runs that are its shards")
    judge = Judge(archive, trusted_keys(None, signing_key(options)), registry)
    entry = Entry(place="aggregate", id=name, model=options.model, validity=Validity.UNKNOWN, shards=1, any_settings=True)
    group = judge.group(entry)
    found = _document(name, group)
    if as_json(options):
        print_json(found, indent=2)
    else:
        _print(found)
    return int(ExitCode.OK if group.complete else ExitCode.INCONCLUSIVE)


run = told("aggregate", _run)


def _document(name: str, group: Group) -> _Aggregate:
    shards = []
    for run in group.runs:
        index, count = shard_of(run.record) or (0, 1)
        tallies = tallies_in(run.record.frame.metrics).values()
        hits, samples = sum(tally.hits for tally in tallies), sum(tally.n for tally in tallies)
        shards.append(_Shard(index=index, count=count, record=run.record.run_id, hits=hits, n=samples))
    return _Aggregate(
        group=name,
        complete=group.complete,
        shard_count=group.size,
        fault=None if group.complete else "; ".join(group.reasons),
        shards=shards,
        overall_accuracy=group.metrics.get("overall_accuracy"),
        normalized_single_turn_score=group.metrics.get("normalized_single_turn_score"),
        samples=group.metrics.get("samples"),
        metrics=group.metrics,
        fingerprint=identity_of(group.runs[0].record) if group.runs else "",
    )


def _print(found: _Aggregate) -> None:
    print_table(
        ("Shard", "Run", "Right", "Of"),
        [(f"{one.index}/{one.count}", one.record, str(one.hits), str(one.n)) for one in found.shards],
        right=(2, 3),
    )
    if not found.complete:
        print(printable_lines(f"\n{found.group}: not complete: {found.fault}"))
        return
    print()
    print_table(("Metric", "Value"), [(key, f"{value:g}") for key, value in sorted(found.metrics.items())], right=(1,))
