"""Control image and CPU runner."""

import os
import shlex

import msgspec

from nodeproof.operate.deploy.chosen import grids_of
from nodeproof.operate.images.build import Recipe
from nodeproof.operate.images.context import Context, check_wheels
from nodeproof.operate.images.problems import ImageError
from nodeproof.operate.images.templates import template

__all__ = ["BUILD_PACKAGES", "RUN_PACKAGES", "RunnerSources", "control", "cpu_runner"]

BUILD_PACKAGES = (
    "gcc",
    "g++",
    "make",
    "file",
    "libc6-dev",
    "mpich",
    "libmpich-dev",
    "libopenblas-dev",
    "numactl",
    "python3-venv",
)
RUN_PACKAGES = ("libopenblas0-pthread", "libgomp1", "mpich", "numactl", "python3")
_LAUNCHER = "mpirun"
_FLAGS = {"stream": "--stream-src", "hpl": "--hpl-src", "hpcg": "--hpcg-src"}


class RunnerSources(msgspec.Struct, frozen=True, kw_only=True):
    """What the administrator has of each benchmark."""

    sources: dict[str, str]
    """By benchmark: a file, a directory or an archive."""
    configs: dict[str, str] = {}
    """``HPL.dat`` and ``hpcg.dat``."""
    stream_array_size: int = 80_000_000
    stream_ntimes: int = 10
    jobs: int = 0
    build_packages: tuple[str, ...] = BUILD_PACKAGES
    run_packages: tuple[str, ...] = RUN_PACKAGES


def control(wheels: str, engine_client: str = "") -> Recipe:
    """Daemon, page and command line; with the engine's client for a deployment with NPU Burn. Raises ImageError."""
    names = check_wheels(wheels)

    def fill(context: Context) -> str:
        _wheels(context, wheels, names)
        client = ""
        if engine_client:
            context.copy(engine_client, "client")
            client = "COPY client /usr/bin/docker\n"
        return template("control.Containerfile").replace("@CLIENT@", client)

    return Recipe(kind="control", fill=fill, needs_network=False)


def cpu_runner(wheels: str, wanted: RunnerSources) -> Recipe:
    """STREAM, HPL and HPCG with all that runs them. Raises ImageError."""
    names = check_wheels(wheels)
    items = [name for name in _FLAGS if wanted.sources.get(name)]
    if not items:
        raise ImageError(f"nothing to build: give {', '.join(_FLAGS.values())}, or some of them")
    for flag, count in (("--stream-array-size", wanted.stream_array_size), ("--stream-ntimes", wanted.stream_ntimes)):
        if count < 1:
            raise ImageError(f"{flag} {count}: expected a whole number from 1")
    grids = grids_of(wanted.configs["hpl"]) if wanted.configs.get("hpl") else []
    if wanted.configs.get("hpl") and not grids:
        raise ImageError(f"--hpl-dat {wanted.configs['hpl']}: it cannot be read as an input of HPL")

    def fill(context: Context) -> str:
        _wheels(context, wheels, names)
        context.write("packages.sh", template("packages.sh"))
        words = [*_sources(context, wanted, items), "--only", ",".join(items)]
        words += ["--stream-array-size", str(wanted.stream_array_size), "--stream-ntimes", str(wanted.stream_ntimes)]
        words += ["--jobs", str(wanted.jobs)] if wanted.jobs else []
        return (
            template("cpu-runner.Containerfile")
            .replace("@ARGUMENTS@", shlex.join(words))
            .replace("@PROOF@", _proof(items))
            .replace("@BUILD_PACKAGES@", shlex.join(wanted.build_packages))
            .replace("@RUN_PACKAGES@", shlex.join(wanted.run_packages))
        )

    return Recipe(
        kind="cpu-runner",
        fill=fill,
        benchmarks=tuple(items),
        hpl_processes=tuple(grids) if "hpl" in items else (),
        details={"stream_array_size": wanted.stream_array_size, "stream_ntimes": wanted.stream_ntimes},
    )


def _wheels(context: Context, folder: str, names: list[str]) -> None:
    for name in names:
        context.copy(os.path.join(folder, name), f"wheels/{name}")
    context.write("install.sh", template("install.sh"))


def _sources(context: Context, wanted: RunnerSources, items: list[str]) -> list[str]:
    """Copies of sources; what ``assets build`` is told of them."""
    words: list[str] = []
    for name in items:
        source = wanted.sources[name]
        # A name of our own with the administrator's ending, by which the archive is known.
        ending = "" if os.path.isdir(source) else _ending(source)
        context.copy(source, f"sources/{name}{ending}")
        words += [_FLAGS[name], f"/sources/{name}{ending}"]
        if wanted.configs.get(name):
            context.copy(wanted.configs[name], f"sources/{name}.dat")
            words += [f"--{name}-dat", f"/sources/{name}.dat"]
    return words


def _ending(path: str) -> str:
    for ending in (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tar", ".zip", ".c"):
        if path.endswith(ending):
            return ending
    raise ImageError(f"{path}: expected stream.c, a directory or an archive")


def _proof(items: list[str]) -> str:
    """That every library is there in the last stage, too, where no compiler brought it."""
    binaries = {"stream": "stream/stream_omp", "hpl": "hpl/xhpl", "hpcg": "hpcg/xhpcg"}
    paths = [f"/opt/nodeproof-stress/runtime/{binaries[name]}" for name in items]
    launcher = f" && command -v {_LAUNCHER} >/dev/null" if set(items) & {"hpl", "hpcg"} else ""
    return f"for program in {' '.join(paths)}; do ! ldd $program | grep 'not found' || exit 1; done{launcher}"
