"""What ``nodeproof doctor -o json`` prints; loaded for the OpenAPI document alone."""

import msgspec

from nodeproof.daemon.circumstances import Check
from nodeproof.daemon.diagnosis import Cause, NotApplicable

__all__ = ["DoctorReport"]


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """What this user can read here."""

    user: str
    everything_applicable_can_be_read: bool
    checks: list[Check]
    readings: int
    coverage: float
    points_blind: float
    causes: list[Cause]
    pending: list[Cause]
    not_applicable: list[NotApplicable]
