"""The benchmarks of endpoints, as the entry point ``bench`` of ``nodeproof.benchmarks`` offers them.

Making the list loads neither numpy nor httptools: a benchmark loads what it needs when it is built.
"""

from nodeproof.bench.bfcl.descriptors import BFCL_FULL, BFCL_SUBSET, BFCL_SUBSET_ECHOLP
from nodeproof.bench.catalogue import (
    CONCURRENCY_SWEEP,
    CONCURRENCY_SWEEP_DFLASH2,
    CONCURRENCY_SWEEP_MOE,
    DECODE_FLOOR,
    GOODPUT_SEARCH,
    LOAD,
    QUICK_SPEED,
    TTFT_COLD,
    TTFT_WARM,
)
from nodeproof.bench.equality.descriptors import CONTAMINATION, KAT_EQUALITY, SCHEDULER_EQUIVALENCE, STATE_POISONING
from nodeproof.bench.trials import TRIALS

__all__ = ["DESCRIPTORS"]

DESCRIPTORS = (
    BFCL_FULL,
    BFCL_SUBSET,
    BFCL_SUBSET_ECHOLP,
    CONTAMINATION,
    KAT_EQUALITY,
    SCHEDULER_EQUIVALENCE,
    STATE_POISONING,
    CONCURRENCY_SWEEP,
    CONCURRENCY_SWEEP_DFLASH2,
    CONCURRENCY_SWEEP_MOE,
    DECODE_FLOOR,
    GOODPUT_SEARCH,
    LOAD,
    QUICK_SPEED,
    TTFT_COLD,
    TTFT_WARM,
    *TRIALS,
)
