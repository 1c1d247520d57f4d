"""``nodeproof up`` and ``nodeproof daemon``."""

import argparse

from nodeproof import log
from nodeproof.cli.options import load_config_apart, machine_root
from nodeproof.cli.page import Page
from nodeproof.cli.state_lease import working_state
from nodeproof.config.schema import Config
from nodeproof.daemon.service import Service
from nodeproof.host.machine import Machine
from nodeproof.host.notify import Notifier
from nodeproof.model.health import HealthScore

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Observe until told to end; ``up`` also prints the first verdict, and serves the page."""
    notifier = Notifier()
    log.setup(options.log_level, journal="JOURNAL_STREAM" in options.environ)
    root = machine_root(options)
    page = Page(options)

    def load() -> Config:
        config = load_config_apart(options)
        if options.command == "up":
            page.follow(config)
        return config

    def say(health: HealthScore, config: Config) -> None:
        if options.command == "up":
            from nodeproof.cli.report import print_health  # noqa: PLC0415 - a daemon without a reader does without

            print_health(health)
            print()
            if page.url:
                print(f"Page at {page.url}")
            print(f"Observing. Metrics at http://{config.exporter.address}/metrics.", flush=True)
            print(f"Snapshots in {config.snapshot.dir}. Ctrl-C ends.", flush=True)

    with working_state(options):
        try:
            Service(load, lambda: Machine.here(root), notifier, say).run()
        finally:
            page.close()
    return 0
