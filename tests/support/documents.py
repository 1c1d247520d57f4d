"""Pages of the project and the fenced blocks in them."""

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGES", "ROOT", "Block", "blocks"]

ROOT = Path(__file__).parents[2]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))


class Block(NamedTuple):
    """One fenced block."""

    info: str
    """What stands behind the fence: ``sh``, ``sh elsewhere``, ``yaml``."""
    text: str
    line: int
    """Line of the fence."""


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(match["info"].strip(), match["text"], text.count("\n", 0, match.start()) + 1)
        for match in re.finditer(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]
