"""The configuration file as the structs that the program works with."""

from collections.abc import Mapping

from nodeproof.config.judge import ConfigProblemsError, Judged, judged, read
from nodeproof.config.resolve import build
from nodeproof.config.schema import Config

__all__ = ["ConfigProblemsError", "load", "load_text"]


def load(path: str, environ: Mapping[str, str]) -> Config:
    """Read and judge the file. Raises ConfigError (ConfigProblemsError when there are several)."""
    return _built(read(path), path, environ)


def load_text(name: str, content: bytes, environ: Mapping[str, str]) -> Config:
    """Judge the text of the file ``name``. Raises ConfigError."""
    return _built(judged(name, content), name, environ)


def _built(found: Judged, name: str, environ: Mapping[str, str]) -> Config:
    return build(found.tree, name, found.warnings, environ)
