"""``/etc/os-release``: ``PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"`` (os-release(5)).

Assignments as a shell would read them, with its quotes and backslashes.
"""

import re

from nodeproof.errors import ParseError

__all__ = ["parse"]

_LINE = re.compile(r"([A-Z_][A-Z_0-9]*)=(.*)\Z")
_QUOTED = re.compile(r"\\(.)")
_MAX_CHARS = 200


def parse(raw: bytes, /) -> dict[str, str]:
    """All assignments; damaged lines are passed over, values bounded to 200 characters. Raises ParseError when there is none."""
    values: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        found = _LINE.match(line.strip())
        if found is not None:
            values[found[1]] = _unquoted(found[2])[:_MAX_CHARS]
    if not values:
        raise ParseError("/etc/os-release", 0, raw[:40].decode("utf-8", "replace"), "lines such as NAME=value")
    return values


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        body = text[1:-1]
        return _QUOTED.sub(r"\1", body) if text[0] == '"' else body
    return text
