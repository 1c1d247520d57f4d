"""Everything that counts beyond the tables: it takes no points, and caps the grade."""

from nodeproof.health import findings_disk, findings_host, findings_network
from nodeproof.health.rules import FindingRule

__all__ = ["FINDINGS"]

FINDINGS: tuple[FindingRule, ...] = (*findings_host.RULES, *findings_disk.RULES, *findings_network.RULES)
"""Every finding rule."""
