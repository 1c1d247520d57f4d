"""What can go wrong with an image."""

from nodeproof.errors import NodeproofError

__all__ = ["ImageError"]


class ImageError(NodeproofError):
    """An image cannot be built or believed; no manifest of it was written."""
