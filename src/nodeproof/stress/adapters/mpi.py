"""Whether launcher and program speak the same MPI, told by what the launcher says and what the program links.

Nothing is run but ``LAUNCHER --version``.

Open MPI and MPICH start each other's programs as so many single ranks, each of which believes to be alone: the run "passes" and
proves nothing. A program takes symbols ``ompi_...`` when it was built with Open MPI, whatever its library is called.
"""

from typing import NamedTuple

from nodeproof.errors import CommandError, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.job import CheckStatus, MPICheck
from nodeproof.sources import elf
from nodeproof.sources.elf import ElfFacts

__all__ = ["Family", "check_mpi", "executable_family", "launcher_family", "uses_mpi"]

_VERSION_S = 5.0
_MAX_VERSION_CHARS = 1024
_MPICH_LIKE = ("libmpich", "libmpi.so.12", "libmpicxx", "libmpifort.so.12", "libmpi_intel", "libmvapich")
_OPEN_MPI = ("libopen-pal", "libopen-rte", "libmpi_usempif", "libmpi_mpifh", "libmpi.so.40", "libmpi.so.20", "libmpi_cxx.so.40")


class Family(NamedTuple):
    """``openmpi``, ``mpich`` (with all that keep its ABI: Intel MPI, MVAPICH, Cray) or ``unknown``."""

    name: str
    said: str


def launcher_family(text: str) -> Family:
    """Of what ``mpirun --version`` printed."""
    folded = text.lower()
    if "open mpi" in folded or "openrte" in folded or "prrte" in folded or "open-mpi.org" in folded:
        return Family("openmpi", text)
    if any(word in folded for word in ("mpich", "hydra", "intel(r) mpi", "mvapich")):
        return Family("mpich", text)
    return Family("unknown", text)


def executable_family(facts: ElfFacts) -> Family:
    """Of what a program links."""
    if b"\0ompi_" in facts.strings or any(name.startswith(_OPEN_MPI) for name in facts.needed):
        return Family("openmpi", ", ".join(facts.needed))
    if any(name.startswith(_MPICH_LIKE) for name in facts.needed):
        return Family("mpich", ", ".join(facts.needed))
    return Family("unknown", "static" if facts.is_static else ", ".join(facts.needed))


def uses_mpi(facts: ElfFacts) -> bool:
    """Whether a program calls MPI at all, as far as can be told; a static one may."""
    return facts.is_static or b"\0MPI_" in facts.strings or any(name.startswith("libmpi") for name in facts.needed)


def check_mpi(machine: Machine, launcher: str, executable: str, processes: int) -> MPICheck:
    """Both families against each other, for so many ``processes``."""
    try:
        result = machine.commands.run([launcher, "--version"], deadline_s=_VERSION_S)
    except CommandError as error:
        return _check(launcher, Family("unknown", ""), "unknown", CheckStatus.FAIL, str(error))
    text = result.stdout.decode("utf-8", "replace").strip()
    if result.exit_code != 0:
        message = f"{launcher} --version ends with status {result.exit_code}: {result.first_error_line()}"
        return _check(launcher, Family("unknown", text), "unknown", CheckStatus.FAIL, message)
    family = launcher_family(text)
    try:
        facts = elf.parse(machine.files.read(executable), executable)
    except (NoData, ParseError) as error:
        return _check(launcher, family, "unknown", CheckStatus.FAIL, f"{executable} cannot be read as a program: {error}")
    abi = executable_family(facts)
    status, message = _verdict(family, abi, facts, processes)
    return _check(launcher, family, abi.name if uses_mpi(facts) else "none", status, message)


def _verdict(family: Family, abi: Family, facts: ElfFacts, processes: int) -> tuple[CheckStatus, str]:
    if not uses_mpi(facts):
        text = f"the program uses no MPI, so each of {processes} processes would compute the whole problem alone; start one"
        return (CheckStatus.WARN if processes == 1 else CheckStatus.FAIL), text
    if "unknown" in {family.name, abi.name}:
        text = f"launcher: {family.name}, program: {abi.name} ({abi.said}); see that they belong together"
        return CheckStatus.WARN, text
    if family.name != abi.name:
        text = f"the launcher is of {family.name}, the program of {abi.name} ({abi.said}); take the mpirun of that MPI"
        return CheckStatus.FAIL, text
    return CheckStatus.PASS, f"launcher and program are both of {family.name}"


def _check(launcher: str, family: Family, abi: str, status: CheckStatus, message: str) -> MPICheck:
    return MPICheck(
        required=True,
        launcher=launcher,
        implementation=family.name,
        version=family.said[:_MAX_VERSION_CHARS],
        executable_abi=abi,
        status=status,
        message=message,
    )
