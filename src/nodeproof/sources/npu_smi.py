"""``npu-smi info``: all chips of all Ascend cards in one table, and the processes on them.

Two rows a chip, under two rows of headings::

    | NPU   Name                | Health        | Power(W)             Temp(C)                 Hugepages-Usage(page)   |
    | Chip  Phy-ID              | Bus-Id        | AICore(%)            Memory-Usage(MB)        HBM-Usage(MB)           |
    +===========================+===============+======================================================================+
    | 0     Ascend910           | OK            | 162.6                34                      0    / 0                |
    | 0     0                   | 0000:9D:00.0  | 0                    0    / 0                3419 / 65536            |

Columns differ by version and card (no ``Phy-ID`` on A2, ``Device`` on 310P, a column of its own for the name and ``NPU Util(%)``
on 950), so values are found by their headings. A row that does not fit its headings costs its own chip only, and is told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nodeproof.errors import Absence, NoData
from nodeproof.sources.npu_cells import Reading, absent, number

__all__ = ["NpuChip", "NpuProcess", "NpuTable", "parse"]

_HEADINGS = re.compile(
    r"NPU ID|NPU Util\(%\)|Chip ID|Process id in container|Process id|Process name|Process memory\(MB\)|\S+", re.IGNORECASE
)
_VALUES = re.compile(r"[^\s/]+\s*/\s*[^\s/]+|\S+")
_BUS_ID = re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")
_VERSION = re.compile(r"Version:\s*(\S+)")
_DIGITS = re.compile(r"\d{1,6}", re.ASCII)
_PLAIN = {"memory": "DDR memory", "hbm": "high-bandwidth memory", "hugepages": "huge pages"}
_MOST_ROWS = 4096
_MOST_FAULTS = 16

_SINGLE = {
    "power(w)": ("power", "W"),
    "temp(c)": ("temperature", "°C"),
    "aicore(%)": ("aicore", "%"),
    "npu util(%)": ("npu", "%"),
}
_PAIRS = {"memory-usage(mb)": ("memory", "MB"), "hbm-usage(mb)": ("hbm", "MB"), "hugepages-usage(page)": ("hugepages", "count")}


class NpuChip(NamedTuple):
    """One chip."""

    npu_id: int
    chip_id: int
    phy_id: int | None
    """None where this layout does not tell it: it is never guessed from the card's number."""
    name: str
    health: str
    """As printed; empty when it is not."""
    bus_id: str
    """PCI address in small letters; empty when it is not told."""
    readings: Mapping[str, Reading]
    """``power`` (W), ``temperature`` (°C), ``aicore`` or ``npu`` (%), ``memory_used``, ``memory_total``, ``hbm_used`` and
    ``hbm_total`` (MB), as far as the table has such a column."""


class NpuProcess(NamedTuple):
    """One process on a chip."""

    npu_id: int
    chip_id: int
    pid: int
    name: str
    memory_mb: float | None


class NpuTable(NamedTuple):
    """Everything in one answer."""

    version: str
    chips: tuple[NpuChip, ...]
    processes: tuple[NpuProcess, ...] | None
    """None = the answer has no table of processes."""
    faults: tuple[str, ...]
    """What could not be used: with any of these, a chip that is not listed is not proven to be gone."""


class _Table:
    """Two rows of headings, and the row that waits for its second."""

    def __init__(self) -> None:
        self.first: list[list[str]] = []
        self.second: list[list[str]] = []
        self.open: list[str] | None = None


def parse(raw: bytes, /) -> NpuTable:
    """Read one answer. Raises NoData when it holds no table: its message is the tool's own."""
    text = raw.decode("utf-8", "replace")
    version = _VERSION.search(text)
    chips: dict[tuple[int, int], NpuChip] = {}
    processes: list[NpuProcess] | None = None
    heads: list[str] = []
    faults: list[str] = []
    table = _Table()
    for line in text.splitlines()[:_MOST_ROWS]:
        row = line.strip()
        if not row.startswith("|"):
            _close(table, faults)
            continue
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        words = row.lower()
        if "process id" in words:
            _close(table, faults)
            processes, heads = [], [_headings(cell)[0].lower() for cell in cells if cell]
        elif processes is not None:
            processes += _process(cells, _spread(heads, cells))
        elif "health" in words and "npu" in words:
            table.first = [_headings(cell) for cell in cells]
        elif "bus-id" in words:
            table.second = [_headings(cell) for cell in cells]
        elif table.first and table.second:
            _take(table, cells, chips, faults)
    _close(table, faults)
    if not table.first or not table.second:
        raise NoData(Absence.READ_ERROR, _complaint(text), remedy="see whether npu-smi info works for this user")
    return NpuTable(
        version[1] if version else "",
        tuple(chips[key] for key in sorted(chips)),
        None if processes is None else tuple(processes),
        tuple(faults[:_MOST_FAULTS]),
    )


def _complaint(text: str) -> str:
    said = [line.strip() for line in text.splitlines() if any(char.isalnum() for char in line)]
    return f"npu-smi info: {said[-1][:200]}" if said else "npu-smi info printed nothing"


def _headings(cell: str) -> list[str]:
    return _HEADINGS.findall(cell) or [""]


def _close(table: _Table, faults: list[str]) -> None:
    """A border: a chip whose second row did not come is told."""
    if table.open is not None:
        faults.append(f"the second row of NPU {table.open[0][:20]!r} is missing")
        table.open = None


def _take(table: _Table, cells: list[str], chips: dict[tuple[int, int], NpuChip], faults: list[str]) -> None:
    if table.open is None:
        table.open = cells
        return
    first, table.open = table.open, None
    if len(first) != len(table.first) or len(cells) != len(table.second):
        faults.append(f"a row of NPU {first[0][:20]!r} does not fit its headings")
        return
    named = dict(_named(table.first, first))
    below = dict(_named(table.second, cells))
    npu_id = _id(named.get("npu", named.get("npu id", "")))
    if npu_id is None:
        faults.append(f"{first[0][:20]!r} is no number of an NPU")
        return
    told = below.get("chip", below.get("chip id"))
    chip_id = _id(told) if told else sum(1 for npu, _ in chips if npu == npu_id)
    if chip_id is None or (npu_id, chip_id) in chips:
        faults.append(f"NPU {npu_id} has no chip {told!r}, or has it twice")
        return
    bus = below.get("bus-id", "")
    chips[npu_id, chip_id] = NpuChip(
        npu_id,
        chip_id,
        _id(below.get("phy-id", "")),
        named.get("name", ""),
        named.get("health", "") if named.get("health", "").lower() not in {"na", "n/a", "-"} else "",
        bus.lower() if _BUS_ID.fullmatch(bus) else "",
        _readings(named | below, second_chip=chip_id > 0),
    )


def _named(headings: Sequence[Sequence[str]], cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(heading, value) of one row; a cell with another number of values than headings gives none of them a value."""
    for names, cell in zip(headings, cells, strict=True):
        values = _VALUES.findall(cell)
        if len(names) < len(values) and names[-1].lower() == "name":
            values[len(names) - 1 :] = [" ".join(values[len(names) - 1 :])]
        identity = names[0].lower().split(" ")[0] in {"npu", "chip"} and "util" not in names[0].lower()
        fits = len(values) == len(names) or (identity and len(values) < len(names))
        for number_, name in enumerate(names):
            value = values[number_] if fits and number_ < len(values) else ""
            yield name.lower(), value if fits else f"{cell[:40]} (torn)"


def _readings(cells: Mapping[str, str], *, second_chip: bool) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for heading, (name, unit) in _SINGLE.items():
        if heading in cells:
            found[name] = number(cells[heading], unit, name)
    if second_chip and cells.get("power(w)") == "-":
        found["power"] = NoData(Absence.NOT_APPLICABLE, "the card's power is told with its first chip")
    for heading, (name, unit) in _PAIRS.items():
        if heading in cells:
            found[f"{name}_used"], found[f"{name}_total"] = _pair(cells[heading], unit, name)
    return found


def _pair(cell: str, unit: str, what: str) -> tuple[Reading, Reading]:
    """Used and total of ``3419 / 65536``. A total of 0 means that the card has no such memory."""
    parts = cell.split("/")
    if len(parts) != 2:
        reason = absent(cell, what)
        return reason, reason
    used, total = number(parts[0], unit, f"{what}, used"), number(parts[1], unit, f"{what}, total")
    if total == 0.0:
        none = NoData(Absence.NOT_APPLICABLE, f"the card has no {_PLAIN[what]}")
        return none, none
    if isinstance(used, float) and isinstance(total, float) and used > total:
        torn = NoData(Absence.UNKNOWN, f"{what}: {used:g} of {total:g} {unit} cannot be")
        return torn, total
    return used, total


def _id(cell: str) -> int | None:
    return int(cell) if _DIGITS.fullmatch(cell) else None


def _spread(heads: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Heading -> cell of a row of the table of processes; the first cell holds both numbers."""
    found = {"ids": cells[0]}
    if len(cells) == len(heads):
        found |= dict(zip(heads[1:], cells[1:], strict=True))
    return found


def _process(cells: Sequence[str], named: Mapping[str, str]) -> Iterator[NpuProcess]:
    ids = [_id(word) for word in named["ids"].split()]
    pid = _id_of_process(named.get("process id", ""))
    if not ids or None in ids or pid is None or len(cells) < 3:
        return
    memory = number(named.get("process memory(mb)", ""), "MB", "memory of a process")
    chip = ids[1] if len(ids) > 1 else 0
    yield NpuProcess(ids[0] or 0, chip or 0, pid, named.get("process name", ""), memory if isinstance(memory, float) else None)


def _id_of_process(cell: str) -> int | None:
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 11 else None
