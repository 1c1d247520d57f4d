"""What an administrator says of a node, and what is refused of it (stress.md 8.2).

Every text that comes to stand in a generated file is judged here: nothing below this module escapes anything but by its format's
own rules.
"""

import re
from collections.abc import Iterator

import msgspec

from nodeproof.operate.deploy.problems import DeployError
from nodeproof.stress.adapters.npu_burn_settings import choose_devices

__all__ = [
    "CONTAINER_NAME",
    "CPU_ITEMS",
    "Backend",
    "CpuInputs",
    "Images",
    "Inputs",
    "NpuInputs",
    "check",
    "check_image",
    "check_path",
]

CPU_ITEMS = ("stream", "hpl", "hpcg")
CONTAINER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}", re.ASCII)
_PATH = re.compile(r"/[A-Za-z0-9._+@%=/-]*", re.ASCII)
_ADDRESS = re.compile(r"127\.0\.0\.1:(\d{1,5})", re.ASCII)
_MOST = 1_000_000
_MOST_EDGE = 100_000
_MOST_SECONDS = 86400
_GENERATIONS = ("A2", "A3", "A5")
_MOST_DEVICES = 10_000

Backend = str
"""``local``: CPU items run where the adapter does; ``unix``: in the runner's container."""


class CpuInputs(msgspec.Struct, frozen=True, kw_only=True):
    """CPU items. 0 = to be chosen by :mod:`nodeproof.operate.deploy.chosen`."""

    manifest: str = ""
    """Of ``assets build``, for backend ``local``."""
    mpi_launcher: str = "/usr/bin/mpirun"
    numactl: str = ""
    stream_threads: int = 0
    hpl_processes: int | None = None
    hpl_threads: int | None = None
    hpl_library_dir: str = ""
    hpcg_processes: int | None = None
    hpcg_threads: int | None = None
    hpcg_nx: int = 32
    hpcg_ny: int = 32
    hpcg_nz: int = 32
    hpcg_runtime_s: int = 60


class NpuInputs(msgspec.Struct, frozen=True, kw_only=True):
    """NPU Burn in the administrator's fixed container; all or nothing."""

    manifest: str = ""
    """Of ``assets image npu-burn``."""
    runtime: str = "/usr/bin/docker"
    """Client of the engine, where the adapter runs."""
    container: str = ""
    image: str = ""
    device: str = ""
    run_case: str = ""
    group: str = ""
    generation: str = ""
    cann: str = ""
    torch_npu: str = ""
    soc: str = ""
    executable: str = "/usr/local/bin/catmonitor-npu-burn"
    output_dir: str = ""
    internal_timeout_s: int = 300

    @property
    def is_given(self) -> bool:
        """Whether anything was said of it beyond what has a default."""
        return any(
            (self.manifest, self.container, self.image, self.device, self.run_case, self.group, self.generation, self.cann)
        )


class Images(msgspec.Struct, frozen=True, kw_only=True):
    """Images of a deployment in containers."""

    control: str = ""
    runner: str = ""
    runner_manifest: str = ""
    """Of ``assets image cpu-runner``."""


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    output_dir: str
    backend: Backend = "local"
    program: str = "/opt/nodeproof/bin/nodeproof"
    """The nodeproof that the adapter calls."""
    plugin_root: str = "/opt/nodeproof-stress"
    state_dir: str = "/var/lib/nodeproof"
    run_dir: str = "/run/nodeproof-deploy"
    report_path: str = ""
    """Of backend ``local``; empty = below ``state_dir``."""
    engine_socket: str = "/var/run/docker.sock"
    web_address: str = "127.0.0.1:9527"
    exporter_address: str = "127.0.0.1:19320"
    enable_web: bool = False
    images: Images = Images()
    cpu: CpuInputs = CpuInputs()
    npu: NpuInputs = NpuInputs()
    npu_host_root: str = "/"
    """Where drivers are looked for."""
    npu_device_root: str = "/dev"
    force: bool = False

    @property
    def in_containers(self) -> bool:
        """Whether there are services to be started."""
        return bool(self.images.control)

    @property
    def has_cpu(self) -> bool:
        """Whether CPU items are wanted."""
        return bool(self.cpu.manifest or self.images.runner)


def check(inputs: Inputs) -> None:
    """Raises DeployError with everything that is wrong, a line each."""
    faults = [*_whole(inputs), *_paths(inputs), *_cpu(inputs.cpu), *(_npu(inputs) if inputs.npu.is_given else ())]
    if faults:
        raise DeployError("\n  ".join(["this cannot be generated:", *faults]) if len(faults) > 1 else faults[0])


def check_image(flag: str, name: str) -> Iterator[str]:
    """What is wrong with the name of an image."""
    if not _IMAGE.fullmatch(name) or ".." in name or "//" in name:
        yield f"{flag} {name[:120]!r}: expected the name of an image, such as nodeproof/control:1"


def check_path(flag: str, path: str) -> Iterator[str]:
    """What is wrong with a path that comes to stand in several formats: shell, YAML, compose and command line."""
    if not path.strip("/"):
        yield f"{flag} {path!r}: expected a place of its own, not the root"
    elif not _PATH.fullmatch(path) or ".." in path.split("/"):
        yield (
            f"{flag} {path[:200]!r}: expected an absolute path of letters, digits and ._+@%=/- without ..;"
            " colons and blanks divide words in what is generated"
        )


def _whole(inputs: Inputs) -> Iterator[str]:
    if inputs.backend not in {"local", "unix"}:
        yield f"--cpu-backend {inputs.backend[:40]!r}: expected local or unix"
    images = inputs.images
    if not (inputs.in_containers or inputs.has_cpu or inputs.npu.is_given):
        yield "nothing to generate: give --control-image, --cpu-manifest, --cpu-runner-image or --npu-* options"
    if inputs.backend == "local" and images.runner:
        yield "--cpu-runner-image goes with --cpu-backend unix; with local, CPU items run on the host"
    if inputs.backend == "unix" and not (images.runner and images.runner_manifest and images.control):
        yield "--cpu-backend unix takes --control-image, --cpu-runner-image and --cpu-runner-manifest"
    if inputs.in_containers and inputs.cpu.manifest:
        yield "--cpu-manifest is of programs on the host, which a control container cannot run: take --cpu-backend unix"
    for flag, name in (("--control-image", images.control), ("--cpu-runner-image", images.runner)):
        yield from check_image(flag, name) if name else ()
    for flag, address in (("--web-address", inputs.web_address), ("--exporter-address", inputs.exporter_address)):
        port = _ADDRESS.fullmatch(address)
        if port is None or not 0 < int(port[1]) < 65536:
            yield f"{flag} {address[:80]!r}: expected 127.0.0.1:PORT; beyond loopback take a proxy"


def _paths(inputs: Inputs) -> Iterator[str]:
    cpu = inputs.cpu
    paths = {
        "--output-dir": inputs.output_dir,
        "--program": inputs.program,
        "--plugin-root": inputs.plugin_root,
        "--state-dir": inputs.state_dir,
        "--run-dir": inputs.run_dir,
        "--engine-socket": inputs.engine_socket,
        "--mpi-launcher": cpu.mpi_launcher,
    }
    optional = {
        "--report-path": inputs.report_path,
        "--numactl": cpu.numactl,
        "--hpl-library-dir": cpu.hpl_library_dir,
    }
    for flag, path in (*paths.items(), *((flag, path) for flag, path in optional.items() if path)):
        yield from check_path(flag, path)


def _cpu(cpu: CpuInputs) -> Iterator[str]:
    counts = {
        "--hpl-processes": cpu.hpl_processes,
        "--hpl-threads": cpu.hpl_threads,
        "--hpcg-processes": cpu.hpcg_processes,
        "--hpcg-threads": cpu.hpcg_threads,
    }
    for flag, count in counts.items():
        if count is not None and not 1 <= count <= _MOST:
            yield f"{flag} {count}: expected a whole number from 1 to {_MOST}"
    for flag, edge in (("--hpcg-nx", cpu.hpcg_nx), ("--hpcg-ny", cpu.hpcg_ny), ("--hpcg-nz", cpu.hpcg_nz)):
        if not 16 <= edge <= _MOST_EDGE or edge % 8:
            yield f"{flag} {edge}: expected a multiple of 8 from 16, as HPCG's four grids need"
    if not 1 <= cpu.hpcg_runtime_s <= _MOST_SECONDS:
        yield f"--hpcg-runtime {cpu.hpcg_runtime_s}: expected seconds from 1 to {_MOST_SECONDS}"
    if not 0 <= cpu.stream_threads <= _MOST:
        yield f"--stream-threads {cpu.stream_threads}: expected a whole number, 0 for every processor"


def _npu(inputs: Inputs) -> Iterator[str]:
    npu = inputs.npu
    given = {
        "--npu-container": npu.container,
        "--npu-image": npu.image,
        "--npu-device": npu.device,
        "--npu-chip-generation": npu.generation,
        "--npu-output-dir": npu.output_dir,
    }
    missing = [flag for flag, value in given.items() if not value]
    if missing:
        yield f"NPU Burn also takes {', '.join(missing)}; without NPUs leave all --npu-* options out"
        return
    if not CONTAINER_NAME.fullmatch(npu.container):
        yield f"--npu-container {npu.container[:80]!r}: expected letters, digits, _, . and -, beginning with a letter or digit"
    yield from check_image("--npu-image", npu.image)
    _, problem = choose_devices(npu.device, tuple(range(_MOST_DEVICES)))
    if problem:
        yield f"--npu-device: {problem}"
    if bool(npu.run_case) == bool(npu.group):
        yield "exactly one of --npu-run-case and --npu-group: verified are matmul on A2 and quant_matmul on A3"
    words = {
        "--npu-run-case": npu.run_case,
        "--npu-group": npu.group,
        "--npu-cann": npu.cann,
        "--npu-torch-npu": npu.torch_npu,
        "--npu-soc": npu.soc,
    }
    for flag, word in words.items():
        if word and not _WORD.fullmatch(word):
            yield f"{flag} {word[:80]!r}: expected one word of letters, digits and _.+-"
    if npu.generation not in _GENERATIONS:
        yield f"--npu-chip-generation {npu.generation[:40]!r}: expected one of {', '.join(_GENERATIONS)}"
    if not 1 <= npu.internal_timeout_s <= _MOST_SECONDS:
        yield f"--npu-internal-timeout {npu.internal_timeout_s}: expected seconds from 1 to {_MOST_SECONDS}"
    yield from _npu_paths(inputs)


def _npu_paths(inputs: Inputs) -> Iterator[str]:
    npu = inputs.npu
    for flag, path in (
        ("--npu-runtime", npu.runtime),
        ("--npu-executable", npu.executable),
        ("--npu-output-dir", npu.output_dir),
        ("--npu-device-root", inputs.npu_device_root),
    ):
        yield from check_path(flag, path)
    if inputs.npu_host_root != "/":
        yield from check_path("--npu-host-root", inputs.npu_host_root)
