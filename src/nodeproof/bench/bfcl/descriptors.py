"""Identities of the benchmarks of tool calls."""

from nodeproof.bench.catalogue import lazily
from nodeproof.model.hardware import Sensitivity
from nodeproof.runs.benchmark import Descriptor

__all__ = ["BFCL_FULL", "BFCL_SUBSET", "BFCL_SUBSET_ECHOLP"]

_DETAIL = (
    "Asks {count} single-turn questions of the Berkeley Function Calling Leaderboard and has every answer checked by the "
    "published package, which is installed into an environment of its own on first use (2 MB, from the package index pip is "
    "set up with). Each answer is kept as it comes; a run that was stopped goes on where it was. What brought no answer is "
    "never scored."
)
_THRESHOLDS = (("min_overall", "overall_accuracy"), ("min_normalized", "normalized_single_turn_score"))


def _variant(name: str, title: str, count: int, hint: str, expected_secs: int) -> Descriptor:
    return Descriptor(
        id=name,
        name=title,
        summary=f"Tool calls right or wrong: {count} questions of BFCL with known answers",
        detail=_DETAIL.format(count=count),
        duration_hint=hint,
        expected_secs=expected_secs,
        updated="2026-12-01",
        sensitivity=Sensitivity.CORRECTNESS,
        build=lazily("bfcl.benchmark", "".join(part.capitalize() for part in name.split("-"))),
        needs_endpoint=True,
        threshold_params=_THRESHOLDS,
    )


BFCL_SUBSET = _variant("bfcl-subset", "BFCL, golden draw", 995, "minutes to two hours, by concurrency", 6000)
BFCL_SUBSET_ECHOLP = _variant(
    "bfcl-subset-echolp", "BFCL, draw with more live ones", 1004, "minutes to two hours, by concurrency", 7500
)
BFCL_FULL = _variant("bfcl-full", "BFCL, all single-turn categories", 3625, "up to twelve hours; shards and resuming help", 43200)
