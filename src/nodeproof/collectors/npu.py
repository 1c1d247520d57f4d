"""Component npu: which cards are there. Their readings are reported missing until a reader of them is at hand."""

from nodeproof.collectors.accelerator_presence import create_presence
from nodeproof.collectors.base import Collector, Selection
from nodeproof.host.machine import Machine

__all__ = ["create"]

_UNREAD = (
    "card_drop",
    "temperature",
    "health_status",
    "hbm_double_ecc",
    "ddr_double_ecc",
    "memory_usage",
    "utilization",
    "error_code",
)


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    return create_presence(machine, selection, component="npu", kinds="Huawei NPU", unread=_UNREAD)
