"""``nodeproof up`` and ``nodeproof daemon``."""

import argparse

from nodeproof import log
from nodeproof.cli.options import load_config_apart, machine_root
from nodeproof.config.schema import Config
from nodeproof.daemon.service import Service
from nodeproof.host.machine import Machine
from nodeproof.host.notify import Notifier
from nodeproof.model.health import HealthScore

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Observe until told to end; ``up`` also prints the first verdict."""
    notifier = Notifier()
    log.setup(options.log_level, journal="JOURNAL_STREAM" in options.environ)
    root = machine_root(options)

    def say(health: HealthScore, config: Config) -> None:
        if options.command == "up":
            from nodeproof.cli.report import print_health  # noqa: PLC0415 - a daemon without a reader does without

            print_health(health)
            print(f"\nObserving. Metrics at http://{config.exporter.address}/metrics.", flush=True)
            print(f"Snapshots in {config.snapshot.dir}. Ctrl-C ends.", flush=True)

    Service(lambda: load_config_apart(options), lambda: Machine.here(root), notifier, say).run()
    return 0
