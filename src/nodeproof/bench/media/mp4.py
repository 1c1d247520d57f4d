"""Pictures one after the other as an MP4 file (ISO/IEC 14496-12, -14, -15) with one track of H.264."""

import struct
from collections.abc import Sequence

from nodeproof.bench.media.canvas import Canvas
from nodeproof.bench.media.h264 import parameter_sets, slices

__all__ = ["encode_mp4"]

_MATRIX = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def encode_mp4(frames: Sequence[Canvas], frames_per_s: int) -> bytes:
    """The file. Width and height are multiples of 16."""
    units = list(slices(frames))
    samples = [struct.pack(">I", len(unit)) + unit for unit, _ in units]
    keys = [place + 1 for place, (_, key) in enumerate(units) if key]
    kind = _box(b"ftyp", b"isom", struct.pack(">I", 512), b"isomavc1mp41")
    # Where the samples begin is part of what stands before them; its length does not depend on it.
    size = len(kind) + len(_movie(frames, frames_per_s, samples, keys, 0)) + 8
    movie = _movie(frames, frames_per_s, samples, keys, size)
    return kind + movie + _box(b"mdat", *samples)


def _movie(frames: Sequence[Canvas], frames_per_s: int, samples: list[bytes], keys: list[int], begin: int) -> bytes:
    width, height = frames[0].width, frames[0].height
    count = len(frames)
    header = _full(b"mvhd", 0, struct.pack(">IIIIIHxx8x", 0, 0, frames_per_s, count, 0x10000, 0x100), _MATRIX, bytes(24), _u32(2))
    track = _full(
        b"tkhd",
        7,
        struct.pack(">IIIII8xHHHxx", 0, 0, 1, 0, count, 0, 0, 0),
        _MATRIX,
        struct.pack(">II", width << 16, height << 16),
    )
    media = _box(
        b"mdia",
        _full(b"mdhd", 0, struct.pack(">IIIIHxx", 0, 0, frames_per_s, count, 0x55C4)),
        _full(b"hdlr", 0, bytes(4), b"vide", bytes(12), b"video\0"),
        _box(
            b"minf",
            _full(b"vmhd", 1, bytes(8)),
            _box(b"dinf", _full(b"dref", 0, _u32(1), _full(b"url ", 1))),
            _table(width, height, samples, keys, begin),
        ),
    )
    return _box(b"moov", header, _box(b"trak", track, media))


def _table(width: int, height: int, samples: list[bytes], keys: list[int], begin: int) -> bytes:
    """What lies where."""
    count = len(samples)
    return _box(
        b"stbl",
        _full(b"stsd", 0, _u32(1), _entry(width, height)),
        _full(b"stts", 0, struct.pack(">III", 1, count, 1)),
        _full(b"stss", 0, _u32(len(keys), *keys)),
        _full(b"stsc", 0, struct.pack(">IIII", 1, 1, count, 1)),
        _full(b"stsz", 0, _u32(0, count, *(len(sample) for sample in samples))),
        _full(b"stco", 0, _u32(1, begin)),
    )


def _entry(width: int, height: int) -> bytes:
    sps, pps = parameter_sets(width, height)
    configuration = bytes([1, *sps[1:4], 0xFF, 0xE1]) + struct.pack(">H", len(sps)) + sps
    configuration += b"\x01" + struct.pack(">H", len(pps)) + pps
    fields = struct.pack(">6xH16xHHIIIH32xHh", 1, width, height, 0x480000, 0x480000, 0, 1, 24, -1)
    return _box(b"avc1", fields, _box(b"avcC", configuration))


def _u32(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def _box(kind: bytes, *parts: bytes) -> bytes:
    data = b"".join(parts)
    return struct.pack(">I", len(data) + 8) + kind + data


def _full(kind: bytes, flags: int, *parts: bytes) -> bytes:
    """A box with version 0 and flags."""
    return _box(kind, _u32(flags), *parts)
