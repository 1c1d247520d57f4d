"""Faults as the page sees them; loaded when somebody asks for them."""

import msgspec

from nodeproof.faults.views import ActiveFault
from nodeproof.model.fault import FaultEvent

__all__ = ["ActiveFaults", "FaultHistory"]


class ActiveFaults(msgspec.Struct, frozen=True, kw_only=True):
    """``/api/faults/active``."""

    available: bool
    """Whether anybody looks for faults now; without it an empty list proves nothing, and a full one may be out of date."""
    reason: str
    """Why nobody does; empty when they do."""
    timestamp: str
    """Of the last change, RFC 3339; empty when there never was one."""
    faults: list[ActiveFault]


class FaultHistory(msgspec.Struct, frozen=True, kw_only=True):
    """``/api/faults/history``."""

    available: bool
    reason: str
    events: list[FaultEvent]
    """Newest first."""
