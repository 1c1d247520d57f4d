"""``nodeproof faults list``: every rule that makes a fault."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table
from nodeproof.faults.drill import drill_rule, drill_rules
from nodeproof.health.findings import severities

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print them."""
    rules = [rule for name in drill_rules() if (rule := drill_rule(name, severities())) is not None]
    rows = [(one.rule, one.naming.type, str(one.naming.fault_class), str(one.naming.severity), one.component) for one in rules]
    if options.output == "json":
        print_json([dict(zip(("rule", "type", "class", "severity", "component"), row, strict=True)) for row in rows], indent=2)
    else:
        print_table(("Rule", "Type", "Class", "Severity", "Component"), rows)
    return 0
