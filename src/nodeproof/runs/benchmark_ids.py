"""The reference's names of benchmarks and ours: one table, by which command line, page and store understand both alike."""

from typing import Final

__all__ = ["REFERENCE_IDS", "aliases_of", "canonical"]

REFERENCE_IDS: Final = {
    "agentic-webserver": "agentic",
    "cross-contamination": "contamination",
    "kat-equality-gate": "kat-equality",
    "mlperf-agentic-subset": "mlperf-agentic",
    "quick-speed-bench": "quick-speed",
    "ssm-state-poisoning-gate": "state-poisoning",
    "ttft-cold-gate": "ttft-cold",
    "ttft-warm-gate": "ttft-warm",
    "video-fidelity": "video",
    "vision-fidelity": "vision",
}
"""Ours by the reference's (bench.md 1.10), where the two differ. Runs are stored under ours."""


def canonical(name: str) -> str:
    """The id under which runs of ``name`` are stored; any other name is its own."""
    return REFERENCE_IDS.get(name, name)


def aliases_of(benchmark_id: str) -> tuple[str, ...]:
    """Other names that ``benchmark_id`` answers to."""
    return tuple(name for name, ours in REFERENCE_IDS.items() if ours == benchmark_id)
