"""Outputs of smartctl that stand in ``tests/fixtures/commands/smartctl``."""

from pathlib import Path

__all__ = ["smartctl_output"]

_FOLDER = Path(__file__).parents[1] / "fixtures" / "commands" / "smartctl"


def smartctl_output(name: str) -> bytes:
    """One recorded output, ``nvme.json``."""
    return (_FOLDER / name).read_bytes()
