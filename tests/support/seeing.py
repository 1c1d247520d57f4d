"""A model that sees: it decodes the pictures and clips of a request and answers questions about them from their pixels.

The decoders are made for what they are fed here (PNG without filters, GIF with one palette, H.264 of whole and skipped pictures),
from the formats' descriptions and not from our encoders, so that the tests check these as well.
"""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.testing import Model, Received, Script, Step, chat_chunk, sse
from nodeproof.bench.testing.model import document

__all__ = ["Pixels", "Sight", "decode_gif", "decode_mp4", "decode_png", "picture_tokens"]

Pixels = NDArray[np.uint8]
"""Rows, columns, red-green-blue."""
_NAMES = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "red": (220, 20, 20),
    "green": (20, 150, 40),
    "blue": (20, 50, 220),
    "yellow": (250, 225, 20),
    "purple": (130, 20, 150),
    "orange": (250, 130, 10),
}


def decode_png(data: bytes) -> Pixels:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, body, size = 8, b"", (0, 0)
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        kind, chunk = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert zlib.crc32(kind + chunk) == struct.unpack_from(">I", data, place + 8 + length)[0]
        if kind == b"IHDR":
            width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunk)
            assert (depth, colour) == (8, 2)
            size = (height, width)
        elif kind == b"IDAT":
            body += chunk
        place += 12 + length
    lines = np.frombuffer(zlib.decompress(body), np.uint8).reshape(size[0], 1 + 3 * size[1])
    assert not lines[:, 0].any(), "lines are not filtered"
    return lines[:, 1:].reshape(size[0], size[1], 3)


def decode_gif(data: bytes) -> list[Pixels]:
    assert data[:6] == b"GIF89a"
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    colours = 2 << (flags & 7)
    palette = np.frombuffer(data, np.uint8, 3 * colours, 13).reshape(colours, 3)
    place, frames = 13 + 3 * colours, []
    while data[place] != 0x3B:
        if data[place] == 0x21:
            place += 2
        else:
            assert data[place] == 0x2C
            assert struct.unpack_from("<HHHH", data, place + 1) == (0, 0, width, height)
            place += 10
            bits = data[place]
            packed, _ = _blocks(data, place + 1)
            frames.append(palette[np.frombuffer(_unpack(packed, bits), np.uint8)].reshape(height, width, 3))
            place += 1
        _, place = _blocks(data, place)
    return frames


def _blocks(data: bytes, place: int) -> tuple[bytes, int]:
    found = b""
    while data[place]:
        found += data[place + 1 : place + 1 + data[place]]
        place += 1 + data[place]
    return found, place + 1


def _unpack(packed: bytes, bits: int) -> bytes:
    clear, end = 1 << bits, (1 << bits) + 1
    table: list[bytes] = []
    out, before, width, place = bytearray(), b"", bits + 1, 0
    number = int.from_bytes(packed, "little")
    while True:
        code = (number >> place) & ((1 << width) - 1)
        place += width
        if code == clear:
            table = [bytes([value]) for value in range(clear)] + [b"", b""]
            width, before = bits + 1, b""
            continue
        if code == end:
            return bytes(out)
        run = table[code] if code < len(table) else before + before[:1]
        out += run
        if before:
            table.append(before + run[:1])
        before = run
        if len(table) == 1 << width and width < 12:
            width += 1


class _Reader:
    """Bits of a payload."""

    def __init__(self, unit: bytes) -> None:
        self.data = unit.replace(b"\0\0\3", b"\0\0")
        self.place = 8

    def bits(self, count: int) -> int:
        value = 0
        for _ in range(count):
            value = value << 1 | self.data[self.place // 8] >> (7 - self.place % 8) & 1
            self.place += 1
        return value

    def ue(self) -> int:
        zeros = 0
        while not self.bits(1):
            zeros += 1
        return (1 << zeros) - 1 + (self.bits(zeros) if zeros else 0)

    def raw(self, count: int) -> bytes:
        self.place = (self.place + 7) // 8 * 8
        found = self.data[self.place // 8 : self.place // 8 + count]
        self.place += 8 * count
        return found


def decode_mp4(data: bytes) -> list[Pixels]:
    boxes = _boxes(data)
    assert boxes["ftyp"][:4] == b"isom"
    table = _path(data, "moov", "trak", "mdia", "minf", "stbl")
    stsz, stco, avc1 = (_boxes(table)[name] for name in ("stsz", "stco", "stsd"))
    width, height = struct.unpack_from(">HH", avc1, 8 + 8 + 24)
    count = struct.unpack_from(">I", stsz, 8)[0]
    sizes = struct.unpack_from(f">{count}I", stsz, 12)
    (place,) = struct.unpack_from(">I", stco, 8)
    frames: list[Pixels] = []
    for size in sizes:
        sample = data[place : place + size]
        place += size
        assert struct.unpack_from(">I", sample)[0] == size - 4
        frames.append(_picture(sample[4:], width, height) if sample[4] & 31 == 5 else _repeat(sample[4:], frames[-1]))
    return frames


def _boxes(data: bytes) -> dict[str, bytes]:
    found, place = {}, 0
    while place + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, place)
        found[data[place + 4 : place + 8].decode("latin-1")] = data[place + 8 : place + size]
        place += size
    return found


def _path(data: bytes, *names: str) -> bytes:
    for name in names:
        data = _boxes(data)[name]
    return data


def _picture(unit: bytes, width: int, height: int) -> Pixels:
    reader = _Reader(unit)
    assert (reader.ue(), reader.ue(), reader.ue(), reader.bits(8)) == (0, 7, 0, 0)
    reader.ue()
    reader.bits(2)
    assert (reader.ue(), reader.ue()) == (0, 1)
    luma = np.zeros((height, width), np.float64)
    chroma = [np.zeros((height // 2, width // 2), np.float64) for _ in range(2)]
    for top in range(0, height, 16):
        for left in range(0, width, 16):
            assert reader.ue() == 25
            luma[top : top + 16, left : left + 16] = np.frombuffer(reader.raw(256), np.uint8).reshape(16, 16)
            for plane in chroma:
                part = np.frombuffer(reader.raw(64), np.uint8).reshape(8, 8)
                plane[top // 2 : top // 2 + 8, left // 2 : left // 2 + 8] = part
    blue, red = (np.kron(plane - 128, np.ones((2, 2))) for plane in chroma)
    y = (luma - 16) * 1.164383
    rgb = np.stack([y + 1.596027 * red, y - 0.391762 * blue - 0.812968 * red, y + 2.017232 * blue], axis=2)
    found: Pixels = np.clip(np.rint(rgb), 0, 255).astype(np.uint8)
    return found


def _repeat(unit: bytes, before: Pixels) -> Pixels:
    reader = _Reader(unit)
    assert (reader.ue(), reader.ue(), reader.ue()) == (0, 5, 0)
    reader.bits(8)
    assert (reader.bits(3), reader.ue(), reader.ue()) == (0, 0, 1)
    assert reader.ue() == before.shape[0] // 16 * (before.shape[1] // 16)
    return before


# What is in a picture


def _name(pixel: Sequence[int]) -> str:
    return min(_NAMES, key=lambda name: sum((int(a) - b) ** 2 for a, b in zip(pixel, _NAMES[name], strict=True)))


def _runs(names: Sequence[str]) -> list[str]:
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


def _stripes(picture: Pixels) -> str:
    return ", ".join(_runs([_name(pixel) for pixel in picture[picture.shape[0] // 2]]))


def _number(picture: Pixels) -> str:
    """Digits by the ink in the cells of a 5 x 7 grid: each digit has its own pattern."""
    ink = picture.sum(axis=2) < 200
    rows = np.flatnonzero(ink.any(axis=1))
    scale = (rows[-1] - rows[0] + 1) // 7
    columns = np.flatnonzero(ink.any(axis=0))
    grid = ink[rows[0] + scale // 2 :: scale][:7]
    text, left = "", columns[0]
    # The leftmost digit may leave its first column empty (1, 4): its middle stroke tells where it stands.
    for start in range(-2, 3):
        cells = grid[:, max(0, left + start * scale + scale // 2) :: scale]
        text = _digits(cells)
        if text:
            return text
    return "unreadable"


_PATTERNS = {
    "01110100011001110101110011000101110": "0",
    "00100011000010000100001000010001110": "1",
    "01110100010000100110010001000011111": "2",
    "11110000010000101110000010000111110": "3",
    "00010001100101010010111110001000010": "4",
    "11111100001111000001000011000101110": "5",
    "00110010001000011110100011000101110": "6",
    "11111000010001000100010000100001000": "7",
    "01110100011000101110100011000101110": "8",
    "01110100011000101111000010001001100": "9",
}


def _digits(cells: NDArray[np.bool_]) -> str:
    text = ""
    for at in range(0, cells.shape[1] - 4, 6):
        pattern = "".join("1" if bit else "0" for bit in cells[:, at : at + 5].ravel())
        if "1" not in pattern:
            break
        if pattern not in _PATTERNS:
            return ""
        text += _PATTERNS[pattern]
    return text


def _counts(picture: Pixels) -> str:
    """Blobs of blue and of red, each in a cell of a 4 x 4 grid."""
    step = picture.shape[0] // 4
    names = [_name(picture[step * row + step // 2, step * column + step // 2]) for row in range(4) for column in range(4)]
    return f"{names.count('blue')}, {names.count('red')}"


def picture_tokens(picture: Pixels, side: int = 28) -> int:
    height, width = int(picture.shape[0]), int(picture.shape[1])
    return max(1, round(height / side)) * max(1, round(width / side)) + 2


class Sight(Model):
    """A model with eyes. ``faults`` are what tests switch on, by name."""

    def __init__(self, **faults: object) -> None:
        super().__init__(ttft_s=0.0, tpot_s=0.0)
        self.faults: Mapping[str, object] = faults
        self.first: list[Pixels] = []
        """What was shown first: a cache that mistakes one for another gives this back."""

    def __call__(self, request: Received) -> Script:
        path = request.path.partition("?")[0]
        if request.method == "GET" or not path.startswith("/v1/"):
            return super().__call__(request)
        fields = request.json()
        responses = path.endswith("/responses")
        messages = fields.get("input" if responses else "messages")
        assert isinstance(messages, list)
        refusal = self._refusal(fields, messages, responses=responses)
        if refusal:
            return document({"error": {"message": refusal}}, status=500 if self.faults.get("under_500") else 400)
        pictures, clips, text, words = _shown(messages)
        said = self._say(text, pictures, clips)
        tokens = words + sum(self._tokens(picture) for picture in pictures)
        tokens += sum(len(clip) // 2 * 64 + 2 for clip in clips) if "fixed_frames" not in self.faults else 512 * bool(clips)
        if self.faults.get("costlier_in_one_piece") and not fields.get("stream"):
            tokens += 7
        return _answer(self, request.number, said, tokens, fields, responses=responses)

    def _refusal(self, fields: Mapping[str, object], messages: list[dict[str, object]], *, responses: bool) -> str:
        kinds = {str(part.get("type")) for message in messages for part in _parts(message)}
        if self.faults.get("blind_refuses") and kinds & {"image_url", "video_url", "input_image", "input_video"}:
            return "image input is not supported" if self.faults.get("under_500") else "this model takes no pictures"
        if self.faults.get("no_mp4") and b"video/mp4" in str(messages).encode():
            return "no decoder for mp4"
        if responses and self.faults.get("no_responses"):
            return "no route /v1/responses"
        if self.faults.get("no_choices") and fields.get("n") not in {None, 1}:
            return "n > 1 is not supported"
        return ""

    def _tokens(self, picture: Pixels) -> int:
        rule = self.faults.get("tokens")
        return rule(picture) if callable(rule) else picture_tokens(picture)

    def _say(self, text: str, pictures: list[Pixels], clips: list[list[Pixels]]) -> str:
        answer = self.faults.get("knows")
        if isinstance(answer, Mapping) and not pictures and not clips:
            return next((str(said) for part, said in answer.items() if str(part) in text), "I see nothing.")
        if pictures:
            self.first = self.first or pictures
            if self.faults.get("stale"):
                pictures = [self.first[0]] if self.first[0].shape == pictures[0].shape else pictures
        if clips and self.faults.get("backwards"):
            clips = [sorted_clip(clip) for clip in clips]
        parts = []
        if ("number is written" in text or "the number in" in text) and pictures:
            parts.append(_number(pictures[-1]))
        if "stripes" in text and pictures:
            parts.append(_stripes(pictures[-1]))
        if "squares" in text and pictures:
            parts.append(_counts(pictures[-1]))
        if "video" in text and clips:
            parts.append(", ".join(_runs([_name(frame[5, 5]) for frame in clips[-1]])))
        return ", ".join(parts) or "I see nothing."


def sorted_clip(clip: list[Pixels]) -> list[Pixels]:
    """Frames in an order that does not depend on theirs."""
    return sorted(clip, key=lambda frame: frame[0, 0].tolist())


def _parts(message: Mapping[str, object]) -> list[dict[str, object]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _shown(messages: list[dict[str, object]]) -> tuple[list[Pixels], list[list[Pixels]], str, int]:
    pictures: list[Pixels] = []
    clips: list[list[Pixels]] = []
    words = 4
    text = ""
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            words, text = words + len(content.split()), content
        for part in _parts(message):
            kind = str(part["type"])
            if kind in {"text", "input_text"}:
                text = str(part["text"])
                words += len(text.split())
                continue
            holder = part.get(kind) or part.get(f"{kind.removeprefix('input_')}_url")
            url = str(holder["url"] if isinstance(holder, dict) else holder)
            data = base64.b64decode(url.partition("base64,")[2])
            if url.startswith("data:image/png"):
                pictures.append(decode_png(data))
            else:
                clips.append(decode_mp4(data) if "video/mp4" in url[:20] else decode_gif(data))
    return pictures, clips, text, words


def _answer(model: Sight, number: int, said: str, tokens: int, fields: Mapping[str, object], *, responses: bool) -> Script:
    count = len(said.split())
    usage = {"prompt_tokens": tokens, "completion_tokens": count, "total_tokens": tokens + count}
    if model.faults.get("no_usage"):
        usage = {}
    if responses:
        item = {"type": "message", "content": [{"type": "output_text", "text": said}]}
        whole = {"id": f"r{number}", "status": "completed", "output": [item], "usage": usage}
        if fields.get("stream"):
            delta = {"type": "response.output_text.delta", "delta": said}
            return Script(steps=[Step(0.0, sse(delta) + sse({"type": "response.completed", "response": whole}))])
        return document(whole)
    if fields.get("stream"):
        events = chat_chunk({"role": "assistant", "content": said}) + chat_chunk({}, finish="stop")
        if usage:
            events += sse({"choices": [], "usage": usage})
        return Script(steps=[Step(0.0, events + b"data: [DONE]\n\n")])
    count_of_choices = fields.get("n") or 1
    assert isinstance(count_of_choices, int)
    choices = [
        {"index": place, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        for place in range(count_of_choices)
    ]
    if model.faults.get("second_choice_blind") and len(choices) > 1:
        choices[1]["message"] = {"role": "assistant", "content": "I see nothing."}
    return document({"id": f"c{number}", "model": "m", "choices": choices, **({"usage": usage} if usage else {})})
