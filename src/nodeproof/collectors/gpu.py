"""Component gpu: which cards are there. Their readings are reported missing until a reader of them is at hand."""

from nodeproof.collectors.accelerator_presence import create_presence
from nodeproof.collectors.base import Collector, Selection
from nodeproof.host.machine import Machine

__all__ = ["create"]

_UNREAD = ("temperature", "memory_usage", "utilization", "ecc_errors")


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    return create_presence(machine, selection, component="gpu", kinds="NVIDIA or AMD GPU", unread=_UNREAD)
