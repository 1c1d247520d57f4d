"""Signals in the masks that ``/proc/PID/status`` prints."""

__all__ = ["signals_in"]

_OF_THE_C_LIBRARY = {32, 33}
"""Kept by glibc for itself: nobody can set them, and what was started by posix_spawn, as make does, has them ignored."""


def signals_in(mask: str | bytes) -> set[int]:
    """Numbers of the signals in a mask in hexadecimal digits, without those that no program has a say in."""
    bits = int(mask, 16)
    return {number for number in range(1, 65) if bits >> (number - 1) & 1} - _OF_THE_C_LIBRARY
