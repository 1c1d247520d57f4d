"""``nodeproof config check|show``."""

import argparse

import msgspec

from nodeproof.cli.options import load_config, machine_root
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry, assemble
from nodeproof.errors import ConfigError
from nodeproof.host.machine import Machine
from nodeproof.units import duration_text

__all__ = ["run"]

_LINE_LIMIT = 1000
_WRONG = 2


def run(options: argparse.Namespace) -> int:
    """Check: exit 0 and say so, or exit 2 with every problem. Show: print what is in force."""
    as_json = options.output == "json"
    try:
        config = load_config(options)
        entries = assemble(config, Machine.here(machine_root(options)))
    except ConfigError as error:
        if options.action != "check" or not as_json:
            raise
        problems = str(error).split("\n")
        print_json({"source": options.config or error.source, "ok": False, "problems": problems, "warnings": []})
        return _WRONG
    notes = [*config.warnings, *_overridden(config, entries), *(entry.problem for entry in entries if entry.problem)]
    if options.action == "check":
        _report(config, notes, as_json=as_json)
    elif as_json:
        print_json(config, indent=2)
    else:
        _show(config, entries)
    return 0


def _report(config: Config, notes: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"source": config.source, "ok": True, "problems": [], "warnings": notes})
        return
    for note in notes:
        print(printable(f"warning: {note}", _LINE_LIMIT))
    print(printable(f"{config.source}: good" + (f", {len(notes)} warnings" if notes else "")))


def _overridden(config: Config, entries: list[CollectorEntry]) -> list[str]:
    """Intervals of the file that a feature overrides: the reference does so silently."""
    notes = []
    for entry in entries:
        settings = config.collectors.get(entry.name)
        if entry.enabled and settings is not None and settings.interval_s not in {None, entry.interval_s}:
            notes.append(
                f"collectors.{entry.name}.interval: {duration_text(settings.interval_s or 0)} is overridden by features"
                f" ({duration_text(entry.interval_s)}); to keep yours, set collection.interval_from: collectors"
            )
    return notes


def _show(config: Config, entries: list[CollectorEntry]) -> None:
    print(printable(f"source: {config.source}") + "\n")
    plain = msgspec.to_builtins(config)
    rows: list[tuple[str, str]] = []
    for section, value in plain.items():
        if section in {"source", "warnings", "collectors"}:
            continue
        rows += _flat(section, value)
    rows += [
        (f"collectors.{entry.name}", f"every {duration_text(entry.interval_s)}" if entry.enabled else "off") for entry in entries
    ]
    print_table(("Key", "Value"), rows)


def _flat(path: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [row for key, inner in value.items() for row in _flat(f"{path}.{key}", inner)]
    if isinstance(value, list | tuple):
        return [(path, ", ".join(map(str, value)) or "-")]
    return [(path, "-" if value in (None, {}, "") else str(value))]
