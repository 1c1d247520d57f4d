"""Counts and times that servers give beside an answer, wherever they stand and whatever they are called."""

import math

from nodeproof.bench.exchange import Exchange

__all__ = ["read_timings", "read_usage"]


def read_usage(exchange: Exchange, found: dict[str, object]) -> None:
    """Take over a ``usage`` object; with several, the last counts."""
    usage, server = exchange.usage, exchange.server
    prompt = _count(found.get("prompt_tokens", found.get("input_tokens")))
    completion = _count(found.get("completion_tokens", found.get("output_tokens")))
    usage.prompt_tokens = usage.prompt_tokens if prompt is None else prompt
    usage.completion_tokens = usage.completion_tokens if completion is None else completion
    for key in ("prompt_tokens_details", "input_tokens_details"):
        details = found.get(key)
        if isinstance(details, dict):
            usage.cached_prompt_tokens = _count(details.get("cached_tokens"))
    for key in ("completion_tokens_details", "output_tokens_details"):
        details = found.get(key)
        if isinstance(details, dict):
            usage.reasoning_tokens = _count(details.get("reasoning_tokens"))
            usage.accepted_prediction_tokens = _count(details.get("accepted_prediction_tokens"))
    if "time_to_first_token_ms" in found:
        server.ttft_ms = _time(found["time_to_first_token_ms"])
    if "decode_time_ms" in found:
        server.decode_ms = _time(found["decode_time_ms"])
    if "total_time_ms" in found:
        server.total_ms = _time(found["total_time_ms"])
    if "response_token/s" in found:
        server.tokens_per_s = _time(found["response_token/s"])


def read_timings(exchange: Exchange, found: dict[str, object]) -> None:
    """Take over llama.cpp's ``timings``: the first token is there when the prompt is done."""
    server = exchange.server
    server.ttft_ms = _time(found.get("prompt_ms"))
    server.decode_ms = _time(found.get("predicted_ms"))
    server.tokens_per_s = _time(found.get("predicted_per_second"))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _time(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)
