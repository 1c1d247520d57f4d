"""The benchmarks of endpoints, as the entry point ``bench`` of ``nodeproof.benchmarks`` offers them.

Making the list loads neither numpy nor httptools: a benchmark loads what it needs when it is built.
"""

from nodeproof.bench.catalogue import GOODPUT_SEARCH, LOAD

__all__ = ["DESCRIPTORS"]

DESCRIPTORS = (GOODPUT_SEARCH, LOAD)
