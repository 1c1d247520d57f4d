"""Which way of a metric is the good one, as far as its key says it."""

import re

__all__ = ["better_sign"]

_HIGHER = re.compile(
    r"(tok_s|per_s|requests_s|_mb_s|_gb_s|gflops|tflops|accuracy|score|attainment_pct|goodput\w*|\.hits|requests_ok|accept_len)$"
)
_LOWER = re.compile(
    r"(_ms|_us|_ns|wall_s|elapsed_s|recovery_s|_errors|_failed|failures|error_pct|_cells|joules_per_token|stability|_cv|divergences)$"
)


def better_sign(key: str) -> int:
    """1 where more is better, -1 where less is, 0 where the key does not say."""
    if _HIGHER.search(key):
        return 1
    return -1 if _LOWER.search(key) else 0
