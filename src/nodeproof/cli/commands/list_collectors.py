"""``nodeproof list``: collectors as they would run here."""

import argparse

from nodeproof.cli.options import load_config, machine_root
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table
from nodeproof.daemon.assembly import assemble
from nodeproof.host.machine import Machine
from nodeproof.units import duration_text

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print name, component, priority, interval and whether it is enabled, after configuration and features."""
    machine = Machine.here(machine_root(options))
    rows = [
        {
            "name": entry.name,
            "component": entry.collector.component,
            "priority": "High",
            "interval": duration_text(entry.interval_s),
            "enabled": entry.enabled,
        }
        for entry in assemble(load_config(options), machine)
    ]
    if options.output == "json":
        print_json(rows)
    else:
        print_table(
            ("Name", "Component", "Priority", "Interval", "Enabled"),
            [[str(cell).lower() if cell in {True, False} else str(cell) for cell in row.values()] for row in rows],
        )
    return 0
