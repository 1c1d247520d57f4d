"""``nodeproof dispatch``: what a generated ``benchmark_check.sh`` hands over to; settings are variables."""

import argparse
import sys

import msgspec

from nodeproof.host.machine import Machine
from nodeproof.stress.dispatch import Dispatcher

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Describe in one JSON object, or run. Raises DescribeError or LaunchError."""
    machine = Machine.here(options.root)
    try:
        dispatcher = Dispatcher(options.name, options.environ, machine)
        if options.action == "run":
            return dispatcher.run()
        profile = dispatcher.describe()
    finally:
        machine.close()
    sys.stdout.buffer.write(msgspec.json.encode(profile) + b"\n")
    return 0
