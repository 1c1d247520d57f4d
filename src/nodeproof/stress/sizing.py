"""How large a problem this box should be given: STREAM arrays, HPL's N, NB, P and Q, HPCG's local grid. Arithmetic only.

Rules: each STREAM array has at least four times all last-level caches; ``standard`` HPL fills 60 to 80 % of the memory it may
use, ``quick`` HPL runs at least 20 s on the fastest processor this could be; an official HPCG problem occupies at least a
quarter of memory, its grid is divisible by 8.
"""

import math
from enum import StrEnum

import msgspec

from nodeproof.stress.parsers.hpl import operations
from nodeproof.stress.parsers.stream import CACHE_FACTOR

__all__ = [
    "FASTEST_CORE_FLOPS",
    "HPCG_BYTES_PER_EQUATION",
    "HPL_QUICK_SECONDS",
    "BoxFacts",
    "HpcgSize",
    "HplSize",
    "Plan",
    "StreamSize",
    "hpcg_dat",
    "hpl_dat",
    "process_grid",
    "size_hpcg",
    "size_hpl",
    "size_stream",
]

HPL_QUICK_SECONDS = 20.0
HPCG_BYTES_PER_EQUATION = 720
"""HPCG prints 715 for 104 x 104 x 104 ("Bytes per equation"); smaller grids have a larger surface."""
FASTEST_CORE_FLOPS = 160e9
"""No core does more: 32 operations a cycle at 5 GHz. Used where the processor's own figure is unknown."""
_HPL_SHARE = 0.7
_HPL_QUICK_SHARE = 0.6
_HPL_BLOCK = 192
_STREAM_ELEMENTS = 80_000_000
"""The reference's build; in a virtual machine the host's cache is larger than the guest is told."""
_STREAM_LEAST_ELEMENTS = 1_000_000
_STREAM_SHARE = 0.5
_HPCG_QUICK_EDGE = 104
"""HPCG's own default."""
_HPCG_LEAST_EDGE = 16
_HPCG_SHARE = 0.25
_HPCG_MOST = 0.6
_HPCG_SECONDS = {"quick": 30, "standard": 1800, "soak": 1800}
_MIB = 1024 * 1024


class Plan(StrEnum):
    """How much is proven."""

    QUICK = "quick"
    STANDARD = "standard"
    SOAK = "soak"
    """Standard sizes, repeated."""


class BoxFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the machine, within the limits of whoever asks. None = unknown."""

    allowed_cpus: int
    """By affinity and cgroup."""
    memory_available_bytes: int
    cgroup_room_bytes: int | None = None
    """What the own cgroup may still take; None = no limit."""
    llc_bytes: int | None = None
    """All last-level caches of the allowed CPUs together."""
    sockets: int | None = None
    numa_nodes: int | None = None

    @property
    def usable_bytes(self) -> int:
        """Memory that a workload may take."""
        room = self.cgroup_room_bytes
        return self.memory_available_bytes if room is None else min(self.memory_available_bytes, room)


class StreamSize(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal for STREAM."""

    elements: int
    array_bytes: int
    total_bytes: int
    """Three arrays."""
    threads: int
    reason: str
    concerns: list[str]


class HplSize(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal for HPL."""

    n: int
    nb: int
    p: int
    q: int
    threads_per_process: int
    matrix_bytes: int
    memory_share: float
    """Of the memory that may be used."""
    least_seconds: float
    """At the fastest rate this box could reach; it will take longer."""
    repeats: int
    """Runs that make the least duration of the plan, more than one where memory is too small for it."""
    reason: str
    concerns: list[str]


class HpcgSize(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal for HPCG."""

    nx: int
    ny: int
    nz: int
    processes: int
    threads_per_process: int
    runtime_seconds: int
    total_bytes: int
    memory_share: float
    reason: str
    concerns: list[str]


def size_stream(facts: BoxFacts) -> StreamSize:
    """Arrays of four times the last-level caches or 80 million elements, whichever is more, if half of memory holds them."""
    room = int(_STREAM_SHARE * facts.usable_bytes / 24)
    rule = -(-CACHE_FACTOR * (facts.llc_bytes or 0) // 8)
    wanted = max(rule, _STREAM_ELEMENTS)
    elements = max(min(wanted, room), _STREAM_LEAST_ELEMENTS)
    concerns = []
    if elements < rule:
        concerns.append(
            f"half of the usable memory holds arrays of {8 * room / _MIB:.0f} MiB, and {CACHE_FACTOR} x the last-level cache are "
            f"{8 * rule / _MIB:.0f} MiB: the rates will partly be those of the cache"
        )
    if facts.llc_bytes is None:
        concerns.append("the size of the last-level cache is unknown, so the array rule cannot be checked")
    reason = f"{8 * elements / _MIB:.0f} MiB an array, {facts.allowed_cpus} threads"
    if facts.llc_bytes:
        reason += f"; {8 * elements / facts.llc_bytes:.1f} x the last-level cache"
    return StreamSize(
        elements=elements,
        array_bytes=8 * elements,
        total_bytes=24 * elements,
        threads=facts.allowed_cpus,
        reason=reason,
        concerns=concerns,
    )


def process_grid(ranks: int) -> tuple[int, int]:
    """P and Q with P x Q = ``ranks``, P at most Q and as close to it as can be."""
    p = math.isqrt(ranks)
    while ranks % p:
        p -= 1
    return p, ranks // p


def size_hpl(
    facts: BoxFacts, plan: Plan, *, processes: int = 1, block: int = _HPL_BLOCK, fastest_flops: float | None = None
) -> HplSize:
    """N for ``plan``. ``fastest_flops`` is the rate that this box cannot exceed, in operations a second."""
    rate = fastest_flops or FASTEST_CORE_FLOPS * facts.allowed_cpus
    usable = facts.usable_bytes
    full = _blocks(math.isqrt(int(_HPL_SHARE * usable / 8)), block)
    concerns = []
    n = full
    if plan is Plan.QUICK:
        wanted = _blocks(math.ceil((1.5 * rate * HPL_QUICK_SECONDS) ** (1 / 3)), block) + block
        n = min(wanted, _blocks(math.isqrt(int(_HPL_QUICK_SHARE * usable / 8)), block))
    n = max(n, block)
    least = operations(n) / rate
    repeats = max(1, math.ceil(HPL_QUICK_SECONDS / least)) if plan is Plan.QUICK else 1
    if repeats > 1:
        concerns.append(f"memory holds no problem that takes {HPL_QUICK_SECONDS:g} s; it is run {repeats} times")
    share = 8 * n * n / usable if usable else math.inf
    if share > 0.8:
        concerns.append(f"even one block of {block} takes {share:.0%} of the usable memory")
    p, q = process_grid(processes)
    return HplSize(
        n=n,
        nb=block,
        p=p,
        q=q,
        threads_per_process=max(1, facts.allowed_cpus // processes),
        matrix_bytes=8 * n * n,
        memory_share=share,
        least_seconds=least,
        repeats=repeats,
        reason=f"N {n} takes {8 * n * n / _MIB:.0f} MiB, {share:.0%} of the usable memory, and at least {least:.0f} s",
        concerns=concerns,
    )


def size_hpcg(facts: BoxFacts, plan: Plan, *, processes: int = 1) -> HpcgSize:
    """The local grid for ``plan``: HPCG's default for a quick run, a quarter of memory otherwise."""
    usable = facts.usable_bytes
    concerns = []
    fits = _edge_within(_HPCG_MOST * usable / processes)
    wanted = _HPCG_QUICK_EDGE if plan is Plan.QUICK else _edge_within(_HPCG_SHARE * usable / processes) + 8
    edge = max(min(wanted, fits), _HPCG_LEAST_EDGE)
    total = processes * edge**3 * HPCG_BYTES_PER_EQUATION
    share = total / usable if usable else math.inf
    if plan is not Plan.QUICK and share < _HPCG_SHARE:
        concerns.append(f"the grid takes {share:.0%} of the usable memory, an official run needs a quarter")
    if share > _HPCG_MOST:
        concerns.append(f"even the smallest grid takes {share:.0%} of the usable memory")
    if facts.llc_bytes and total < CACHE_FACTOR * facts.llc_bytes:
        concerns.append(f"the problem of {total / _MIB:.0f} MiB partly fits into the last-level cache")
    return HpcgSize(
        nx=edge,
        ny=edge,
        nz=edge,
        processes=processes,
        threads_per_process=max(1, facts.allowed_cpus // processes),
        runtime_seconds=_HPCG_SECONDS[plan],
        total_bytes=total,
        memory_share=share,
        reason=f"{edge} x {edge} x {edge} for each of {processes} processes takes {total / _MIB:.0f} MiB, {share:.0%} of memory",
        concerns=concerns,
    )


def _blocks(n: int, block: int) -> int:
    """``n`` rounded down to whole blocks."""
    return n // block * block


def _edge_within(size_bytes: float) -> int:
    """Edge of the largest cube in ``size_bytes``, divisible by 8."""
    edge = int((size_bytes / HPCG_BYTES_PER_EQUATION) ** (1 / 3) / 8) * 8
    while (edge + 8) ** 3 * HPCG_BYTES_PER_EQUATION <= size_bytes:
        edge += 8
    return edge


def hpl_dat(size: HplSize) -> str:
    """``HPL.dat`` for ``size``: one problem, results to standard output, residual check on (the order is HPL's)."""
    rows = (
        ("HPL.out", "file, not used"),
        ("6", "results to standard output"),
        ("1", "problem sizes"),
        (str(size.n), "N"),
        ("1", "block sizes"),
        (str(size.nb), "NB"),
        ("0", "ranks placed row by row"),
        ("1", "process grids"),
        (str(size.p), "P"),
        (str(size.q), "Q"),
        ("16.0", "residual threshold"),
        ("1", "panel factorisations"),
        ("2", "right-looking"),
        ("1", "recursive stops"),
        ("4", "NBMIN"),
        ("1", "panels in recursion"),
        ("2", "NDIV"),
        ("1", "recursive factorisations"),
        ("1", "Crout"),
        ("1", "broadcasts"),
        ("1", "increasing ring, modified"),
        ("1", "look-ahead depths"),
        ("1", "depth"),
        ("2", "swap: mixed"),
        ("64", "swap threshold"),
        ("0", "L1 transposed"),
        ("0", "U transposed"),
        ("1", "equilibration"),
        ("8", "alignment in doubles"),
    )
    head = f"nodeproof, {size.reason}\nP x Q must be the number of MPI processes\n"
    return head + "".join(f"{value:<12} {label}\n" for value, label in rows)


def hpcg_dat(size: HpcgSize) -> str:
    """``hpcg.dat`` for ``size``."""
    return f"nodeproof\n{size.reason}\n{size.nx} {size.ny} {size.nz}\n{size.runtime_seconds}\n"
