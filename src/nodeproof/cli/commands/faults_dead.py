"""``nodeproof faults dead``: events that subscribers did not take and that were given up."""

import argparse
from collections.abc import Iterator

import msgspec

from nodeproof.cli.interface import ask
from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.config.schema import Config
from nodeproof.faults.dead_letters import DeadLetter
from nodeproof.model.fault import Subscription

__all__ = ["dead_letters", "run"]


def run(options: argparse.Namespace) -> int:
    """Print them, by subscription, the newest last. Raises UsageError, NodeproofError."""
    found = list(dead_letters(load_config(options)))
    if options.output == "json":
        print_json([{"subscription": one.id, "endpoint": one.endpoint, "letters": letters} for one, letters in found], indent=2)
        return 0
    for subscription, letters in found:
        place = subscription.endpoint or str(subscription.delivery)
        print("\n" + printable(f"{subscription.id}  {place}: {len(letters) or 'no'} dead letters", 300))
        if letters:
            print_table(
                ("Number", "Given up", "Attempts", "What", "Why"),
                [(_number(one), one.at, str(one.attempts), _what(one), one.reason) for one in letters],
                right=(0, 2),
            )
    if not found:
        print("Nobody has subscribed.")
    return 0


def dead_letters(config: Config) -> Iterator[tuple[Subscription, list[DeadLetter]]]:
    """What was given up, by subscription. Raises UsageError, NodeproofError."""
    for subscription in msgspec.convert(ask(config, "subscriptions"), list[Subscription]):
        letters = msgspec.convert(ask(config, f"subscriptions/{subscription.id}/dead-letters"), list[DeadLetter])
        yield subscription, letters


def _number(letter: DeadLetter) -> str:
    return "-" if letter.event is None else str(letter.event.sequence)


def _what(letter: DeadLetter) -> str:
    event = letter.event
    return f"{letter.lost} entries of the log" if event is None else f"{event.change} {event.type} {event.device}"
