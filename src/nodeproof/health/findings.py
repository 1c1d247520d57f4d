"""Everything that counts beyond the tables: it takes no points, and caps the grade."""

from nodeproof.health import findings_disk, findings_gpu, findings_host, findings_network, findings_npu
from nodeproof.health.rules import FindingRule
from nodeproof.model.event import Severity as EventSeverity

__all__ = ["FINDINGS", "severities"]

FINDINGS: tuple[FindingRule, ...] = (
    *findings_host.RULES,
    *findings_disk.RULES,
    *findings_network.RULES,
    *findings_gpu.RULES,
    *findings_npu.RULES,
)
"""Every finding rule."""


def severities() -> dict[str, EventSeverity]:
    """How grave each rule is, by its key, in the words of events and faults."""
    return {rule.key: EventSeverity(rule.severity.value) for rule in FINDINGS}
