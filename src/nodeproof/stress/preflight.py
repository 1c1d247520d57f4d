"""Checks that predict, before anything runs, that a run will fail or prove nothing. Arithmetic only; each names its fix."""

import msgspec

from nodeproof.model.job import CheckStatus, PreflightResult
from nodeproof.stress.parsers.hpl_dat import HplDat
from nodeproof.stress.parsers.stream import CACHE_FACTOR
from nodeproof.stress.sizing import HPCG_BYTES_PER_EQUATION, BoxFacts

__all__ = [
    "Finding",
    "check_disk",
    "check_duration",
    "check_hpcg_grid",
    "check_hpl_input",
    "check_hpl_memory",
    "check_load",
    "check_process_grid",
    "check_stream_array",
    "check_workers",
    "roll_up",
]

_MIB = 1024 * 1024
_MEMORY_SHARE = 0.85
"""Above this the rest of the system is pushed out, and the kernel may end the program."""
_HPCG_ASPECT = 0.125
"""HPCG ends itself when the shortest edge is less than this share of the longest."""
_LOAD_SHARE = 0.05
_HPL_STDOUT = 6


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check: what holds, and what to do when it does not."""

    check: str
    """``process_grid``, ``hpl_memory`` ..."""
    status: CheckStatus
    message: str
    fix: str = ""
    measured: float | None = None
    limit: float | None = None


def check_process_grid(grids: tuple[tuple[int, int], ...], ranks: int) -> Finding:
    """HPL ends itself when it gets fewer ranks than P x Q, and leaves ranks idle when it gets more."""
    most = max((p * q for p, q in grids), default=0)
    p, q = next((grid for grid in grids if grid[0] * grid[1] == most), (0, 0))
    text = f"process grid {p} x {q} needs {most} ranks, {ranks} will be started"
    fix = f"start {most} ranks, or set P x Q = {ranks} in HPL.dat"
    if most > ranks:
        return _finding("process_grid", CheckStatus.FAIL, text, fix, most, ranks)
    if most < ranks:
        return _finding("process_grid", CheckStatus.WARN, f"{text}: {ranks - most} of them will do nothing", fix, most, ranks)
    return _finding("process_grid", CheckStatus.PASS, text, "", most, ranks)


def check_hpl_memory(n: int, facts: BoxFacts) -> Finding:
    """The matrix of ``n`` equations against the memory that may be used."""
    best = int((0.8 * facts.usable_bytes / 8) ** 0.5)
    return _memory("hpl_memory", f"a matrix of N = {n}", 8.0 * n * n, facts, f"use N of at most {best}")


def check_hpl_input(dat: HplDat) -> Finding:
    """Results must go to standard output, and the residual check must be on."""
    if dat.device != _HPL_STDOUT:
        text = f"output device {dat.device} in HPL.dat: the results go elsewhere than to standard output"
        return _finding("hpl_input", CheckStatus.FAIL, text, f"set line 4 of HPL.dat to {_HPL_STDOUT}", dat.device, _HPL_STDOUT)
    if dat.threshold is None or dat.threshold <= 0:
        text = f"residual threshold {dat.threshold} in HPL.dat: HPL will check nothing, so nothing can be proven"
        return _finding("hpl_input", CheckStatus.FAIL, text, "set line 13 of HPL.dat to 16.0", dat.threshold, 0.0)
    tests = len(dat.sizes) * len(dat.blocks) * len(dat.grids)
    return _finding("hpl_input", CheckStatus.PASS, f"results to standard output, at least {tests} tests with residual check", "")


def check_stream_array(array_bytes: int, facts: BoxFacts) -> list[Finding]:
    """One STREAM array against the last-level caches, and all three against memory."""
    memory = _memory("stream_memory", "three arrays", 3.0 * array_bytes, facts, "use smaller arrays")
    if facts.llc_bytes is None:
        text = "the size of the last-level cache is unknown, so the array rule cannot be checked"
        return [_finding("stream_array", CheckStatus.WARN, text, "see that each array has 4 x the last-level cache"), memory]
    least = CACHE_FACTOR * facts.llc_bytes
    text = f"each array has {array_bytes / _MIB:.1f} MiB, the last-level cache {facts.llc_bytes / _MIB:.1f} MiB"
    if array_bytes < least:
        fix = f"use arrays of at least {-(-least // 8)} elements"
        text += f": less than {CACHE_FACTOR} times that, so the rates are partly those of the cache"
        return [_finding("stream_array", CheckStatus.WARN, text, fix, array_bytes, least), memory]
    return [_finding("stream_array", CheckStatus.PASS, text, "", array_bytes, least), memory]


def check_hpcg_grid(nx: int, ny: int, nz: int, processes: int, facts: BoxFacts) -> list[Finding]:
    """The local grid against HPCG's own rules, and the whole problem against memory."""
    edges = (nx, ny, nz)
    total = float(nx * ny * nz * processes * HPCG_BYTES_PER_EQUATION)
    memory = _memory("hpcg_memory", f"the grid on {processes} processes", total, facts, "use a smaller grid")
    text = f"local grid {nx} x {ny} x {nz}"
    if any(edge < 16 or edge % 8 for edge in edges):
        fixed = " x ".join(str(max(16, edge // 8 * 8)) for edge in edges)
        text += ": each edge must be a multiple of 8 and at least 16, or HPCG aborts"
        return [_finding("hpcg_grid", CheckStatus.FAIL, text, f"use {fixed}", min(edges), 16), memory]
    if min(edges) / max(edges) < _HPCG_ASPECT:
        text += f": the shortest edge is less than {_HPCG_ASPECT} of the longest, and HPCG ends itself"
        shape = min(edges) / max(edges)
        return [_finding("hpcg_grid", CheckStatus.FAIL, text, "use edges of similar length", shape, _HPCG_ASPECT), memory]
    return [_finding("hpcg_grid", CheckStatus.PASS, text, ""), memory]


def check_workers(processes: int, threads: int, facts: BoxFacts) -> Finding:
    """Ranks times threads against the CPUs that may be used."""
    workers, allowed = processes * threads, facts.allowed_cpus
    text = f"{processes} processes of {threads} threads on {allowed} allowed CPUs"
    if processes > allowed:
        text += ": the launcher may refuse, and ranks that share a CPU wait for each other spinning"
        return _finding("workers", CheckStatus.FAIL, text, f"use at most {allowed} processes", workers, allowed)
    if workers > allowed:
        fix = f"use {max(1, allowed // processes)} threads a process"
        return _finding("workers", CheckStatus.WARN, f"{text}: they share CPUs", fix, workers, allowed)
    if workers < allowed:
        text += f": {allowed - workers} CPUs are left without load"
        return _finding("workers", CheckStatus.WARN, text, f"use {allowed} workers in all", workers, allowed)
    return _finding("workers", CheckStatus.PASS, text, "", workers, allowed)


def check_disk(free_bytes: int, needed_bytes: int, place: str) -> Finding:
    """Room for output and records."""
    text = f"{free_bytes / _MIB:.0f} MiB are free in {place}, {needed_bytes / _MIB:.0f} MiB may be written"
    if free_bytes < needed_bytes:
        return _finding("disk", CheckStatus.FAIL, text, f"free some room in {place}", free_bytes, needed_bytes)
    return _finding("disk", CheckStatus.PASS, text, "", free_bytes, needed_bytes)


def check_load(load: float, facts: BoxFacts) -> Finding:
    """Load that was on the box in the last minute. It warns and never refuses."""
    share = load / facts.allowed_cpus
    text = f"the load average of the last minute is {load:.2f} on {facts.allowed_cpus} allowed CPUs"
    if share > _LOAD_SHARE:
        return _finding("load", CheckStatus.WARN, text, "wait until it is idle, or expect lower figures", share, _LOAD_SHARE)
    return _finding("load", CheckStatus.PASS, text, "", share, _LOAD_SHARE)


def check_duration(least_seconds: float, timeout_seconds: float) -> Finding:
    """The least time that the work can take against the time limit."""
    text = f"the work takes at least {least_seconds:.0f} s, the limit is {timeout_seconds:.0f} s"
    if least_seconds > timeout_seconds:
        fix = "raise the limit or use a smaller problem"
        text += ": it will be stopped without a result"
        return _finding("duration", CheckStatus.WARN, text, fix, least_seconds, timeout_seconds)
    return _finding("duration", CheckStatus.PASS, text, "", least_seconds, timeout_seconds)


def roll_up(findings: list[Finding]) -> PreflightResult:
    """All findings in one: any failure fails, any warning warns; the message names each with its fix.

    What the machine does not have at all comes before both: nothing else matters then.
    """
    lacking = [finding for finding in findings if finding.status is CheckStatus.UNSUPPORTED]
    if lacking:
        return PreflightResult(CheckStatus.UNSUPPORTED, "; ".join(f"{finding.message} ({finding.fix})" for finding in lacking))
    for status, word in ((CheckStatus.FAIL, "failed"), (CheckStatus.WARN, "warned")):
        bad = [finding for finding in findings if finding.status is status]
        if bad:
            said = "; ".join(f"{finding.message} ({finding.fix})" for finding in bad)
            return PreflightResult(status, f"{len(bad)} of {len(findings)} checks {word}: {said}")
    return PreflightResult(CheckStatus.PASS, f"{len(findings)} checks passed")


def _memory(check: str, what: str, needed: float, facts: BoxFacts, fix: str) -> Finding:
    """``needed`` bytes against the memory that may be used."""
    usable = facts.usable_bytes
    text = f"{what} takes {needed / _MIB:.0f} MiB of {usable / _MIB:.0f} MiB that may be used"
    if needed > usable:
        return _finding(check, CheckStatus.FAIL, f"{text}: it will not fit", fix, needed, usable)
    if needed > _MEMORY_SHARE * usable:
        return _finding(check, CheckStatus.WARN, f"{text}: it may swap or be ended by the kernel", fix, needed, usable)
    return _finding(check, CheckStatus.PASS, text, "", needed, usable)


def _finding(
    check: str, status: CheckStatus, message: str, fix: str, measured: float | None = None, limit: float | None = None
) -> Finding:
    """A finding with its figures."""
    return Finding(check=check, status=status, message=message, fix=fix, measured=measured, limit=limit)
