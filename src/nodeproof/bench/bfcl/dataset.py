"""The data as it was taken out of the package: one JSON object a line, file order within each subset.

::

    {"subset":"simple_python","sample_id":"simple_python_0","messages":[...],"tools":[...],"tool_choice":"auto",
     "ground_truth":"[...]","func_description":"[...]"}

Ground truth and descriptions are for the checker alone and are not read here.
"""

import hashlib
from collections import Counter
from typing import NamedTuple

import msgspec

from nodeproof.bench.bfcl.subsets import SUBSETS, Draw, Shard, taken
from nodeproof.errors import ParseError, RunError

__all__ = ["Drawn", "Row", "read_draw"]

_MAX_BYTES = 256 << 20


class Row(msgspec.Struct, frozen=True):
    """One sample, without what the checker knows of it."""

    subset: str
    sample_id: str
    messages: tuple[dict[str, object], ...]
    tools: tuple[dict[str, object], ...] = ()
    tool_choice: str = "auto"


class Drawn(NamedTuple):
    """What is asked."""

    rows: tuple[Row, ...]
    totals: dict[str, int]
    """Rows of each subset in the file."""
    whole: int
    """Rows of the whole draw, of which :attr:`rows` may be a shard."""
    sha256: str
    """Of the names of the drawn rows, in order."""


def read_draw(path: str, draw: Draw, shard: Shard) -> Drawn:
    """The rows of ``draw`` and ``shard`` in order of subset names. Raises RunError, and ParseError naming the line."""
    lines = _lines(path)
    totals = Counter(_head(path, number, line).subset for number, line in enumerate(lines, 1))
    wanted = {}
    for subset in sorted(totals):
        share = draw.share_pct(SUBSETS[subset][1]) if subset in SUBSETS else None
        wanted[subset] = 0 if share is None else taken(totals[subset], share, draw.floor)
    rows: dict[str, list[Row]] = {subset: [] for subset in wanted}
    seen: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        subset = _head(path, number, line).subset
        position = seen[subset]
        seen[subset] += 1
        if position < wanted[subset] and shard.has(position):
            rows[subset].append(_row(path, number, line))
    chosen = tuple(row for subset in sorted(rows) for row in rows[subset])
    _check(path, chosen, shard)
    names = "".join(f"{row.sample_id}\n" for row in chosen)
    return Drawn(chosen, dict(totals), sum(wanted.values()), hashlib.sha256(names.encode()).hexdigest())


class _Head(msgspec.Struct):
    """As much of a row as counting needs."""

    subset: str


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_row = msgspec.json.Decoder(Row).decode


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; remove its directory, and it is made anew") from None
    if len(data) > _MAX_BYTES:
        raise RunError(f"{path} has more than {_MAX_BYTES >> 20} MiB: it is not the data that is expected")
    return [line for line in data.split(b"\n") if line.strip()]


def _head(path: str, number: int, line: bytes) -> _Head:
    try:
        return _decode_head(line)
    except msgspec.MsgspecError as error:
        raise ParseError(path, number, line[:80].decode("utf-8", "replace"), f"a sample ({error})") from None


def _row(path: str, number: int, line: bytes) -> Row:
    try:
        return _decode_row(line)
    except msgspec.MsgspecError as error:
        raise ParseError(path, number, line[:80].decode("utf-8", "replace"), f"a sample ({error})") from None


def _check(path: str, rows: tuple[Row, ...], shard: Shard) -> None:
    if not rows:
        part = "" if shard.whole else f" in shard {shard.part}/{shard.parts}"
        raise RunError(f"{path}: nothing is drawn{part}; ask for fewer shards, or a larger share")
    twice = [name for name, count in Counter(row.sample_id for row in rows).items() if count > 1]
    if twice:
        raise RunError(f"{path}: {twice[0]} stands there twice; remove its directory, and it is made anew")
