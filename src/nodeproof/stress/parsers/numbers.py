"""Numbers as C programs print them, read without guessing."""

import math
import re

__all__ = ["is_localised", "number", "printed_step", "whole"]

_NUMBER = re.compile(r"\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_LOCALISED = re.compile(r"[\d.\s']{0,40}\d,\d{1,40}(?:[eE][+-]?\d{1,3})?", re.ASCII)


def number(text: str) -> float | None:
    """An unsigned finite decimal, ``5.5337e+02`` or ``101234.5``; None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def whole(text: str) -> int | None:
    """An unsigned integer of at most 18 digits; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def is_localised(text: str) -> bool:
    """True for ``101234,5`` and ``1.234,5``: a decimal comma or a thousands comma, and nobody can tell which."""
    return _LOCALISED.fullmatch(text) is not None


def printed_step(text: str) -> float:
    """Half of the last printed digit of a plain decimal: ``0.0178`` may stand for 0.01775 to 0.01785."""
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** ((int(exponent) if exponent else 0) - decimals)
