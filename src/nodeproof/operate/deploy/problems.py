"""What can go wrong with a deployment."""

from nodeproof.errors import NodeproofError

__all__ = ["DeployError"]


class DeployError(NodeproofError):
    """A deployment cannot be generated, started or believed; the message says what is not as it was before, if anything."""
