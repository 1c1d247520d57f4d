"""``nodeproof faults history``: what happened."""

import argparse

from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json_lines
from nodeproof.cli.table import print_table
from nodeproof.clock import rfc3339_parse
from nodeproof.errors import UsageError
from nodeproof.faults.records import read_events
from nodeproof.model.fault import FaultEvent

__all__ = ["run"]

_MOST = 100_000


def run(options: argparse.Namespace) -> int:
    """Print the newest entries of the log, oldest first. Raises UsageError."""
    if not 1 <= options.limit <= _MOST:
        raise UsageError(f"--limit {options.limit} is not within 1 and {_MOST}")
    since_s = 0.0
    if options.since is not None:
        try:
            since_s = rfc3339_parse(options.since)
        except ValueError as error:
            raise UsageError(f"--since {options.since!r} is no RFC 3339 time, such as 2026-11-30T22:20:41Z: {error}") from None

    def wanted(event: FaultEvent) -> bool:
        return (
            (options.type is None or event.type == options.type)
            and (options.component is None or event.component == options.component)
            and (not since_s or rfc3339_parse(event.timestamp) > since_s)
        )

    directory = load_config(options).faultsub.dir
    events = read_events(directory, limit=options.limit, wanted=wanted)
    if not events:
        _refuse_unknown(options, directory)
    if options.output == "json":
        print_json_lines(events)
        return 0
    if not events:
        print("Nothing happened.")
        return 0
    print_table(
        ("Number", "Time", "What", "Severity", "Type", "Device", "Count", "Message"),
        [
            (
                str(event.sequence),
                event.timestamp,
                f"{event.change}{' (DRILL)' if event.drill else ''}{'' if event.verified else ' (unverified)'}",
                str(event.severity),
                event.type,
                event.device,
                str(event.count),
                event.detail.get("cleared_by", "") or event.message,
            )
            for event in events
        ],
        right=(0, 6),
    )
    return 0


def _refuse_unknown(options: argparse.Namespace, directory: str) -> None:
    """Raises UsageError for a type or component of which there is none: to say that nothing happened there would be a lie."""
    if options.component is None and options.type is None:
        return
    from nodeproof.faults.views import known_types  # noqa: PLC0415 - every rule, only to see whether a name is one
    from nodeproof.model.catalogue import CATALOGUE  # noqa: PLC0415 - the same

    for option, name, known in (
        ("type", options.type, known_types()),
        ("component", options.component, sorted({component for component, _ in CATALOGUE})),
    ):
        # Collectors of others, and whoever hands events in, have words of their own.
        if name is not None and name not in known and not _logged(directory, option, name):
            raise UsageError(f"--{option} {name!r}: no fault is of it, and no entry; there are {', '.join(known)}")


def _logged(directory: str, key: str, name: str) -> bool:
    return bool(read_events(directory, limit=1, wanted=lambda event: getattr(event, key) == name))
