"""``nodeproof faults redeliver``: send events that were given up once more."""

import argparse

from nodeproof.cli.commands.faults_dead import dead_letters
from nodeproof.cli.interface import ask
from nodeproof.cli.options import load_config
from nodeproof.cli.table import printable
from nodeproof.errors import UsageError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Have the daemon do it; exit 1 when there was nothing to send. Raises UsageError, NodeproofError."""
    config = load_config(options)
    known = [subscription.id for subscription, _ in dead_letters(config)]
    if options.subscription is not None and options.subscription not in known:
        raise UsageError(f"no subscription {options.subscription[:80]!r}; nodeproof faults dead lists those that there are")
    total = 0
    for identity in known if options.subscription is None else [options.subscription]:
        answer = ask(config, f"subscriptions/{identity}/redeliver", {"sequences": options.number})
        numbers = answer.get("sequences", []) if isinstance(answer, dict) else []
        total += len(numbers)
        if numbers:
            print(printable(f"{identity}: {len(numbers)} events go out again: {', '.join(map(str, numbers))}", 1000))
    if not total:
        print("No dead letter to send again.")
    return 0 if total else 1
