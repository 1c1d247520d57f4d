"""What callers may do."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Caller", "Role", "TokenHolder"]


class Role(StrEnum):
    """What a caller may do."""

    NONE = "none"
    VIEWER = "viewer"
    """Read."""
    OPERATOR = "operator"
    """Start and cancel, too."""


class TokenHolder(NamedTuple):
    """Somebody with a token."""

    name: str
    role: Role


class Caller(NamedTuple):
    """Who sent a request."""

    role: Role
    name: str
    """Of the token; empty where none is needed."""
    peer: str
    """Address that it came from."""
    refused: str = ""
    """Why it has no role."""
    wait_s: int = 0
    """It gave wrong tokens too often: seconds until the next one is looked at."""
