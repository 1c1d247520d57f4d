"""Units of the values of benchmarks, by the names that the reference gave the values."""

__all__ = ["PRIMARY", "metric_unit", "rate_text"]

PRIMARY = {"stream": "triad_mb_s", "hpl": "gflops", "hpcg": "gflops"}
"""The value by which runs of a benchmark compare."""
_SUFFIXES = (("_mb_s", "MB/s"), ("gflops", "GFLOP/s"), ("_seconds", "s"), ("_bytes", "B"))
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def metric_unit(key: str) -> str:
    """Unit of value ``key``; empty for counts."""
    return next((unit for suffix, unit in _SUFFIXES if key.endswith(suffix)), "")


def rate_text(rate: float, unit: str) -> str:
    """``rate`` with four digits and a prefix: ``14.38 GFLOP/s``; counts and units that have a prefix stay as they are."""
    if unit in {"FLOP/s", "B/s"}:
        for size, prefix in _PREFIXES:
            if rate >= size:
                return f"{rate / size:.4g} {prefix}{unit}"
    return f"{rate:.4g} {unit}"
