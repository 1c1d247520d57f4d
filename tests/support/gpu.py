"""GPUs for tests: cards on a PCI bus, and what nvidia-smi says of them, made from real output of one card."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult
from nodeproof.sources.nvidia_smi_cards import FIELDS
from support.tree import write_all

__all__ = ["H100", "PROCESS_LINE", "QUERY_LINE", "nvidia_smi_answers", "smi_output", "smi_table", "smi_uuid", "write_gpu"]

_FOLDER = Path(__file__).parents[1] / "fixtures" / "commands" / "nvidia-smi"
QUERY_LINE = f"nvidia-smi --query-gpu={','.join(FIELDS)} --format=csv"
PROCESS_LINE = "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory --format=csv,noheader"
_HELP_LINE = "nvidia-smi --help-query-gpu"
H100 = "h100.csv"
Answer = bytes | CommandResult | CommandError


def smi_output(name: str) -> bytes:
    """A kept output."""
    return (_FOLDER / name).read_bytes()


def smi_uuid(number: int) -> str:
    """A made-up UUID."""
    return f"GPU-00000000-0000-0000-0000-{number:012d}"


def smi_table(cards: Sequence[Mapping[str, str]], pattern: str = H100) -> bytes:
    """The table of ``pattern`` with a row for each of ``cards``: field to text, the pattern's own where a field is not named."""
    header, row = smi_output(pattern).decode().splitlines()
    columns = header.split(", ")
    fields = [column.partition(" ")[0] for column in columns]
    rows = [row.split(", ") for _ in cards]
    for cells, card in zip(rows, cards, strict=True):
        for field, text in card.items():
            cells[fields.index(field)] = text
    return "\n".join([header, *(", ".join(cells) for cells in rows), ""]).encode()


def nvidia_smi_answers(table: Answer, processes: Answer = b"", known: Sequence[str] = FIELDS) -> dict[str, Answer]:
    """Everything that is asked of nvidia-smi; ``known`` are the fields that it knows."""
    help_text = "".join(f'"{field}"\nA property.\n\n' for field in known).encode()
    fields = ",".join(known)
    return {_HELP_LINE: help_text, f"nvidia-smi --query-gpu={fields} --format=csv": table, PROCESS_LINE: processes}


def write_gpu(
    root: str,
    address: str,
    *,
    vendor: str = "0x10de",
    device_class: str = "0x030200",
    driver: str = "",
    link: tuple[str, str, str, str] | None = ("32.0 GT/s PCIe", "32.0 GT/s PCIe", "16", "16"),
) -> None:
    """One card on the bus; ``link`` is speed and highest speed, lanes and most lanes."""
    folder = f"/sys/bus/pci/devices/{address}"
    files = {"class": device_class, "vendor": vendor}
    if link is not None:
        names = ("current_link_speed", "max_link_speed", "current_link_width", "max_link_width")
        files |= {name: text + "\n" for name, text in zip(names, link, strict=True)}
    write_all(root, folder, files)
    if driver and not os.path.lexists(f"{root}{folder}/driver"):
        Path(f"{root}{folder}/driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
