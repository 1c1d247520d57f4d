"""A library that stands in for NVML, compiled from ``fixtures/nvml/stub.c``, and the file through which tests command it."""

import subprocess
from pathlib import Path

__all__ = ["SOURCE", "StubNvml", "build_stub"]

SOURCE = Path(__file__).parents[1] / "fixtures" / "nvml" / "stub.c"
_DRIVER, _COUNT, _CARDS = 0, 1, 16


def build_stub(folder: Path, *, old: bool = False) -> Path:
    """Compile it into ``folder``; ``old``: as drivers of 2020 were. Gives the folder back."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-DOLD"] if old else []
    library = folder / "libnvidia-ml.so.1"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-pthread",
        *flags,
        "-o",
        str(library),
        str(SOURCE),
    ]
    subprocess.run(command, check=True, timeout=60)
    return folder


class StubNvml:
    """The library as one test sees it."""

    def __init__(self, library: Path, folder: Path, cards: int) -> None:
        self._control = folder / "control"
        self._wrong = folder / "wrong"
        self._control.write_bytes(b"o" + str(cards).encode() + b"." * (_CARDS - 2) + b"o" * (64 - _CARDS))
        self.addresses = [f"0000:{0x10 + number:02x}:00.0" for number in range(cards)]
        self.environment = {
            "LD_LIBRARY_PATH": str(library),
            "NVML_STUB": str(self._control),
            "NVML_STUB_WRONG": str(self._wrong),
        }

    def card(self, number: int, state: str) -> None:
        """Let a card be in a state, see the head of stub.c."""
        self._write(_CARDS + number, state)

    def driver(self, state: str) -> None:
        """Let the driver be in a state."""
        self._write(_DRIVER, state)

    def wrong_calls(self) -> str:
        """Everything that was wrong with a call."""
        return self._wrong.read_text() if self._wrong.exists() else ""

    def _write(self, offset: int, state: str) -> None:
        with self._control.open("r+b", buffering=0) as file:
            file.seek(offset)
            file.write(state.encode())
