"""Raw samples of a run: one row a request, and the gaps between its chunks.

A file is a line ``NPSB2`` and any number of blocks. A block is one line of JSON and, after it, ``bytes`` bytes of zlib::

    {"kind":"requests","block":0,"rows":512,"gaps":65024,"bytes":181211,"sha256":"9f3c...","notes":[[17,"status 503: busy"]]}

The rows of a block are its first bytes, each as :data:`ROW` says; then the gaps, 32-bit numbers of 100 ns, those of one request
after those of the other, as many as it has ``chunks`` less one. Each row ends with the CRC-32 of its other bytes, so that a row
that was changed can be named. A block that was not written to its end (the writer was killed) is left out, and told of.
Blocks of the kind ``instrument`` hold :data:`PULSE` rows: how late the generator itself was.
"""

import hashlib
import os
import queue
import threading
import time
import zlib
from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.errors import ParseError, WriteError

__all__ = [
    "COUNTED",
    "MAGIC",
    "OUTCOMES",
    "PULSE",
    "REUSED",
    "ROW",
    "STREAMED",
    "TICK_S",
    "Block",
    "Identity",
    "SampleWriter",
    "Samples",
    "changed_rows",
    "read_blocks",
]

MAGIC: Final = b"NPSB2\n"
TICK_S: Final = 1e-7
OUTCOMES: Final = tuple(Outcome)
"""Outcomes by the number that stands in a row; new ones are put at the end."""
_CODES: Final = {outcome: code for code, outcome in enumerate(OUTCOMES)}
_MAX_TICK: Final = (1 << 32) - 1
_MAX_COUNT: Final = (1 << 31) - 1

_TIMES: Final = (
    "scheduled_s",
    "started_s",
    "connected_s",
    "sent_s",
    "first_byte_s",
    "first_event_s",
    "first_role_s",
    "first_reasoning_s",
    "first_content_s",
    "first_token_s",
    "last_token_s",
    "end_s",
)
ROW: Final = np.dtype(
    [
        ("number", "<u4"),
        ("session", "<u4"),
        ("turn", "<u2"),
        ("cell", "<u2"),
        ("worker", "u1"),
        ("outcome", "u1"),
        ("flags", "u1"),
        ("pad", "u1"),
        ("status", "<u2"),
        ("anomalies", "<u2"),
        *((name, "<f8") for name in _TIMES),
        ("input_target", "<i4"),
        ("max_tokens", "<i4"),
        ("prompt_tokens", "<i4"),
        ("cached_tokens", "<i4"),
        ("completion_tokens", "<i4"),
        ("reasoning_tokens", "<i4"),
        ("accepted_tokens", "<i4"),
        ("chunks", "<u4"),
        ("received_bytes", "<u4"),
        ("server_ttft_ms", "<f4"),
        ("server_decode_ms", "<f4"),
        ("server_tokens_per_s", "<f4"),
        ("retry_after_s", "<f4"),
        ("crc", "<u4"),
    ]
)
"""A request. Times are seconds after the epoch of the plan, NaN = it never came to that; counts are -1 when nobody said."""
PULSE: Final = np.dtype(
    [("at_s", "<f8"), ("lag_s", "<f4"), ("cpu_share", "<f4"), ("in_flight", "<u4"), ("worker", "<u4"), ("queued", "<u4")]
)
"""A look of the generator at itself: how late its timer was, the share of a core it used since the look before."""
STREAMED, REUSED, COUNTED = 1, 2, 4
"""Flags of a row: it came as a stream; on a kept connection; the server counted the tokens."""

_BLOCK_ROWS = 512
_BLOCK_GAPS = 128 * 1024
_BLOCK_AGE_S = 1.0
_MAX_NOTES = 64
_NOTE_CHARS = 300


class Identity(NamedTuple):
    """Which request of the plan a row is."""

    number: int
    session: int = 0
    turn: int = 0
    input_target: int = -1
    max_tokens: int = -1


class _Pending:
    """Rows that are not yet written."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.stamps = array("d")
        self.notes: list[tuple[int, str]] = []
        self.pulses: list[tuple[object, ...]] = []
        self.since_s = time.monotonic()


class SampleWriter:
    """Writes samples from a thread of its own, so that the loop which measures is never held up. Memory stays flat."""

    def __init__(self, path: str, *, epoch_s: float, worker: int, cell: int = 0) -> None:
        self.path = path
        self.error: OSError | None = None
        """Why writing ended early (a full disk)."""
        self._epoch_s = epoch_s
        self._worker, self._cell = worker, cell
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed by close()
        self._file.write(MAGIC)
        self._pending = _Pending()
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._blocks = 0
        self._thread = threading.Thread(target=self._work, name="samples", daemon=True)
        self._thread.start()

    def add(self, who: Identity, exchange: Exchange) -> None:
        """Take a finished exchange."""
        pending = self._pending
        if exchange.detail and len(pending.notes) < _MAX_NOTES:
            pending.notes.append((who.number, exchange.detail[:_NOTE_CHARS]))
        pending.rows.append(_row(who, exchange, self._epoch_s, self._worker, self._cell))
        pending.stamps.extend(exchange.chunks_s)
        if len(pending.rows) >= _BLOCK_ROWS or len(pending.stamps) >= _BLOCK_GAPS:
            self.flush()

    def pulse(self, at_s: float, lag_s: float, cpu_share: float, in_flight: int, queued: int) -> None:
        """Take a look of the generator at itself; also the moment when old rows are sent to the disk."""
        pending = self._pending
        pending.pulses.append((at_s - self._epoch_s, lag_s, cpu_share, in_flight, self._worker, queued))
        if at_s - pending.since_s >= _BLOCK_AGE_S:
            self.flush()

    def flush(self) -> None:
        """Have what there is written. Returns at once."""
        if self._pending.rows or self._pending.pulses:
            self._queue.put(self._pending)
            self._pending = _Pending()

    def close(self) -> None:
        """Write all and wait for it. Raises WriteError when something could not be written."""
        self.flush()
        self._queue.put(None)
        self._thread.join()
        self._file.close()
        if self.error is not None:
            raise WriteError(self.path, os.strerror(self.error.errno or 0), remedy="free some space", code=self.error.errno or 0)

    def _work(self) -> None:
        while (pending := self._queue.get()) is not None:
            if self.error is not None:
                continue
            try:
                self._write(pending)
            except OSError as error:
                self.error = error

    def _write(self, pending: _Pending) -> None:
        if pending.rows:
            rows = np.array(pending.rows, dtype=ROW)
            rows["crc"] = _crcs(rows)
            gaps = _gaps(rows["chunks"], np.frombuffer(pending.stamps, dtype="<f8"))
            self._block("requests", rows.tobytes() + gaps.tobytes(), rows=len(rows), gaps=len(gaps), notes=pending.notes)
        if pending.pulses:
            pulses = np.array(pending.pulses, dtype=PULSE)
            self._block("instrument", pulses.tobytes(), rows=len(pulses), gaps=0, notes=[])

    def _block(self, kind: str, body: bytes, *, rows: int, gaps: int, notes: list[tuple[int, str]]) -> None:
        packed = zlib.compress(body, 1)
        head = {
            "kind": kind,
            "block": self._blocks,
            "rows": rows,
            "gaps": gaps,
            "bytes": len(packed),
            "sha256": hashlib.sha256(packed).hexdigest(),
            "notes": notes,
        }
        data = memoryview(msgspec.json.encode(head) + b"\n" + packed)
        while data:
            data = data[self._file.write(data) :]
        self._blocks += 1


def _row(who: Identity, exchange: Exchange, epoch_s: float, worker: int, cell: int) -> tuple[object, ...]:
    usage, server = exchange.usage, exchange.server
    last_s = exchange.chunks_s[-1] if exchange.chunks_s else 0.0
    flags = (
        (STREAMED if exchange.streamed else 0)
        | (REUSED if exchange.reused else 0)
        | (COUNTED if usage.completion_tokens is not None else 0)
    )
    times = (
        exchange.scheduled_s,
        exchange.started_s,
        exchange.connected_s,
        exchange.sent_s,
        exchange.first_byte_s,
        exchange.first_event_s,
        exchange.first_role_s,
        exchange.first_reasoning_s,
        exchange.first_content_s,
        exchange.first_token_s,
        last_s,
        exchange.end_s,
    )
    return (
        who.number,
        who.session,
        who.turn,
        cell,
        worker,
        _CODES[exchange.outcome],
        flags,
        0,
        exchange.status,
        len(exchange.anomalies),
        *[stamp - epoch_s if stamp else _NAN for stamp in times],
        who.input_target,
        who.max_tokens,
        _counted(usage.prompt_tokens),
        _counted(usage.cached_prompt_tokens),
        min(exchange.tokens, _MAX_COUNT),
        _counted(usage.reasoning_tokens),
        _counted(usage.accepted_prediction_tokens),
        len(exchange.chunks_s),
        min(exchange.received_bytes, _MAX_TICK),
        _NAN if server.ttft_ms is None else server.ttft_ms,
        _NAN if server.decode_ms is None else server.decode_ms,
        _NAN if server.tokens_per_s is None else server.tokens_per_s,
        _NAN if exchange.retry_after_s is None else exchange.retry_after_s,
        0,
    )


_NAN = float("nan")


def _counted(value: int | None) -> int:
    return -1 if value is None else min(value, _MAX_COUNT)


def _gaps(chunks: "NDArray[np.uint32]", stamps: "NDArray[np.float64]") -> "NDArray[np.uint32]":
    """Gaps between the chunks of each request, in ticks."""
    if not len(stamps):
        return np.zeros(0, dtype="<u4")
    ticks = np.rint(np.diff(stamps) / TICK_S)
    ends = np.cumsum(chunks, dtype=np.int64)
    inside = np.ones(len(ticks), dtype=bool)
    borders = ends[(chunks > 0)][:-1] - 1
    inside[borders] = False
    return np.clip(ticks[inside], 0, _MAX_TICK).astype("<u4")


def _crcs(rows: "NDArray[np.void]") -> list[int]:
    raw, size = rows.tobytes(), ROW.itemsize
    return [zlib.crc32(raw[at : at + size - 4]) for at in range(0, len(raw), size)]


class Block(NamedTuple):
    """One block as it was read."""

    kind: str
    number: int
    data: bytes
    """Unpacked; empty when :attr:`problem` says why."""
    rows: int
    gaps: int
    notes: list[tuple[int, str]]
    problem: str = ""

    def samples(self) -> "Samples":
        """The requests of a block of that kind."""
        rows = np.frombuffer(self.data, dtype=ROW, count=self.rows)
        return Samples(rows, np.frombuffer(self.data, dtype="<u4", count=self.gaps, offset=rows.nbytes))

    def pulses(self) -> "NDArray[np.void]":
        """The looks of a block of the kind ``instrument``."""
        return np.frombuffer(self.data, dtype=PULSE, count=self.rows)


class Samples(NamedTuple):
    """Rows, and the gaps of all of them."""

    rows: "NDArray[np.void]"
    gaps: "NDArray[np.uint32]"


class _Head(msgspec.Struct):
    kind: str
    block: int
    rows: int
    gaps: int
    bytes: int
    sha256: str
    notes: list[tuple[int, str]] = []


def read_blocks(path: str) -> Iterator[Block]:
    """Blocks of a file in order; one that is damaged, or whose bytes were changed, says so. Raises ParseError, OSError."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ParseError(path, 1, "", "a file of samples, which begins with NPSB2")
        while line := file.readline(1 << 20):
            try:
                head = msgspec.json.decode(line, type=_Head)
            except msgspec.MsgspecError:
                yield _bad(f"{path}: bytes that are no block, before offset {file.tell()}")
                return
            packed = file.read(head.bytes)
            if len(packed) < head.bytes:
                yield _bad(f"{path}: block {head.block} was not written to its end; its {head.rows} rows are left out")
                return
            yield _unpacked(path, head, packed)


def _bad(problem: str) -> Block:
    return Block("", -1, b"", 0, 0, [], problem)


def _unpacked(path: str, head: _Head, packed: bytes) -> Block:
    problem = ""
    if hashlib.sha256(packed).hexdigest() != head.sha256:
        problem = f"{path}: block {head.block} is not what was written"
    try:
        data = zlib.decompress(packed)
    except zlib.error:
        return _bad(f"{path}: block {head.block} is not what was written, and cannot be unpacked")
    size = {"requests": ROW.itemsize, "instrument": PULSE.itemsize}.get(head.kind, 0)
    if len(data) != head.rows * size + head.gaps * 4:
        return _bad(f"{path}: block {head.block} holds {len(data)} bytes, which is not what its head says")
    return Block(head.kind, head.block, data, head.rows, head.gaps, head.notes, problem)


def changed_rows(block: Block) -> list[int]:
    """Numbers of the requests whose row is not the one that was written."""
    if block.kind != "requests":
        return []
    rows = block.samples().rows
    wrong = np.array(_crcs(rows), dtype="<u4") != rows["crc"]
    return [int(number) for number in rows["number"][wrong]]
