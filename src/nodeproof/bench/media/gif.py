"""Pictures one after the other as a GIF file (89a), the oldest video that everything plays."""

import struct
from collections.abc import Sequence

from nodeproof.bench.media.canvas import PALETTE, Canvas

__all__ = ["encode_gif"]

_CODE_BITS = 3
"""The palette has eight colours."""
_CLEAR, _END = 1 << _CODE_BITS, (1 << _CODE_BITS) + 1
_MAX_CODE = 4096
_BLOCK_BYTES = 255


def encode_gif(frames: Sequence[Canvas], frame_s: float) -> bytes:
    """The file; each frame is shown for ``frame_s`` (hundredths of a second count)."""
    first = frames[0]
    palette = b"".join(bytes(rgb) for rgb in PALETTE.values())
    screen = struct.pack("<HHBBB", first.width, first.height, 0xF0 | (_CODE_BITS - 1), 0, 0)
    loop = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    made = {id(one): _frame(one, frame_s) for one in {id(one): one for one in frames}.values()}
    return b"GIF89a" + screen + palette + loop + b"".join(made[id(one)] for one in frames) + b";"


def _frame(canvas: Canvas, frame_s: float) -> bytes:
    control = struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 4, max(1, round(frame_s * 100)), 0, 0)
    place = struct.pack("<BHHHHB", 0x2C, 0, 0, canvas.width, canvas.height, 0)
    data = _compress(b"".join(canvas.rows))
    blocks = [data[at : at + _BLOCK_BYTES] for at in range(0, len(data), _BLOCK_BYTES)]
    return control + place + bytes([_CODE_BITS]) + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def _compress(pixels: bytes) -> bytes:
    """LZW with codes of growing width, least significant bit first."""
    packed, held, bits = bytearray(), 0, 0
    width = _CODE_BITS + 1
    table: dict[bytes, int] = {}

    def put(code: int) -> None:
        nonlocal held, bits
        held |= code << bits
        bits += width
        while bits >= 8:
            packed.append(held & 0xFF)
            held >>= 8
            bits -= 8

    def code_of(run: bytes) -> int:
        return run[0] if len(run) == 1 else table[run]

    put(_CLEAR)
    following = _END + 1
    run = pixels[:1]
    for at in range(1, len(pixels)):
        longer = run + pixels[at : at + 1]
        if longer in table:
            run = longer
            continue
        put(code_of(run))
        table[longer] = following
        if following == 1 << width:
            width += 1
        following += 1
        if following == _MAX_CODE:
            put(_CLEAR)
            table.clear()
            width, following = _CODE_BITS + 1, _END + 1
        run = longer[-1:]
    put(code_of(run))
    put(_END)
    if bits:
        packed.append(held & 0xFF)
    return bytes(packed)
