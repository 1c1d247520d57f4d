"""Units of the values of benchmarks, by the names that the reference gave the values."""

__all__ = ["PRIMARY", "metric_unit"]

PRIMARY = {"stream": "triad_mb_s", "hpl": "gflops", "hpcg": "gflops"}
"""The value by which runs of a benchmark compare."""
_SUFFIXES = (("_mb_s", "MB/s"), ("gflops", "GFLOP/s"), ("_seconds", "s"), ("_bytes", "B"))


def metric_unit(key: str) -> str:
    """Unit of value ``key``; empty for counts."""
    return next((unit for suffix, unit in _SUFFIXES if key.endswith(suffix)), "")
