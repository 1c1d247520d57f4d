"""How each benchmark is made out of its source. Flags are the reference's (stress.md 8.2, 14); nothing but STREAM is ever run.

HPL's ``startup`` and ``refresh`` make links for one architecture and race with themselves under ``make -j``: they run one after
the other, and only ``build`` runs in parallel.
"""

import os
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from nodeproof.errors import CommandError
from nodeproof.host.atomic import store_file
from nodeproof.host.commands import CommandResult, Commands
from nodeproof.operate.assets.problems import AssetError

__all__ = ["RECIPES", "BuildOptions", "Made", "Shop"]

_BUILD_S = 3600.0
_SMOKE_S = 600.0
_SMOKE_THREADS = 4
_ARCH = "nodeproof"
_LAST_LINES = 12


class BuildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what comes out. Tools and directories are absolute paths."""

    output_root: str
    build_root: str
    sources: dict[str, str]
    """By benchmark."""
    configs: dict[str, str] = {}
    """``HPL.dat`` and ``hpcg.dat`` by benchmark; without one, the source's own."""
    cc: str = "/usr/bin/gcc"
    cxx: str = "/usr/bin/g++"
    mpicc: str = "/usr/bin/mpicc"
    mpicxx: str = "/usr/bin/mpicxx"
    mpirun: str = "/usr/bin/mpirun"
    openblas_include: str = ""
    openblas_lib: str = ""
    """Directory of ``libopenblas.so``."""
    jobs: int = 1
    stream_array_size: int = 80_000_000
    stream_ntimes: int = 10
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    """Wins over ``only``."""
    force: bool = False


class Made(NamedTuple):
    """What a recipe left in the build directory."""

    binary: str
    config: str
    flags: str
    patch: str = ""
    smoke: str = ""


class Shop:
    """Runs tools for recipes, and says the last of what they printed when they fail."""

    def __init__(self, commands: Commands, options: BuildOptions) -> None:
        self.commands = commands
        self.options = options

    def make(self, folder: str, *targets: str, jobs: int = 1) -> None:
        """``make`` in ``folder``, free of a surrounding make. Raises AssetError."""
        surroundings = ("/usr/bin/env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "-u", "MFLAGS")
        self.run([*surroundings, "make", f"-j{jobs}", "-C", folder, f"arch={_ARCH}", *targets], f"make {' '.join(targets)}")

    def run(self, argv: Sequence[str], what: str, deadline_s: float = _BUILD_S) -> CommandResult:
        """Raises AssetError unless it ends with 0."""
        try:
            result = self.commands.run(argv, deadline_s=deadline_s)
        except CommandError as error:
            raise AssetError(f"{what}: {error}") from None
        if result.exit_code != 0:
            said = (result.stdout + b"\n" + result.stderr).decode("utf-8", "replace").splitlines()
            tail = "\n  ".join(line for line in said if line.strip())[-2000:].splitlines()[-_LAST_LINES:]
            raise AssetError(f"{what}: exit status {result.exit_code}\n  " + "\n  ".join(line.strip() for line in tail))
        return result


def _stream(shop: Shop, top: str) -> Made:
    options = shop.options
    flags = f"-O3 -fopenmp -DSTREAM_ARRAY_SIZE={options.stream_array_size} -DNTIMES={options.stream_ntimes} -mcmodel=medium"
    if os.uname().machine != "x86_64":
        flags = flags.removesuffix(" -mcmodel=medium")
    binary = os.path.join(top, "stream_omp")
    shop.run([options.cc, *flags.split(), os.path.join(top, "stream.c"), "-o", binary], "STREAM")
    return Made(binary, "", flags, smoke=_smoke(shop, binary))


def _smoke(shop: Shop, binary: str) -> str:
    """Four threads, and the line of its own validation. Raises AssetError."""
    numactl = shop.commands.find("numactl")
    placed = [numactl, "--interleave=all"] if numactl is not None else []
    argv = ["/usr/bin/env", f"OMP_NUM_THREADS={_SMOKE_THREADS}", *placed, binary]
    said = shop.run(argv, "STREAM's short run", _SMOKE_S).stdout.decode("utf-8", "replace")
    line = next((line for line in said.splitlines() if line.startswith("Solution Validates")), "")
    if not line:
        raise AssetError(f"STREAM was built, and its short run did not validate: {said[-300:].strip() or 'it printed nothing'}")
    return f"{_SMOKE_THREADS} threads{', numactl --interleave=all' if placed else ''}: {line}"


def _hpl(shop: Shop, top: str) -> Made:
    options = shop.options
    flags = "-O3 -fopenmp -funroll-loops"
    store_file(os.path.join(top, f"Make.{_ARCH}"), _hpl_makefile(options, top, flags).encode(), mode=0o644)
    for phase in ("startup", "refresh"):
        shop.make(top, phase)
    shop.make(top, "build", jobs=options.jobs)
    binary = os.path.join(top, "bin", _ARCH, "xhpl")
    own = os.path.join(top, "bin", _ARCH, "HPL.dat")
    return Made(binary, options.configs.get("hpl") or own, flags)


def _hpl_makefile(options: BuildOptions, top: str, flags: str) -> str:
    blas = f"-L{options.openblas_lib} -Wl,-rpath,{options.openblas_lib}" if options.openblas_lib else ""
    include = f"-I{options.openblas_include}" if options.openblas_include else ""
    values = {
        "SHELL": "/bin/sh",
        "CD": "cd",
        "CP": "cp",
        "LN_S": "ln -sf",
        "MKDIR": "mkdir -p",
        "RM": "/bin/rm -f",
        "TOUCH": "touch",
        "ARCH": _ARCH,
        "TOPdir": top,
        "INCdir": "$(TOPdir)/include",
        "BINdir": "$(TOPdir)/bin/$(ARCH)",
        "LIBdir": "$(TOPdir)/lib/$(ARCH)",
        "HPLlib": "$(LIBdir)/libhpl.a",
        "LAinc": include,
        "LAlib": f"{blas} -lopenblas".strip(),
        "HPL_INCLUDES": "-I$(INCdir) -I$(INCdir)/$(ARCH) $(LAinc)",
        "HPL_LIBS": "$(HPLlib) $(LAlib) -lm",
        "HPL_OPTS": "-DHPL_CALL_CBLAS",
        "F2CDEFS": "-DAdd__ -DF77_INTEGER=int -DStringSunStyle",
        "HPL_DEFS": "$(F2CDEFS) $(HPL_OPTS) $(HPL_INCLUDES)",
        "CC": options.mpicc,
        "CCNOOPT": "$(HPL_DEFS)",
        "CCFLAGS": f"$(HPL_DEFS) {flags}",
        "LINKER": options.mpicc,
        "LINKFLAGS": "$(CCFLAGS)",
        "ARCHIVER": "ar",
        "ARFLAGS": "r",
        "RANLIB": "echo",
    }
    return "".join(f"{name} = {value}\n" for name, value in values.items())


_RESIDUAL = "src/ComputeResidual.cpp"
_OPEN_PRAGMA = re.compile(r"(#pragma omp parallel default\(none\) shared\(local_residual, v1v, v2v)(\))")
_SOUND_PRAGMA = re.compile(
    r"#pragma omp parallel (default\(none\) shared\(local_residual, v1v, v2v, ?n\)|shared\(local_residual, v1v, v2v(, ?n)?\))"
)


def _hpcg(shop: Shop, top: str) -> Made:
    options = shop.options
    patch = _mend_residual(os.path.join(top, _RESIDUAL))
    flags = "-O3 -fopenmp -ffast-math -ftree-vectorize"
    setup = os.path.join(top, "setup", f"Make.{_ARCH}")
    store_file(setup, _hpcg_makefile(options, flags).encode(), mode=0o644)
    shop.make(top, jobs=options.jobs)
    return Made(
        os.path.join(top, "bin", "xhpcg"), options.configs.get("hpcg") or os.path.join(top, "bin", "hpcg.dat"), flags, patch
    )


def _mend_residual(path: str) -> str:
    """List ``n`` among the shared variables of one parallel region, which compilers want since OpenMP 4.0; what was done.

    Raises AssetError for a source that is neither the known one nor one that needs nothing.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise AssetError(f"HPCG: {_RESIDUAL}: {error}") from None
    mended, count = _OPEN_PRAGMA.subn(r"\1, n\2", text)
    if count == 1:
        store_file(path, mended.encode(), mode=0o644)
        return f"{_RESIDUAL}: n is listed as shared in the parallel region"
    if count == 0 and _SOUND_PRAGMA.search(text):
        return ""
    raise AssetError(f"HPCG: {_RESIDUAL} is laid out in a way that is not known here; mend it by hand, or take HPCG 3.1")


def _hpcg_makefile(options: BuildOptions, flags: str) -> str:
    values = {
        "SHELL": "/bin/sh",
        "CD": "cd",
        "CP": "cp",
        "LN_S": "ln -s -f",
        "MKDIR": "mkdir -p",
        "RM": "/bin/rm -f",
        "TOUCH": "touch",
        "TOPdir": ".",
        "SRCdir": "$(TOPdir)/src",
        "INCdir": "$(TOPdir)/src",
        "BINdir": "$(TOPdir)/bin",
        "HPCG_INCLUDES": "-I$(INCdir) -I$(INCdir)/$(arch)",
        "HPCG_LIBS": "",
        "HPCG_OPTS": "",
        "HPCG_DEFS": "$(HPCG_OPTS) $(HPCG_INCLUDES)",
        "CXX": options.mpicxx,
        "CXXFLAGS": f"$(HPCG_DEFS) {flags}",
        "LINKER": "$(CXX)",
        "LINKFLAGS": "$(CXXFLAGS)",
        "ARCHIVER": "ar",
        "ARFLAGS": "r",
        "RANLIB": "echo",
    }
    return "".join(f"{name} = {value}\n" for name, value in values.items())


RECIPES: dict[str, Callable[[Shop, str], Made]] = {"stream": _stream, "hpl": _hpl, "hpcg": _hpcg}
"""In the order in which they are built."""
