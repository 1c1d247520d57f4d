"""Texts of a deployment: the adapter of a node."""

from importlib import resources

__all__ = ["template"]


def template(name: str) -> str:
    """The text of ``name``. Raises FileNotFoundError for a name that there is none of."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
