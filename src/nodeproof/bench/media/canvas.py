"""A picture as it is drawn: a colour of a small palette for each pixel."""

from typing import Final

__all__ = ["COLOURS", "PALETTE", "Canvas"]

PALETTE: Final = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "red": (220, 20, 20),
    "green": (20, 150, 40),
    "blue": (20, 50, 220),
    "yellow": (250, 225, 20),
    "purple": (130, 20, 150),
    "orange": (250, 130, 10),
}
"""Names that models use for them, and their red, green and blue."""
COLOURS: Final = tuple(PALETTE)
"""By number."""

_GLYPHS: Final = {
    "0": ("01110", "10001", "10011", "10101", "11001", "10001", "01110"),
    "1": ("00100", "01100", "00100", "00100", "00100", "00100", "01110"),
    "2": ("01110", "10001", "00001", "00110", "01000", "10000", "11111"),
    "3": ("11110", "00001", "00001", "01110", "00001", "00001", "11110"),
    "4": ("00010", "00110", "01010", "10010", "11111", "00010", "00010"),
    "5": ("11111", "10000", "11110", "00001", "00001", "10001", "01110"),
    "6": ("00110", "01000", "10000", "11110", "10001", "10001", "01110"),
    "7": ("11111", "00001", "00010", "00100", "01000", "01000", "01000"),
    "8": ("01110", "10001", "10001", "01110", "10001", "10001", "01110"),
    "9": ("01110", "10001", "10001", "01111", "00001", "00010", "01100"),
}
_GLYPH_COLUMNS, _GLYPH_ROWS = 5, 7


class Canvas:
    """A picture under way."""

    def __init__(self, width: int, height: int, colour: str = "white") -> None:
        self.width, self.height = width, height
        number = COLOURS.index(colour)
        self.rows = [bytearray([number]) * width for _ in range(height)]
        """Numbers of :data:`COLOURS`, from the top."""

    def rectangle(self, left: int, top: int, width: int, height: int, colour: str) -> None:
        """Filled; what lies outside is left out."""
        begin, end = max(0, left), min(self.width, left + width)
        if begin < end:
            line = bytes([COLOURS.index(colour)]) * (end - begin)
            for row in self.rows[max(0, top) : max(0, top + height)]:
                row[begin:end] = line

    def disc(self, middle_x: int, middle_y: int, radius: int, colour: str) -> None:
        """Filled."""
        for offset in range(-radius, radius + 1):
            half = int((radius * radius - offset * offset) ** 0.5)
            self.rectangle(middle_x - half, middle_y + offset, 2 * half + 1, 1, colour)

    def digits(self, text: str, colour: str = "black") -> None:
        """Digits as large as they fit, in the middle, with a margin of a digit's stroke."""
        columns = len(text) * (_GLYPH_COLUMNS + 1) + 1
        scale = max(1, min(self.width // columns, self.height // (_GLYPH_ROWS + 2)))
        left = (self.width - (columns - 2) * scale) // 2
        top = (self.height - _GLYPH_ROWS * scale) // 2
        for place, digit in enumerate(text):
            for line, bits in enumerate(_GLYPHS[digit]):
                for column, bit in enumerate(bits):
                    if bit == "1":
                        x = left + (place * (_GLYPH_COLUMNS + 1) + column) * scale
                        self.rectangle(x, top + line * scale, scale, scale, colour)
