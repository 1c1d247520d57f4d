"""``npu-smi info -t usages|common|ecc|health|board -i ID``, ``info -m`` and ``info -t hccs-bw``: what the table does not tell.

The first kind is lines of ``key : value``, a block a chip. Values may hold colons (``PCIe Bus Info : 0000:01:00.0``); the chip's
own number stands before or after its block, by version; a block named ``mcu`` is the card's controller and no chip::

    NPU ID                         : 1
    HBM Capacity(MB)               : 65536
    HBM Usage Rate(%)              : 5
    HBM Bandwidth Usage Rate(%)    : NA
    Chip ID                        : 0

``info -m`` maps the ids: card and chip to the logical id that programs use, and to the physical id that ``hccn_tool`` takes.
``info -t hccs-bw`` has a row a link and one for the sum, with transmit and receive in either order.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.sources.npu_cells import Reading, believable, number

__all__ = ["ChipIds", "chip_ids", "error_codes", "hccs_bandwidth", "parse", "readings"]

_MOST_LINES = 4096
_GIGA = 1024.0
"""The tool's MB are binary, so its GB are taken to be."""

_FIELDS: Mapping[str, tuple[str, str]] = {
    "hbm usage rate(%)": ("hbm_percent", "%"),
    "hbm capacity(mb)": ("hbm_total", "MB"),
    "ddr capacity(mb)": ("ddr_total", "MB"),
    "memory usage rate(%)": ("ddr_percent", "%"),
    "ddr usage rate(%)": ("ddr_percent", "%"),
    "aicore usage rate(%)": ("aicore", "%"),
    "aivector usage rate(%)": ("vector_core", "%"),
    "aicpu usage rate(%)": ("aicpu", "%"),
    "ctrlcpu usage rate(%)": ("ctrlcpu", "%"),
    "npu utilization(%)": ("npu", "%"),
    "npu utilization rate(%)": ("npu", "%"),
    "hbm bandwidth usage rate(%)": ("hbm_bandwidth", "%"),
    "ddr bandwidth usage rate(%)": ("ddr_bandwidth", "%"),
    "aicore freq(mhz)": ("aicore_rated_mhz", "MHz"),
    "aicore curfreq(mhz)": ("aicore_mhz", "MHz"),
    "hbm clock speed(mhz)": ("hbm_mhz", "MHz"),
    "ddr clock speed(mhz)": ("ddr_mhz", "MHz"),
    "hbm temperature(c)": ("hbm_temperature", "°C"),
    "temperature(c)": ("temperature", "°C"),
    "npu temperature (c)": ("temperature", "°C"),
    "npu real-time power(w)": ("power", "W"),
    "power dissipation(w)": ("power", "W"),
    "hbm single bit error count": ("hbm_single", "count"),
    "hbm double bit error count": ("hbm_double", "count"),
    "hbm single bit isolated pages count": ("hbm_single_isolated", "count"),
    "hbm double bit isolated pages count": ("hbm_double_isolated", "count"),
    "ddr single bit error count": ("ddr_single", "count"),
    "ddr double bit error count": ("ddr_double", "count"),
    "ddr single bit isolated pages count": ("ddr_single_isolated", "count"),
    "ddr double bit isolated pages count": ("ddr_double_isolated", "count"),
}
"""Key in small letters -> name and unit."""

_MAP_HEADINGS = re.compile(r"NPU ID|Chip Logic ID|Chip Phy-ID|Chip ID|Slot ID|Chip Name")
_CODE = re.compile(r"(?:0x)?([0-9A-Fa-f]{1,8})\b")


class ChipIds(NamedTuple):
    """The ids of one chip; None where this version does not tell one."""

    npu_id: int
    chip_id: int
    logic_id: int | None
    phy_id: int | None


def parse(raw: bytes, /) -> dict[int, dict[str, str]]:
    """Chip number -> key in small letters -> value as printed. Raises ParseError when there is no ``key : value`` at all."""
    text = raw.decode("utf-8", "replace")
    chips: dict[int, dict[str, str]] = {}
    for block in _blocks(text):
        chip = block.pop("chip id", "0")
        if chip.isdigit():
            chips.setdefault(int(chip), {}).update(block)
    if not chips:
        raise ParseError("npu-smi info", 0, text.strip()[:120], "lines of key : value")
    return chips


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """A block a chip: it ends where ``Chip ID`` closes it, or where another ``Chip ID`` or ``Chip Name`` opens one."""
    shared: dict[str, str] = {}
    block: dict[str, str] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        key, colon, value = (part.strip() for part in line.partition(":"))
        name = key.lower()
        if not colon or not name:
            continue
        if name in {"npu id", "chip count"}:
            shared[name] = value
        elif name == "chip name" and value.lower() == "mcu":
            yield block
            return
        elif name == "chip id" and block and "chip id" not in block:
            yield block | {name: value}
            block = {}
        elif name == "chip id":
            if block:
                yield block
            block = {name: value}
        else:
            block.setdefault(name, value)
    if block:
        yield block


def readings(block: Mapping[str, str]) -> dict[str, Reading]:
    """The readings in one chip's block, by the names of ``npu_smi`` and those above.

    A memory of size 0 is one that the card does not have: nothing of it applies.
    """
    found: dict[str, Reading] = {}
    for key, (name, unit) in _FIELDS.items():
        if key in block:
            found[name] = number(block[key], unit, name)
    for memory, word in (("hbm", "high-bandwidth"), ("ddr", "DDR")):
        if found.get(f"{memory}_total") == 0.0:
            none = NoData(Absence.NOT_APPLICABLE, f"the card has no {word} memory")
            found |= dict.fromkeys((name for name, _ in _FIELDS.values() if name.startswith(f"{memory}_")), none)
    return found


def error_codes(block: Mapping[str, str]) -> tuple[int, ...] | None:
    """Codes of ``-t health``: empty when it says NA; None when it says nothing of them."""
    text = block.get("error code")
    if text is None:
        return None
    return tuple(dict.fromkeys(int(code, 16) for code in _CODE.findall(text) if text.lower() not in {"na", "n/a", "none"}))


def chip_ids(raw: bytes, /) -> list[ChipIds]:
    """Rows of ``npu-smi info -m``; controllers (``Mcu``) are left out. Raises ParseError without a heading."""
    lines = raw.decode("utf-8", "replace").splitlines()[:_MOST_LINES]
    start = next((at for at, line in enumerate(lines) if "NPU ID" in line and "Chip" in line), None)
    if start is None:
        raise ParseError("npu-smi info -m", 0, " ".join(lines)[:120], "a heading with NPU ID")
    columns = [name.strip().lower() for name in re.split(r"\s{2,}", lines[start].strip())]
    if len(columns) < 3:
        columns = [name.lower() for name in _MAP_HEADINGS.findall(lines[start])]
    found = []
    for line in lines[start + 1 :]:
        cells = dict(zip(columns, line.split(), strict=False))
        if cells.get("chip name", "").lower() == "mcu" or not cells.get("npu id", "").isdigit():
            continue
        ids = [_whole(cells.get(name, "")) for name in ("npu id", "chip id", "chip logic id", "chip phy-id")]
        if ids[0] is not None and ids[1] is not None:
            found.append(ChipIds(ids[0], ids[1], ids[2], ids[3]))
    return found


def hccs_bandwidth(raw: bytes, /) -> dict[str, Reading]:
    """``tx`` and ``rx`` in MB/s of all links together: the row ``total``, or the ``TX:`` and ``RX:`` lines of older versions.

    Raises ParseError when there is neither.
    """
    text = raw.decode("utf-8", "replace")
    order: list[str] = []
    found: dict[str, Reading] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        words = line.replace("|", " ").split()
        heads = [word[:2].lower() for word in words if word.lower().startswith(("tx_bandwidth", "rx_bandwidth"))]
        if heads:
            order = heads
        elif order and words[:1] and words[0].lower() == "total":
            for name, cell in zip(order, words[1:], strict=False):
                found[name] = _scaled(number(cell, "MB/s", f"HCCS {name}"), _GIGA, name)
        elif not order and (match := re.match(r"\s*(TX|RX)\b[^:]*:\s*(\S+)", line, re.IGNORECASE)):
            name = match[1].lower()
            found[name] = number(match[2], "MB/s", f"HCCS {name}")
    if not found:
        raise ParseError("npu-smi info -t hccs-bw", 0, text.strip()[:120], "a row total, or lines TX: and RX:")
    return found


def _scaled(reading: Reading, scale: float, what: str) -> Reading:
    return believable(reading * scale, "MB/s", f"HCCS {what}") if isinstance(reading, float) else reading


def _whole(cell: str) -> int | None:
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 7 else None
