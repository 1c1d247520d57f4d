"""``nodeproof bundle``: a support archive of this node without names and secrets, and a fixture host made of one."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import UsageError
from nodeproof.operate.bundle.archive import Manifest, read_bundle, write_bundle
from nodeproof.operate.bundle.fixture import open_fixture, write_fixture
from nodeproof.operate.bundle.make import Difference, differences

__all__ = ["run"]

_MOST_SHOWN = 40


def run(options: argparse.Namespace) -> int:
    """``make``, ``show``, ``fixture`` or ``replay``. Exit 1 when a replay brings other readings than it should."""
    actions = {"make": (_make, 0), "show": (_show, 1), "fixture": (_fixture, 2), "replay": (_replay, 1)}
    action, count = actions[options.action]
    if len(options.paths) != count:
        wanted = {0: "no path", 1: "one path", 2: "the bundle and the folder to make"}[count]
        raise UsageError(f"bundle {options.action} takes {wanted}; {len(options.paths)} were given")
    return action(options)


def _make(options: argparse.Namespace) -> int:
    from nodeproof.cli.bundling import default_name, gather  # noqa: PLC0415 - brings all collectors along

    manifest, parts = gather(options)
    path = options.output_file or default_name()
    whole = write_bundle(path, manifest, parts)
    _tell(options, path, whole)
    return 0


def _show(options: argparse.Namespace) -> int:
    path = options.paths[0]
    manifest, _ = read_bundle(path)
    _tell(options, path, manifest)
    return 0


def _tell(options: argparse.Namespace, path: str, manifest: Manifest) -> None:
    if options.output == "json":
        print_json({"path": path, "manifest": manifest}, indent=2)
        return
    size = sum(part.bytes for part in manifest.parts.values())
    print(printable_lines(f"{path}: {len(manifest.parts)} files, {size} bytes unpacked, by nodeproof {manifest.nodeproof}"))
    replaced = ", ".join(f"{count} of kind {kind}" for kind, count in manifest.redacted.items())
    print(printable_lines(f"replaced everywhere: {replaced or 'nothing'}"))
    if manifest.left_out:
        print("\nNot in it:\n")
        print_table(("what", "why"), list(manifest.left_out.items())[:_MOST_SHOWN])
    print("\nRead it before you hand it on: tar -xOf FILE NAME prints one file of it.")


def _fixture(options: argparse.Namespace) -> int:
    bundle, folder = options.paths
    count = write_fixture(bundle, folder)
    print(printable_lines(f"{folder}: {count} files; nodeproof bundle replay {folder} reads them"))
    return 0


def _replay(options: argparse.Namespace) -> int:
    from nodeproof.cli.bundling import replayed  # noqa: PLC0415 - the same

    fixture = open_fixture(options.paths[0])
    found = replayed(fixture.root, fixture.config, fixture.readings.looks)
    told = differences(fixture.readings, found)
    total = sum(map(len, found.metrics.values()))
    if options.output == "json":
        print_json({"readings": total, "differences": told}, indent=2)
    elif told:
        _print_differences(told)
    else:
        print(f"the same {total} readings as when the bundle was made")
    return int(bool(told))


def _print_differences(told: list[Difference]) -> None:
    print_table(
        ("reading", "labels", "in the bundle", "now"),
        [
            (f"{one.component}.{one.name}", " ".join(map("=".join, one.labels.items())), one.expected, one.found)
            for one in told[:_MOST_SHOWN]
        ],
    )
    if len(told) > _MOST_SHOWN:
        print(f"and {len(told) - _MOST_SHOWN} more")
