"""Findings of NPUs beyond the tables: what the reference tells subscribers of and takes no points for (observe.md 7.4)."""

from nodeproof.health.limits import level
from nodeproof.health.rules import Compare, FindingRule, Limit, Probe
from nodeproof.model.health import Severity

__all__ = ["RULES"]

_CHIP = ("npu_id", "chip_id")

RULES: tuple[FindingRule, ...] = (
    FindingRule(
        "npu",
        "drop_code",
        Severity.CRITICAL,
        level(Probe("npu", ("error_code",), (("error_codes", "*40f84e00*"),), entity=_CHIP), 0, 0, enter=1),
        "NPU {npu_id} reports the error code of a lost card",
        "The driver gives error code 0x40f84e00 for a card that it can no longer reach.",
        "Drain the node and reset the card (npu-smi set -t reset); boot if it does not come back.",
    ),
    FindingRule(
        "npu",
        "driver_unhealthy",
        Severity.WARNING,
        level(Probe("npu", ("driver_health",), entity=_CHIP), 0, 0, enter=2),
        "the driver of NPU {npu_id} calls itself unwell ({value})",
        "The driver reports a health of its own that is not 0.",
        "Look at its log (/var/log/ascend_seclog, dmesg) and at the firmware's version.",
    ),
    FindingRule(
        "npu",
        "roce_link_down",
        Severity.INFO,
        Limit(Probe("npu", ("roce_link_status",), entity=_CHIP), Compare.BELOW, 1, enter=2),
        "the RoCE port of NPU {npu_id} has no link",
        "The network port of the NPU is down. A node whose ports are not cabled is none the worse for it.",
        "Look at cable, transceiver and switch port; faultsub.rules.roce_link_down: false where there is none.",
    ),
)
"""Every finding rule of this module."""
