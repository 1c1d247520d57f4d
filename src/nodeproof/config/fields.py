"""Checks of single values; each takes the plain value and returns the typed one, or raises ValueError in words."""

from collections.abc import Callable, Collection
from typing import TypeVar

from nodeproof.config.document import Value
from nodeproof.units import parse_duration

__all__ = [
    "Check",
    "absolute_path",
    "address",
    "boolean",
    "duration",
    "edges",
    "integer",
    "listing",
    "one_of",
    "optional_path",
    "size_bytes",
    "text",
    "words",
]

_T = TypeVar("_T")
Check = Callable[[Value], _T]

_DAY_S = 86400.0
_SIZE_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def boolean(value: Value) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{value!r} is not true or false")


def text(value: Value) -> str:
    """Any text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{value!r} is no text; put it in quotes")


def integer(low: int, high: int) -> Check[int]:
    """A whole number within bounds."""

    def check(value: Value) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} is no whole number")
        if not low <= value <= high:
            raise ValueError(f"{value} is not within {low} and {high}")
        return value

    return check


def duration(low_s: float, high_s: float = 366 * _DAY_S, *, zero_is: float | None = None) -> Check[float]:
    """Seconds of a duration with its unit, within bounds; where the reference lets zero or less mean a default, ``zero_is``."""

    def check(value: Value) -> float:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} has no unit; write {value}s, {value}m or {value}h")
        seconds = parse_duration(value)
        if zero_is is not None and seconds <= 0:
            return zero_is
        if not low_s <= seconds <= high_s:
            raise ValueError(f"{value} is not within {low_s:g}s and {high_s:g}s")
        return seconds

    return check


def one_of(*words: str) -> Check[str]:
    """One of a few words, in any case."""

    def check(value: Value) -> str:
        found = text(value)
        for word in words:
            if found.lower() == word.lower():
                return word
        raise ValueError(f"{found!r} is none of {', '.join(words)}")

    return check


def listing(item: Check[_T], allowed: Collection[str] | None = None) -> Check[tuple[_T, ...]]:
    """A list without repetition; ``allowed`` names the words that may stand in it."""

    def check(value: Value) -> tuple[_T, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is no list; write [a, b]")
        items = tuple(item(entry) for entry in value)
        for entry in items:
            if allowed is not None and entry not in allowed:
                raise ValueError(f"{entry!r} is none of {', '.join(sorted(allowed))}")
            if items.count(entry) > 1:
                raise ValueError(f"{entry!r} stands twice")
        return items

    return check


def edges(value: Value) -> tuple[int, ...]:
    """Three edges of a grid; equal ones may stand three times."""
    if not isinstance(value, list) or len(value) != 3:
        raise ValueError(f"{value!r} is no grid; write [104, 104, 104]")
    return tuple(integer(1, 100_000)(edge) for edge in value)


def words(value: Value) -> tuple[str, ...]:
    """Arguments of a program, one an entry; the same word may stand twice."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list; write [--flag, value]")
    found = tuple(text(entry) for entry in value)
    for word in found:
        if not word or "\0" in word:
            raise ValueError(f"{word!r} is no argument")
    return found


def absolute_path(value: Value) -> str:
    """A path that begins at the root."""
    path = text(value)
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"{path!r} is no absolute path")
    return path


def optional_path(value: Value) -> str:
    """An absolute path, or nothing."""
    return "" if value in {None, ""} else absolute_path(value)


def size_bytes(value: Value) -> int:
    """Bytes of a size such as ``200MB`` or ``1GiB``."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    written = text(value).replace(" ", "")
    digits = written.rstrip("BKMGi")
    unit = written[len(digits) :]
    if not digits.isdecimal() or unit not in _SIZE_UNITS or int(digits) == 0:
        raise ValueError(f"{value!r} is no size; write 200MB or 1GiB")
    return int(digits) * _SIZE_UNITS[unit]


def address(example: str) -> Check[str]:
    """``host:port`` with a numeric address, ``localhost`` or nothing (every interface) for the host; ``example`` is one."""

    def check(value: Value) -> str:
        found = text(value)
        host, colon, port = found.rpartition(":")
        if not colon or not port.isdecimal() or not 0 <= int(port) <= 65535:
            raise ValueError(f"{found!r} is no address; write {example}")
        bare = host.removeprefix("[").removesuffix("]")
        if bare not in {"", "localhost", "127.0.0.1", "0.0.0.0"}:  # noqa: S104 - an address to judge, not one to bind
            import ipaddress  # noqa: PLC0415 - a megabyte, and 2 ms, that most configurations do not need

            try:
                ipaddress.ip_address(bare)
            except ValueError:
                raise ValueError(f"{host!r} is no IP address; write 127.0.0.1 or [::1]") from None
        return found

    return check
