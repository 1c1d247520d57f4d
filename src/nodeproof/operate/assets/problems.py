"""What can go wrong with assets."""

from nodeproof.errors import NodeproofError

__all__ = ["AssetError"]


class AssetError(NodeproofError):
    """An asset cannot be built, installed or believed; what was there before is as it was."""
