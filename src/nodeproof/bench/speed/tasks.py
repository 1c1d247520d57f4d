"""What the benchmarks of speed ask for behind their filler.

Part of the instrument: a change here moves the date of the benchmarks, for numbers from both sides of it do not compare.
"""

import hashlib

__all__ = ["CODE", "COUNT", "ESSAY", "TASKS", "corpus_sha256"]

COUNT = "Count upwards from 1, one number a line, without end."
CODE = (
    "Leave the words above aside. Write a complete Python module for a bounded, thread-safe cache with expiry: a class with get, "
    "put, delete, resize and statistics, every method with type hints, a docstring and an example, then twenty unit tests that "
    "cover expiry, eviction, concurrent writers and invalid sizes. Begin with the code at once and write all of it out."
)
ESSAY = (
    "Leave the words above aside. Write a long essay on how ports, canals, railways and container ships changed what people eat, "
    "in chronological order, with names, places and figures in each paragraph. Never repeat a sentence, do not sum up at the end."
)
TASKS = {"natural": CODE, "count": COUNT, "essay": ESSAY}
"""Task of each mode of a prompt."""


def corpus_sha256(*texts: str) -> str:
    """Identity of the texts that a benchmark asks with, for its record."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
