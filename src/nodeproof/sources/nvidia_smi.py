"""Tables of ``nvidia-smi --query-gpu=... --format=csv`` and ``--query-compute-apps``: read by their header.

::

    index, pci.bus_id, temperature.gpu, power.draw [W], memory.used [MiB], ecc.errors.uncorrected.volatile.total
    0, 00000000:17:00.0, 45, 87.31 W, 17 MiB, 0
    1, 00000000:65:00.0, [GPU requires reset], [Unknown Error], 0 MiB, [N/A]

A unit stands in the header, behind the number, or in both. Fields that newer drivers renamed are known by their newest name. One
bad cell is the matter of that cell; a row says nothing about its neighbours. Lines before the header and between the rows are
messages: some tell of one card, some of the whole driver.
"""

import re
from typing import NamedTuple

from nodeproof.errors import Absence
from nodeproof.model.gpu import CardState, GpuProcess, Untold, normal_address

__all__ = ["CardTrouble", "Cell", "Row", "Table", "absent_cell", "number", "parse_processes", "parse_table", "valid_fields"]

_MAX_TEXT = 200
_MAX_ROWS = 1024
_HEADER_CELL = re.compile(r"([A-Za-z][A-Za-z0-9_.]*)(?:\s+\[([^\]]+)\])?")
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
_FIELD_LINE = re.compile(r'^"[^"]+"(?:\s+or\s+"[^"]+")*\s*$')
_QUOTED = re.compile(r'"([^"]+)"')
_CARD_MESSAGE = re.compile(r"GPU\s*:?\s*((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*:\s*(.+)")
_INVALID_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')

_SYNONYMS = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "clocks.video": "clocks.current.video",
    "clocks.max.gr": "clocks.max.graphics",
    "clocks.max.mem": "clocks.max.memory",
    "gpu.power.draw.average": "power.draw.average",
    "gpu.power.draw.instant": "power.draw.instant",
    "gpu.power.current_limit": "enforced.power.limit",
    "gpu.power.default_limit": "power.default_limit",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
    "remapped_rows.sbe": "remapped_rows.correctable",
    "remapped_rows.dbe": "remapped_rows.uncorrectable",
    "used_memory": "used_gpu_memory",
}
_HEADER_WORDS = frozenset({"index", "uuid", "name", "timestamp"})
"""Fields without a point in their name; a line of words without any of them is a message."""
_OLD_PREFIX, _NEW_PREFIX = "clocks_throttle_reasons.", "clocks_event_reasons."

_UNTOLD: dict[str, Untold] = {
    "n/a": Untold(Absence.UNSUPPORTED, "this card or driver does not tell it"),
    "not supported": Untold(Absence.UNSUPPORTED, "this card or driver does not tell it"),
    "requested functionality has been deprecated": Untold(Absence.UNSUPPORTED, "this driver does not tell it any more"),
    "insufficient permissions": Untold(Absence.NO_PERMISSION, "the driver shows it to root only"),
    "not found": Untold(Absence.UNKNOWN, "the driver does not find it"),
    "": Untold(Absence.UNKNOWN, "nvidia-smi left it empty"),
}
"""What stands in place of a value, without brackets and in lower case."""

_SCALE = {
    "": 1.0,
    "%": 1.0,
    "W": 1.0,
    "mW": 1e-3,
    "C": 1.0,
    "MHz": 1.0,
    "GHz": 1e3,
    "B": 1 / 1048576,
    "KiB": 1 / 1024,
    "KB": 1 / 1024,
    "MiB": 1.0,
    "MB": 1.0,
    "GiB": 1024.0,
    "KB/s": 1 / 1024,
    "MB/s": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "x": 1.0,
    "bank": 1.0,
    "GB/s": 1024.0,
    "mV": 1e-3,
}
"""Factor from nvidia-smi's units to those of the catalogue: MiB, W, MHz, s, per cent. Its MB is 1,048,576 bytes."""

Cell = str | Untold
"""What a cell holds: its text, or why there is none."""


class Row(NamedTuple):
    """One card."""

    cells: dict[str, Cell]
    """By field, under its newest name."""
    units: dict[str, str]
    """Units that the header names, for cells that bear none."""
    state: CardState
    """What its cells say about the whole card."""
    reason: str

    def number(self, field: str) -> "float | Untold | None":
        """The number in ``field``, in the catalogue's unit; None when there is no such column."""
        cell = self.cells.get(field)
        if cell is None or isinstance(cell, Untold):
            return cell
        return number(cell, self.units.get(field, ""))

    def text(self, field: str) -> str:
        """What ``field`` says; empty when it says nothing."""
        cell = self.cells.get(field)
        return cell if isinstance(cell, str) else ""


class CardTrouble(NamedTuple):
    """A message about one card that has no row."""

    state: CardState
    reason: str


class Table(NamedTuple):
    """What one call printed."""

    rows: tuple[Row, ...]
    troubles: dict[str, CardTrouble]
    """By PCI address: cards that nvidia-smi could not ask."""
    message: str
    """First line that is about the whole driver; empty when there is none."""
    invalid_field: str
    """A field that this nvidia-smi does not know: with one of those it tells nothing at all."""


def parse_table(raw: bytes, /, fields: tuple[str, ...] = ()) -> Table:
    """Read a table. ``fields``: the columns where it was asked for without a header (``noheader``). Never raises."""
    header: tuple[tuple[str, str], ...] = tuple((_newest(field), "") for field in fields)
    rows: list[Row] = []
    troubles: dict[str, CardTrouble] = {}
    message = invalid = ""
    for line in raw.decode("utf-8", "replace").splitlines()[: 4 * _MAX_ROWS]:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not header and (found := _header(text)):
            header = found
            continue
        if trouble := _CARD_MESSAGE.search(text):
            troubles[normal_address(trouble[1]) or trouble[1]] = CardTrouble(*_judge_message(trouble[2]))
            continue
        row = _row(text, header) if header else None
        if row is not None and len(rows) < _MAX_ROWS:
            rows.append(row)
            continue
        field = _INVALID_FIELD.search(text)
        invalid = invalid or (field[1] if field else "")
        message = message or text[:_MAX_TEXT]
    return Table(tuple(rows), troubles, message, invalid)


def number(text: str, unit: str = "") -> float | Untold:
    """The number that ``text`` begins with, in the catalogue's unit; ``unit`` counts where the text has none."""
    found = _NUMBER.match(text)
    if found is None:
        return Untold(Absence.READ_ERROR, f"nvidia-smi says {text[:60]!r} in place of a number")
    scale = _SCALE.get(found[2] or unit)
    if scale is None:
        return Untold(Absence.READ_ERROR, f"nvidia-smi gives it in the unknown unit {(found[2] or unit)[:20]!r}")
    return float(found[1]) * scale


def absent_cell(text: str) -> Untold | CardState | None:
    """What a cell without a value means: of itself, or of the whole card; None for a value."""
    plain = text.strip().strip("[]").strip().lower()
    if plain in _UNTOLD:
        return _UNTOLD[plain]
    if "lost" in plain and "gpu" in plain:
        return CardState.LOST
    if plain in {"gpu requires reset", "requires reset", "reset required"}:
        return CardState.RESET_REQUIRED
    if "error" in plain or plain == "err!":
        return Untold(Absence.READ_ERROR, f"the driver answers {text.strip()[:60]!r}")
    if text.startswith("[") and text.endswith("]"):
        return Untold(Absence.READ_ERROR, f"the driver answers {text[:60]!r}")
    return None


def valid_fields(raw: bytes, /) -> frozenset[str]:
    """Fields that ``nvidia-smi --help-query-gpu`` names, synonyms included."""
    found: set[str] = set()
    for line in raw.decode("utf-8", "replace").splitlines():
        if _FIELD_LINE.match(line):
            found.update(_QUOTED.findall(line))
    return frozenset(found)


def parse_processes(raw: bytes, /, fields: tuple[str, ...] = ()) -> dict[str, tuple[GpuProcess, ...]]:
    """Processes by UUID of their card. A process's name may hold commas: columns are counted from both ends around it."""
    header = [_newest(field) for field in fields]
    found: dict[str, list[GpuProcess]] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        if not header:
            names = _header(line.strip())
            header = [name for name, _ in names or ()]
            continue
        one = _process(line, header)
        if one is not None:
            found.setdefault(one[0], []).append(one[1])
    return {uuid: tuple(processes) for uuid, processes in found.items()}


def _process(line: str, header: list[str]) -> tuple[str, GpuProcess] | None:
    cells = _outside_in(line, header, "process_name")
    if cells is None or not cells.get("pid", "").isdigit():
        return None
    name = cells.get("process_name", "")
    used = number(cells.get("used_gpu_memory", ""), "MiB")
    absent = absent_cell(name)
    process = GpuProcess(
        int(cells["pid"]), "" if absent is not None else name[:_MAX_TEXT], None if isinstance(used, Untold) else used
    )
    return cells.get("uuid", ""), process


def _newest(field: str) -> str:
    if field.startswith(_OLD_PREFIX):
        field = _NEW_PREFIX + field.removeprefix(_OLD_PREFIX)
    return _SYNONYMS.get(field, field)


def _header(line: str) -> tuple[tuple[str, str], ...] | None:
    """Fields and their units; None when the line is no header."""
    cells = [_HEADER_CELL.fullmatch(cell.strip()) for cell in line.split(",")]
    names = [cell[1] for cell in cells if cell is not None]
    if len(names) != len(cells) or not any("." in name or _newest(name) in _HEADER_WORDS for name in names):
        return None
    return tuple((_newest(cell[1]), cell[2] or "") for cell in cells if cell is not None)


def _outside_in(line: str, names: list[str], free: str) -> dict[str, str] | None:
    """Cells by name; whatever is too much belongs to the column ``free``, whose text may hold commas."""
    cells = [cell.strip() for cell in line.split(",")]
    extra = len(cells) - len(names)
    if extra < 0:
        return None
    if extra:
        if free not in names:
            return None
        at = names.index(free)
        cells[at : at + extra + 1] = [",".join(line.split(",")[at : at + extra + 1]).strip()]
    return dict(zip(names, cells, strict=True))


def _row(line: str, header: tuple[tuple[str, str], ...]) -> Row | None:
    texts = _outside_in(line, [name for name, _ in header], "name")
    if texts is None or not _names_a_card(texts):
        return None
    cells: dict[str, Cell] = {}
    state, reason = CardState.ANSWERS, ""
    for name, text in texts.items():
        absent = absent_cell(text)
        if isinstance(absent, CardState):
            if absent > state:
                state, reason = absent, text.strip("[]")[:_MAX_TEXT]
            cells[name] = Untold(Absence.READ_ERROR, f"the driver answers {text[:60]!r}")
        else:
            cells[name] = text if absent is None else absent
    return Row(cells, {name: unit for name, unit in header if unit}, state, reason)


def _names_a_card(texts: dict[str, str]) -> bool:
    """Whether a line is a row: a message that happens to have as many commas is none."""
    if "pci.bus_id" in texts:
        return normal_address(texts["pci.bus_id"]) is not None
    return texts.get("index", "0").isdigit()


def _judge_message(text: str) -> tuple[CardState, str]:
    """State of a card that a message is about; ``Unknown Error`` in getting its handle means that it is lost."""
    absent = absent_cell(text)
    state = absent if isinstance(absent, CardState) else CardState.LOST
    return state, text.strip()[:_MAX_TEXT]
