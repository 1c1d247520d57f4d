"""Whole numbers that the kernel writes with plain digits, told from everything that Python would also take for one."""

__all__ = ["unsigned"]

_MAX_DIGITS = 20
"""Of 2^64 - 1, the greatest number a kernel counter can hold."""


def unsigned(text: str) -> int | None:
    """The number of at most 64 bits that ``text`` is, white space around it allowed; None for anything else (``-1``, ``1_0``)."""
    digits = text.strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MAX_DIGITS:
        return None
    number = int(digits)
    return number if number < 2**64 else None
