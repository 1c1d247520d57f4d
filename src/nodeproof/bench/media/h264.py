"""Pictures as H.264 (ITU-T H.264, baseline): each new one uncompressed (``I_PCM``), each repeated one skipped.

Nothing is estimated or transformed, so any decoder gives back exactly what went in, and the encoder is a page. Sizes are
multiples of 16.
"""

from collections.abc import Iterator, Sequence

from nodeproof.bench.media.canvas import PALETTE, Canvas

__all__ = ["MACROBLOCK", "parameter_sets", "slices"]

MACROBLOCK = 16
_PROFILE, _CONSTRAINTS, _LEVEL = 66, 0xC0, 40
_FRAME_NUMBER_BITS = 8
_I_SLICE, _P_SLICE = 7, 5
_I_PCM = 25
_IDR, _NOT_IDR, _SPS, _PPS = 0x65, 0x21, 0x67, 0x68
"""Headers of the units: reference idc and type."""


class _Bits:
    """Bits, most significant first."""

    def __init__(self) -> None:
        self._done = bytearray()
        self._held, self._count = 0, 0

    def put(self, value: int, bits: int) -> None:
        self._held = self._held << bits | value
        self._count += bits
        while self._count >= 8:
            self._count -= 8
            self._done.append(self._held >> self._count & 0xFF)
        self._held &= (1 << self._count) - 1

    def ue(self, *values: int) -> None:
        """Exponential Golomb, of numbers from 0 on (9.1)."""
        for value in values:
            self.put(value + 1, 2 * (value + 1).bit_length() - 1)

    def raw(self, data: bytes) -> None:
        """Whole bytes, after zeros up to a border."""
        if self._count:
            self.put(0, 8 - self._count)
        self._done += data

    def payload(self) -> bytes:
        """All of it with the bit that ends a payload."""
        self.put(1, 1)
        if self._count:
            self.put(0, 8 - self._count)
        return bytes(self._done)


def parameter_sets(width: int, height: int) -> tuple[bytes, bytes]:
    """Sequence and picture parameters (7.3.2.1, 7.3.2.2), as units without a start code."""
    sps = _Bits()
    for value in (_PROFILE, _CONSTRAINTS, _LEVEL):
        sps.put(value, 8)
    sps.ue(0, _FRAME_NUMBER_BITS - 4, 2, 1)  # id, bits of a frame's number, order of output = order of decoding, one reference
    sps.put(0, 1)
    sps.ue(width // MACROBLOCK - 1, height // MACROBLOCK - 1)
    sps.put(0b1100, 4)  # frames only, direct 8x8, no cropping, no further words
    pps = _Bits()
    pps.ue(0, 0)
    pps.put(0b00, 2)  # CAVLC, no order of fields
    pps.ue(0, 0, 0)  # one slice group, one reference in each list
    pps.put(0b000, 3)  # no weights
    pps.ue(0, 0, 0)  # quantisers as they are
    pps.put(0b100, 3)  # slices say whether they are deblocked
    return _unit(_SPS, sps.payload()), _unit(_PPS, pps.payload())


def slices(frames: Sequence[Canvas]) -> Iterator[tuple[bytes, bool]]:
    """One unit a frame, and whether decoding can begin there."""
    before: Canvas | None = None
    number = pictures = 0
    for frame in frames:
        if before is not None and (frame is before or frame.rows == before.rows):
            number = (number + 1) % (1 << _FRAME_NUMBER_BITS)
            yield _repeat(frame, number), False
        else:
            number = 0
            yield _whole(frame, pictures % 2), True
            pictures += 1
        before = frame


def _whole(frame: Canvas, picture: int) -> bytes:
    bits = _Bits()
    bits.ue(0, _I_SLICE, 0)
    bits.put(0, _FRAME_NUMBER_BITS)
    bits.ue(picture)
    bits.put(0b00, 2)  # nothing of old pictures is kept
    bits.ue(0, 1)  # quantiser, no deblocking
    for data in _macroblocks(frame):
        bits.ue(_I_PCM)
        bits.raw(data)
    return _unit(_IDR, bits.payload())


def _repeat(frame: Canvas, number: int) -> bytes:
    bits = _Bits()
    bits.ue(0, _P_SLICE, 0)
    bits.put(number, _FRAME_NUMBER_BITS)
    bits.put(0b000, 3)  # references as they are, and as they were
    bits.ue(0, 1)
    bits.ue(frame.width // MACROBLOCK * (frame.height // MACROBLOCK))  # so many blocks are skipped: all
    return _unit(_NOT_IDR, bits.payload())


def _macroblocks(frame: Canvas) -> Iterator[bytes]:
    """Luma, then both chromas at half the size, of 16 x 16 pixels each."""
    luma = [bytes(row).translate(_LUMA) for row in frame.rows]
    blue, red = ([bytes(row[::2]).translate(table) for row in frame.rows[::2]] for table in (_CB, _CR))
    for top in range(0, frame.height, MACROBLOCK):
        for left in range(0, frame.width, MACROBLOCK):
            parts = [row[left : left + MACROBLOCK] for row in luma[top : top + MACROBLOCK]]
            for plane in (blue, red):
                parts += [row[left // 2 : (left + MACROBLOCK) // 2] for row in plane[top // 2 : (top + MACROBLOCK) // 2]]
            yield b"".join(parts)


def _table(weights: tuple[float, float, float], offset: int) -> bytes:
    """One component of the palette's colours, after BT.601 with its limited range."""
    found = [round(offset + sum(weight * part for weight, part in zip(weights, rgb, strict=True))) for rgb in PALETTE.values()]
    return bytes(found) + bytes(256 - len(found))


_LUMA = _table((0.256788, 0.504129, 0.097906), 16)
_CB = _table((-0.148223, -0.290993, 0.439216), 128)
_CR = _table((0.439216, -0.367788, -0.071427), 128)


def _unit(header: int, payload: bytes) -> bytes:
    """With a 3 wherever the payload would look like a start code (7.4.1)."""
    safe = bytearray([header])
    zeros = 0
    for byte in payload:
        if zeros >= 2 and byte <= 3:
            safe.append(3)
            zeros = 0
        safe.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(safe)
