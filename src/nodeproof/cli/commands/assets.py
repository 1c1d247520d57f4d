"""``nodeproof assets``: build benchmarks out of an administrator's own sources, and see that they are still what was built."""

import argparse
import os
import sys

from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.clock import SystemClock
from nodeproof.errors import RecordError
from nodeproof.host.machine import Machine
from nodeproof.operate.assets import manifest as manifests
from nodeproof.operate.assets.build import TARGETS, Builder
from nodeproof.operate.assets.recipes import BuildOptions

__all__ = ["run"]

_MOST_JOBS = 16


def run(options: argparse.Namespace) -> int:
    """Build or verify."""
    return _build(options) if options.action == "build" else _verify(options)


def _build(options: argparse.Namespace) -> int:
    wanted = BuildOptions(
        output_root=options.output_root,
        build_root=options.build_root,
        sources={name: value for name in TARGETS if (value := getattr(options, f"{name}_src"))},
        configs={name: value for name in ("hpl", "hpcg") if (value := getattr(options, f"{name}_dat"))},
        cc=options.cc,
        cxx=options.cxx,
        mpicc=options.mpicc,
        mpicxx=options.mpicxx,
        mpirun=options.mpirun,
        openblas_include=options.openblas_include,
        openblas_lib=options.openblas_lib,
        jobs=options.jobs or min(os.cpu_count() or 1, _MOST_JOBS),
        stream_array_size=options.stream_array_size,
        stream_ntimes=options.stream_ntimes,
        only=_names(options.only),
        skip=_names(options.skip),
        force=options.force,
    )
    machine = Machine.here()
    try:
        builder = Builder(wanted, machine, SystemClock())
        built = builder.build()
    finally:
        machine.close()
    if options.output == "json":
        print_json(built, indent=2)
        return 0
    for line in builder.said:
        print(printable_lines(line))
    rows = [(name, item.binary.path, item.binary.sha256[:16], item.flags) for name, item in sorted(built.benchmarks.items())]
    print_table(("benchmark", "binary", "sha256", "flags"), rows)
    print(printable_lines(f"manifest: {manifests.manifest_path(options.output_root)}"))
    return 0


def _verify(options: argparse.Namespace) -> int:
    path = options.manifest or manifests.manifest_path(options.output_root)
    found = manifests.load(path)
    if found is None:
        raise RecordError(f"{path}: there is no manifest; build with nodeproof assets build")
    problems = manifests.verify(found)
    if options.output == "json":
        print_json({"manifest": path, "problems": problems}, indent=2)
    else:
        for name, lines in problems.items():
            print(printable_lines(f"{name}: {'as it was built' if not lines else '; '.join(lines)}"))
    bad = any(problems.values())
    if bad:
        print(printable_lines(f"assets: not what {path} says was built"), file=sys.stderr)
    return 1 if bad else 0


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()
