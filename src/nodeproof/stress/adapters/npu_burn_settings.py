"""What the administrator sets for NPU Burn: the ``NPU_BURN_*`` variables of the reference's dispatcher (stress.md 1.3)."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nodeproof.model.job import CheckStatus
from nodeproof.stress.preflight import Finding

__all__ = ["NpuBurnSettings", "check_settings", "choose_devices"]

_PREFIX = "NPU_BURN_"
_BACKENDS = ("native", "docker_exec")
_GENERATIONS = ("A2", "A3", "A5")
_DEFAULT_TIMEOUT_S = 300
_MOST_TIMEOUT_S = 86400
_CONTAINER_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}", re.ASCII)
_WORKLOAD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)


class NpuBurnSettings(NamedTuple):
    """As they were given, trimmed; nothing is checked yet."""

    backend: str
    executable: str
    runtime: str
    container: str
    image: str
    cann: str
    torch_npu: str
    soc: str
    output_dir: str
    run_case: str
    group: str
    devices: str
    device_root: str
    timeout: str
    generation: str

    @classmethod
    def of(cls, environ: Mapping[str, str], executable: str = "") -> "NpuBurnSettings":
        """Out of the environment; ``executable`` is the configured program."""

        def text(name: str, otherwise: str = "") -> str:
            return environ.get(f"{_PREFIX}{name}", "").strip() or otherwise

        home = environ.get("HOME", "").strip() or "/root"
        return cls(
            backend=text("BACKEND", "native"),
            executable=executable or text("EXECUTABLE"),
            runtime=text("CONTAINER_RUNTIME"),
            container=text("CONTAINER_NAME"),
            image=text("CONTAINER_IMAGE"),
            cann=text("RUNTIME_CANN"),
            torch_npu=text("RUNTIME_TORCH_NPU"),
            soc=text("SOC_MODEL"),
            output_dir=text("OUTPUT_DIR", os.path.join(home, ".ascend_npu_burn", "output")),
            run_case=text("RUN_CASE"),
            group=text("GROUP"),
            devices=text("DEVICE"),
            device_root=text("DEVICE_ROOT", "/dev"),
            timeout=text("INTERNAL_TIMEOUT_SECONDS", str(_DEFAULT_TIMEOUT_S)),
            generation=text("CHIP_GENERATION"),
        )

    @property
    def in_container(self) -> bool:
        """Whether it runs in the administrator's container."""
        return self.backend == "docker_exec"

    @property
    def timeout_s(self) -> int:
        """Seconds that a case may take; 0 where that is no number."""
        good = self.timeout.isascii() and self.timeout.isdigit() and len(self.timeout) < 7
        return int(self.timeout) if good else 0

    @property
    def workload(self) -> str:
        """Case or group."""
        return self.run_case or self.group


def check_settings(settings: NpuBurnSettings) -> list[Finding]:
    """What is wrong with them, each with its fix; an empty list when nothing is."""
    return list(_faults(settings))


def _faults(settings: NpuBurnSettings) -> Iterator[Finding]:
    if settings.backend not in _BACKENDS:
        yield _fault("BACKEND", f"{settings.backend[:40]!r} is neither {' nor '.join(_BACKENDS)}", "native or docker_exec")
    if not os.path.isabs(settings.executable):
        yield _fault(
            "EXECUTABLE", f"{settings.executable[:120]!r} is no absolute path", "the program, in the container its path there"
        )
    if settings.in_container:
        yield from _container_faults(settings)
    yield from _workload_faults(settings)
    if settings.generation not in _GENERATIONS:
        yield _fault("CHIP_GENERATION", f"{settings.generation[:40]!r} is none of {', '.join(_GENERATIONS)}", "A2, A3 or A5")
    if not 0 < settings.timeout_s <= _MOST_TIMEOUT_S:
        yield _fault("INTERNAL_TIMEOUT_SECONDS", f"{settings.timeout[:40]!r} is no number of seconds up to a day", "300")
    if not os.path.isabs(settings.device_root):
        yield _fault("DEVICE_ROOT", f"{settings.device_root[:80]!r} is no absolute path", "/dev")
    if not os.path.isabs(settings.output_dir):
        yield _fault("OUTPUT_DIR", f"{settings.output_dir[:80]!r} is no absolute path", "the tool's own output directory")
    if not settings.devices:
        yield _fault("DEVICE", "no device is named", "all, or logical ids such as 0,1")


def _workload_faults(settings: NpuBurnSettings) -> Iterator[Finding]:
    if bool(settings.run_case) == bool(settings.group):
        what = "both NPU_BURN_RUN_CASE and NPU_BURN_GROUP are" if settings.run_case else "neither case nor group is"
        yield _fault("RUN_CASE", f"{what} set, and it takes exactly one", "a case (matmul on A2, quant_matmul on A3) or a group")
    elif not _WORKLOAD.fullmatch(settings.workload):
        yield _fault("RUN_CASE", f"{settings.workload[:80]!r} is no name of a case or group", "a name of letters, digits and _")


def _container_faults(settings: NpuBurnSettings) -> Iterator[Finding]:
    if not os.path.isabs(settings.runtime):
        yield _fault("CONTAINER_RUNTIME", f"{settings.runtime[:80]!r} is no absolute path", "/usr/bin/docker")
    if not _CONTAINER_NAME.fullmatch(settings.container):
        yield _fault("CONTAINER_NAME", f"{settings.container[:80]!r} is no name of a container", "the container's name")
    if not settings.image:
        yield _fault("CONTAINER_IMAGE", "no image is named", "the image that the container must run")
    untold = [
        name
        for name, value in (
            ("RUNTIME_CANN", settings.cann),
            ("RUNTIME_TORCH_NPU", settings.torch_npu),
            ("SOC_MODEL", settings.soc),
        )
        if not value
    ]
    if untold:
        names = ", ".join(f"{_PREFIX}{name}" for name in untold)
        yield Finding(
            check="npu_burn_versions",
            status=CheckStatus.WARN,
            message=f"{names} is not set: the record does not say what the image holds",
            fix="set them to what the image was built with",
        )


def choose_devices(asked: str, available: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Logical ids that are to be burnt, and what is wrong with the list; ``all`` stands for every one there is."""
    if asked == "all":
        return available, "" if available else "there is no device"
    chosen: list[int] = []
    for cell in asked.split(","):
        if not (cell.isascii() and cell.isdigit() and len(cell) < 5) or (len(cell) > 1 and cell.startswith("0")):
            return (), f"{cell[:40]!r} in {asked[:80]!r} is no logical id: write all, or ids with commas and without blanks"
        number = int(cell)
        if number in chosen:
            return (), f"device {number} stands twice in {asked[:80]!r}"
        if number not in available:
            known = f"0 to {len(available) - 1}" if available else "none"
            return (), f"device {number} is not there; logical ids here: {known}"
        chosen.append(number)
    return tuple(chosen), ""


def _fault(name: str, problem: str, remedy: str) -> Finding:
    return Finding(
        check="npu_burn_setting", status=CheckStatus.FAIL, message=f"{_PREFIX}{name}: {problem}", fix=f"set it to {remedy}"
    )
