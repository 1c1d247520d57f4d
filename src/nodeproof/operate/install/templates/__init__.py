"""Texts of the installation: units with their drop-ins, users, directories, and a first configuration."""

from importlib import resources

__all__ = ["template"]


def template(name: str, **places: str) -> str:
    """The text of ``name`` with each ``@PLACE@`` filled. Raises FileNotFoundError for a name that there is none of."""
    text = resources.files(__name__).joinpath(*name.split("/")).read_text(encoding="utf-8")
    for place, value in places.items():
        text = text.replace(f"@{place.upper()}@", value)
    return text
