"""Lists of processors or nodes as sysfs prints them: ``0-3,5,7-9`` (Documentation/admin-guide/cputopology.rst)."""

from nodeproof.errors import ParseError

__all__ = ["parse"]

_MAX_NUMBER = 65_535
"""Far above NR_CPUS of any kernel; keeps a damaged range from filling memory."""


def parse(raw: bytes, source: str = "cpu list", /) -> list[int]:
    """Every number, ascending and once; an empty file is an empty list. Raises ParseError: half a list would be a wrong count."""
    text = raw.decode("utf-8", "replace").strip().strip("\0")
    numbers: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        low, high = _number(first, text, source), _number(last if dash else first, text, source)
        if low > high:
            raise ParseError(source, 1, text, "ranges that begin with their lower end")
        numbers.update(range(low, high + 1))
    return sorted(numbers)


def _number(digits: str, text: str, source: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and int(digits) <= _MAX_NUMBER):
        raise ParseError(source, 1, text, "numbers and ranges such as 0-3,5,7-9")
    return int(digits)
