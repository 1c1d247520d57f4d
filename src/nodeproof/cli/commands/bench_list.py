"""``nodeproof bench list``: what can be run, and with which parameters."""

import argparse

from nodeproof.cli.bench_executor import as_json, complain, find_benchmark, told
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.params import ParamValues
from nodeproof.runs.registry import discover

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    if options.name:
        return _one(find_benchmark(options.name)[0], json=as_json(options))
    registry = discover()
    for problem in registry.problems:
        complain("list", problem)
    if as_json(options):
        print_json([_listed(descriptor) for descriptor in registry], indent=2)
    else:
        print_table(
            ("Benchmark", "Needs", "Takes", "What"),
            [(one.id, "endpoint" if one.needs_endpoint else "this box", one.duration_hint, one.summary) for one in registry],
        )
    return 0


run = told("list", _run)


def _listed(descriptor: Descriptor) -> dict[str, object]:
    intended = descriptor.intended_for
    return {
        "id": descriptor.id,
        "name": descriptor.name,
        "summary": descriptor.summary,
        "duration_hint": descriptor.duration_hint,
        "needs_confirmation": descriptor.needs_confirmation,
        "needs_endpoint": descriptor.needs_endpoint,
        "intended_for": list(intended.families) if intended else None,
        "aliases": list(descriptor.aliases),
    }


def _one(descriptor: Descriptor, *, json: bool) -> int:
    specs = descriptor.build().parameters()
    defaults = ParamValues.defaults(specs).to_strings()
    if json:
        rows = [
            {"key": spec.key, "label": spec.label, "help": spec.help, "default": defaults[spec.key], "domain": spec.domain_hint()}
            for spec in specs
        ]
        print_json({"id": descriptor.id, "name": descriptor.name, "detail": descriptor.detail, "parameters": rows}, indent=2)
        return 0
    print(printable_lines(f"{descriptor.name} ({descriptor.id})\n  {descriptor.detail}\n  instrument of {descriptor.updated}"))
    print_table(
        ("Parameter", "Default", "Domain", "Meaning"),
        [(spec.key, defaults[spec.key], spec.domain_hint(), spec.help) for spec in specs],
    )
    return 0
