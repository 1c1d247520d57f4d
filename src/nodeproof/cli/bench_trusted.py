"""Runs that are what this node stored: their bytes as they were, and the signature where there is one."""

import argparse
import os
from collections.abc import Sequence

from nodeproof.bench.compare.pair import equal_runs
from nodeproof.bench.gate.trust import trusted_keys
from nodeproof.cli.bench_executor import bench_store, signing_key
from nodeproof.model.run import RunRecord
from nodeproof.runs.manifest import SIGNATURE
from nodeproof.runs.signature import check_signature
from nodeproof.runs.store import RunStore, StoredRun

__all__ = ["doubts", "equals_of", "opened"]

_EQUALS = 200
"""At most so many are taken to tell how far equal runs differ, and where a level changed."""


def opened(options: argparse.Namespace) -> RunStore:
    """The store, with what dead owners left put in order."""
    store = bench_store(options)
    store.recover()
    return store


def doubts(options: argparse.Namespace, run: StoredRun) -> list[str]:
    """Why ``run`` is not to be believed: bytes that changed, or a signature that is not of them. Having none is no doubt here."""
    if run.problems or not os.path.lexists(os.path.join(run.path, SIGNATURE)):
        return list(run.problems)
    signature = check_signature(run.path, run.record, trusted_keys(None, signing_key(options)))
    return [f"{run.record.run_id}: {signature.problem}"] if signature.problem else []


def equals_of(store: RunStore, run: StoredRun, without: Sequence[str]) -> list[RunRecord]:
    """Other runs whose numbers should be equal to those of ``run``, newest first."""
    return equal_runs(run.record, store.records_like(run.record, _EQUALS), without)
