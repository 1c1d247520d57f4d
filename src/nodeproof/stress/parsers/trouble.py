"""Why a program could not do its work, in its own or its launcher's words.

Used where no result was found. The list goes from the specific to the general: ``std::bad_alloc`` says more than the
``Aborted (6)`` that follows it.
"""

from typing import NamedTuple

from nodeproof.model.job import Evidence
from nodeproof.stress.parsers.lines import evidence, find_lines

__all__ = ["Trouble", "find_trouble"]


class Trouble(NamedTuple):
    """The first cause that the output names."""

    cause: str
    reason: str
    """What it means and what helps."""
    evidence: Evidence


_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (b"nxf%2==0", "config_error", "nx, ny and nz must be divisible by 8: the multigrid halves them three times"),
    (b"not enough slots", "config_error", "the launcher has fewer slots than ranks were asked for: use fewer ranks"),
    (b"run as root", "config_error", "the launcher refuses to run as root: use an ordinary user"),
    (b"error while loading shared libraries", "missing_library", "a shared library is missing: check the library path"),
    (b"symbol lookup error", "missing_library", "a shared library is of another version than the program was built with"),
    (b"illegal instruction", "illegal_instruction", "the program was built for another processor"),
    (b"bad_alloc", "out_of_memory", "the program could not get the memory it asked for: use a smaller problem"),
    (b"cannot allocate memory", "out_of_memory", "the program could not get the memory it asked for: use a smaller problem"),
    (b"out of memory", "out_of_memory", "memory ran out: use a smaller problem"),
    (b"oom-kill", "out_of_memory", "the kernel ended the program because memory ran out: use a smaller problem"),
    (b"memory allocation failed", "out_of_memory", "the program could not get the memory it asked for: use a smaller problem"),
    (b"bus error", "signal", "the program ended with a bus error: memory that was promised could not be given, or is faulty"),
    (b"segmentation fault", "signal", "the program ended with a segmentation fault"),
    (b"floating point exception", "signal", "the program ended with a floating point exception"),
    (b"assertion", "assertion", "the program found itself in an impossible state"),
    (b"exited on signal", "signal", "a rank was ended by a signal"),
    (b"mpi_abort", "aborted", "a rank called MPI_Abort"),
    (b"bad termination", "aborted", "a rank ended before its time"),
    (b"non-zero status", "exit_status", "a rank ended with a non-zero exit status"),
    (b"command not found", "missing_program", "a program is missing"),
    (b"no such file or directory", "missing_file", "a file is missing"),
    (b"permission denied", "no_permission", "a file may not be used by this user"),
)


def find_trouble(raw: bytes, source: str, known: tuple[tuple[bytes, str, str], ...] = ()) -> Trouble | None:
    """The most telling cause in ``raw``; ``known`` are a program's own ones, (marker in lower case, cause, reason)."""
    for marker, cause, reason in known + _KNOWN:
        lines = find_lines(raw, (marker,)).lines
        if lines:
            return Trouble(cause, reason, evidence(lines[0], source))
    return None
