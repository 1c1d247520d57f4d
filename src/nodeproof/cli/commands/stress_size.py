"""``nodeproof stress size``: sizes of STREAM, HPL and HPCG that suit this box."""

import argparse

from nodeproof.cli.options import machine_root
from nodeproof.cli.output import print_json, print_text
from nodeproof.cli.stress_manager import as_json, plan_of, told
from nodeproof.cli.table import print_table
from nodeproof.errors import UsageError
from nodeproof.host.machine import Machine
from nodeproof.stress import sizing
from nodeproof.stress.expected import fastest_rate
from nodeproof.stress.facts import look_at_box
from nodeproof.stress.sizing import HpcgSize, HplSize, StreamSize

__all__ = ["Size", "run"]

_NAMES = ("stream", "hpl", "hpcg")
Size = StreamSize | HplSize | HpcgSize


def _run(options: argparse.Namespace) -> int:
    names = [name.strip().lower() for name in options.names] or list(_NAMES)
    wrong = [name for name in names if name not in _NAMES]
    if wrong or options.ranks < 0:
        raise UsageError(f"{wrong[0]!r} has no size; there are {', '.join(_NAMES)}" if wrong else "--ranks: expected 1 or more")
    machine = Machine.here(machine_root(options))
    facts = look_at_box(machine)
    ranks = options.ranks or 1
    sizes: dict[str, Size] = {}
    for name in names:
        if name == "stream":
            sizes[name] = sizing.size_stream(facts)
        elif name == "hpl":
            sizes[name] = sizing.size_hpl(facts, plan_of(options), processes=ranks, fastest_flops=fastest_rate(machine, facts))
        else:
            sizes[name] = sizing.size_hpcg(facts, plan_of(options), processes=ranks)
    if options.output == "dat":
        print_text(_dat(sizes))
    elif as_json(options):
        print_json(sizes, indent=2)
    else:
        rows = [(name, _what(size), size.reason, "; ".join(size.concerns) or "-") for name, size in sizes.items()]
        print_table(("Benchmark", "Size", "Why", "Concerns"), rows)
    return 0


run = told("size", _run)


def _what(size: Size) -> str:
    match size:
        case StreamSize():
            return f"{size.elements} elements an array, {size.threads} threads"
        case HplSize():
            return f"N {size.n}, NB {size.nb}, P x Q {size.p} x {size.q}, {size.threads_per_process} threads a process"
        case _:
            return f"{size.nx} x {size.ny} x {size.nz} on {size.processes} processes, {size.runtime_seconds} s"


def _dat(sizes: dict[str, Size]) -> str:
    """The input file. Raises UsageError unless exactly one benchmark that has one was named."""
    if len(sizes) == 1:
        (size,) = sizes.values()
        if isinstance(size, HplSize):
            return sizing.hpl_dat(size)
        if isinstance(size, HpcgSize):
            return sizing.hpcg_dat(size)
    raise UsageError("-o dat: name hpl or hpcg, one of them")
