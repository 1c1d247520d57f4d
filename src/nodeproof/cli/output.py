"""Output for programs: JSON and exposition text, in UTF-8 whatever the locale."""

import sys
from collections.abc import Iterable

import msgspec

__all__ = ["print_json", "print_json_lines", "print_text"]

_encoder = msgspec.json.Encoder()


def print_json(value: object, *, indent: int = 0) -> None:
    """Print ``value`` as one JSON document; without ``indent``, on one line."""
    data = _encoder.encode(value)
    _write(_escaped(msgspec.json.format(data, indent=indent) if indent else data) + "\n")


def print_json_lines(values: Iterable[object]) -> None:
    """Print a JSON document a line."""
    for value in values:
        _write(_escaped(_encoder.encode(value)) + "\n")


def print_text(text: str) -> None:
    """Print ``text`` as it stands."""
    _write(text)


def _escaped(data: bytes) -> str:
    """JSON whose every character can be shown: those that could steer a terminal (C1, bidirectional marks) are escaped."""
    text = data.decode("utf-8")
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join([char if char.isprintable() or char == "\n" else _escape(char) for char in text])


def _escape(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[place] << 8 | units[place + 1]:04x}" for place in range(0, len(units), 2))


def _write(text: str) -> None:
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        buffer.write(text.encode("utf-8", "backslashreplace"))
