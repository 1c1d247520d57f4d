"""Recorded outputs of the Ascend tools."""

from pathlib import Path

__all__ = ["hccn_output", "npu_smi_output"]

_FOLDER = Path(__file__).parents[1] / "fixtures" / "commands"


def npu_smi_output(name: str) -> bytes:
    """A file of ``fixtures/commands/npu-smi``."""
    return (_FOLDER / "npu-smi" / name).read_bytes()


def hccn_output(name: str) -> bytes:
    """A file of ``fixtures/commands/hccn_tool``."""
    return (_FOLDER / "hccn_tool" / name).read_bytes()
