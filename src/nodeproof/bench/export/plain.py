"""Text that may come from anywhere, made harmless before it is put into a document."""

__all__ = ["clean"]


def clean(text: str) -> str:
    """``text`` without control characters and marks that turn the direction of reading; line ends become spaces."""
    if text.isprintable():
        return text
    flat = " ".join(text.splitlines())
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in flat)
