"""``nodeproof health``: one look, judged."""

import argparse

from nodeproof.cli.commands.collect import observe
from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.report import print_health
from nodeproof.clock import SystemClock
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print the health of this moment. Exit 0 whatever it is, as the reference does: ``check`` is for scripts."""
    settings = load_config(options).health
    evaluator = Evaluator(settings.ruleset, settings.weight_scheme, confirm=False)
    observation = observe(options)
    now = SystemClock().now()
    # The first look is what growth is reckoned from.
    evaluator.evaluate(Readings(observation.first), now)
    health = evaluator.evaluate(Readings(observation.batches), now)
    if options.output == "json":
        print_json(health, indent=2)
    else:
        print_health(health)
    return 0
