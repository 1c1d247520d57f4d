"""Writes files and links below the root of a made-up host."""

import os
from collections.abc import Mapping

__all__ = ["link", "write", "write_all"]


def write(root: str, path: str, content: str | bytes | float) -> None:
    """Write one file; numbers and text get the line end that the kernel prints."""
    real = root + path
    os.makedirs(os.path.dirname(real), exist_ok=True)
    with open(real, "wb") as file:
        file.write(content if isinstance(content, bytes) else _line(content))


def write_all(root: str, folder: str, files: Mapping[str, str | bytes | float]) -> None:
    """Write several files of one folder."""
    for name, content in files.items():
        write(root, f"{folder}/{name}", content)


def link(root: str, path: str, target: str) -> None:
    """Make a symbolic link."""
    real = root + path
    os.makedirs(os.path.dirname(real), exist_ok=True)
    os.symlink(target, real)


def _line(content: str | float) -> bytes:
    text = str(content)
    return (text if text.endswith("\n") or not text else text + "\n").encode()
