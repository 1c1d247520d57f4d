"""Golden files: what an output was when somebody looked at it and found it right."""

from pathlib import Path

__all__ = ["GoldenFile"]


class GoldenFile:
    """Compares texts with files of one folder, or writes them with ``--update-golden``."""

    def __init__(self, folder: Path, *, update: bool) -> None:
        self._folder = folder
        self._update = update

    def check(self, name: str, text: str) -> None:
        """Fails when ``text`` is not what the file ``name`` holds."""
        path = self._folder / name
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} does not exist; look at the output, then run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs; if the new output is right, run pytest --update-golden"
