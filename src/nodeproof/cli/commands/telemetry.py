"""``nodeproof telemetry``: alert rules for Prometheus and a dashboard for Grafana, made of the rules and the catalogue."""

import argparse

from nodeproof.cli.output import print_text
from nodeproof.operate.telemetry.alerts import alert_rules
from nodeproof.operate.telemetry.dashboard import dashboard

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the document."""
    print_text(alert_rules() if options.what == "alerts" else dashboard())
    return 0
