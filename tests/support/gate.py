"""Stored, signed runs as a test wants them, and what judges them."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from nodeproof.bench.gate.archive import Archive, StoredRuns
from nodeproof.bench.gate.judge import Judge
from nodeproof.bench.gate.schema import Entry
from nodeproof.bench.gate.thresholds import parse
from nodeproof.host.owner import this_process
from nodeproof.host.signing_key import PublicKey, SigningKey
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.model.run import Frame, Owner, RunRecord, RunStatus, Verdict, VerdictKind, exit_code
from nodeproof.runs.benchmark import Benchmark, Descriptor
from nodeproof.runs.records import fingerprint
from nodeproof.runs.registry import Registry
from nodeproof.runs.store import RunStore

__all__ = ["DAY_S", "NOW", "Site", "descriptor", "entry", "leaves", "record", "rewrite", "tallied"]

NOW = 1_800_000_000.0
DAY_S = 86400.0
_UPDATED = "2026-12-01"


def _never() -> Benchmark:
    raise AssertionError("a gate builds no benchmark")


def descriptor(name: str, *, sensitivity: Sensitivity = Sensitivity.SPEED, **more: Any) -> Descriptor:
    """An identity without a benchmark behind it."""
    return Descriptor(
        id=name,
        name=name.capitalize(),
        summary="s",
        detail="d",
        duration_hint="h",
        expected_secs=100,
        updated=_UPDATED,
        sensitivity=sensitivity,
        build=_never,
        **more,
    )


def record(benchmark: str = "toy", **changes: Any) -> RunRecord:
    """A run on a fit box that came to its end; ``metrics``, ``validity``, ``kind`` and any field of a record can be said."""
    kind = VerdictKind(changes.pop("kind", "info"))
    verdict = Verdict(kind, f"{kind}, for a test")
    status = RunStatus(changes.pop("status", "completed"))
    validity = changes.pop("validity", Validity.VALID)
    box = changes.pop("box", "h200@here")
    frame = Frame(
        status=status,
        phase="done",
        verdict=verdict,
        metrics=changes.pop("metrics", {"rate": 25.0}),
        hardware_state={"perf_class": box, "postcheck": {"validity": str(validity), "concerns": ["it was hot"]}},
        dataset_fingerprint=changes.pop("dataset", None),
    )
    made = RunRecord(
        schema=1,
        run_id="",
        benchmark_id=benchmark,
        benchmark_name=benchmark.capitalize(),
        benchmark_updated=_UPDATED,
        recorded_at=NOW - 60,
        owner=Owner(*this_process()),
        target_url="http://127.0.0.1:8000",
        target_model="m",
        params={"concurrency": "4", "shard": "inherit"},
        sensitivity=Sensitivity.SPEED,
        status=status,
        verdict=verdict,
        exit_code=int(exit_code(status, kind)),
        frame=frame,
    )
    made = msgspec.structs.replace(made, **changes)
    return msgspec.structs.replace(made, fingerprint=fingerprint(made))


def tallied(shard: str, tallies: Mapping[str, tuple[int, int]], **changes: Any) -> RunRecord:
    """A shard of a known-answer benchmark with its counts."""
    metrics = {"transport_errors": 0.0}
    for name, (hits, count) in tallies.items():
        metrics |= {f"subset.{name}.hits": float(hits), f"subset.{name}.n": float(count)}
    metrics |= changes.pop("metrics", {})
    params = {"concurrency": "4", "shard": shard, **changes.pop("params", {})}
    return record("known", metrics=metrics, params=params, sensitivity=Sensitivity.CORRECTNESS, **changes)


class Site:
    """A node with a store whose runs are signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = SigningKey(str(folder))
        self.store = RunStore(str(folder), signer=self.key)
        self.registry = Registry()
        self.registry.add(descriptor("toy", aliases=("toy-gate",), threshold_params=(("min_rate", "rate"),)), "tests")
        self.registry.add(descriptor("known", sensitivity=Sensitivity.CORRECTNESS), "tests")

    def put(self, made: RunRecord, *, store: RunStore | None = None) -> str:
        """Store it; its id."""
        run = (store or self.store).claim(made)
        Path(run.file_path("raw.txt")).write_text("raw")
        run.append(b"{}\n")
        run.publish(msgspec.structs.replace(made, run_id=run.run_id))
        return run.run_id

    def place(self, run_id: str) -> Path:
        """Where it lies."""
        return Path(self.store.place(run_id))

    def judge(self, archive: Archive | None = None, trusted: dict[str, PublicKey] | None = None) -> Judge:
        """By what is stored here, and this node's key."""
        own = {self.key.public.key_id: self.key.public}
        return Judge(archive or StoredRuns(self.store), own if trusted is None else trusted, self.registry, lambda: NOW)


def entry(text: str = "", *, id: str = "toy", metrics: str = "[benchmarks.metrics.rate]\nmin = 20") -> Entry:  # noqa: A002 - the key
    """The one entry of a file with ``text`` in it."""
    return parse(f'schema = 1\n[[benchmarks]]\nid = "{id}"\n{text}\n{metrics}\n'.encode(), "bench.toml").entries[0]


def leaves(tree: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of all values of a JSON document that hold no others."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from leaves(value, (*path, index))
    else:
        yield path


def rewrite(path: Path, change: tuple[str | int, ...] | None = None, data: bytes | None = None) -> None:
    """Change one value of a stored JSON file, or all of it; rights are put aside as somebody with them would."""
    os.chmod(path.parent, 0o750)  # noqa: S103 - the mode that the store gives, too
    os.chmod(path, 0o640)
    if change is not None:
        tree = json.loads(path.read_bytes())
        holder = cast("Any", tree)
        for step in change[:-1]:
            holder = holder[step]
        holder[change[-1]] = _other(holder[change[-1]])
        data = msgspec.json.format(msgspec.json.encode(tree), indent=2) + b"\n"
    path.write_bytes(data or b"")


def _other(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    text = str(value)
    return text[:-1] + ("A" if text[-1:] != "A" else "B") if text else "A"
