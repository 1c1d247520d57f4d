"""What holds for stress jobs here: the ``stress`` section of the configuration, or what holds without one.

Without the section the built-in workloads are on, the default list is ``stream``, and everything lies in the state directory.
With one, the reference's defaults hold: everything is off that is not switched on (stress.md 1.1).
"""

import os
from collections.abc import Mapping

import msgspec

from nodeproof.config.resolve import state_directory
from nodeproof.config.schema import Config
from nodeproof.model.job import OWN_BENCHMARKS, REFERENCE_BENCHMARKS

__all__ = ["BENCHMARKS", "BUILT_IN", "DEFAULT_TIMEOUT_S", "ItemSettings", "NativePrograms", "StressSettings", "native_programs"]

BENCHMARKS = (*REFERENCE_BENCHMARKS, *OWN_BENCHMARKS)
"""Every name that a job may hold."""
BUILT_IN = ("stream", "hpl", "hpcg", "cpu_sdc", "memory_pattern")
"""Those for which a workload is built in."""
DEFAULT_TIMEOUT_S = 3600.0


class NativePrograms(msgspec.Struct, frozen=True, kw_only=True):
    """Programs of the administrator's for the native adapter; the variables of the reference's dispatcher (stress.md 1.3).

    Empty = looked for on the search path; 0 = chosen for this box.
    """

    executable: str = ""
    workdir: str = ""
    launcher: str = ""
    numactl: str = ""
    library_dir: str = ""
    processes: int = 0
    threads: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    runtime_s: int = 0


class ItemSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark."""

    enabled: bool
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Limit of a run."""
    result_dir: str = ""
    adapter: str = "builtin"
    """``builtin``, ``native`` or ``script``."""
    native: NativePrograms = NativePrograms()


class StressSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the manager is told. Immutable: nobody changes it behind its back."""

    enabled: bool
    web_enabled: bool
    script_path: str = ""
    report_path: str = ""
    """Empty = no report, no history, and no lock beside it."""
    state_root: str
    """Run store, working directories, baselines and the lock of the whole machine."""
    default_benchmarks: tuple[str, ...]
    benchmarks: dict[str, ItemSettings]
    configured: bool = True
    """False when there is no ``stress`` section."""

    @classmethod
    def of(cls, config: Config, environ: Mapping[str, str]) -> "StressSettings":
        """From the configuration in force. Raises ConfigError for a state directory that is no absolute path."""
        state_root = os.path.join(state_directory(environ), "stress")
        section = config.stress
        if section is None:
            return cls(
                enabled=True,
                web_enabled=True,
                report_path=os.path.join(state_root, "stress-latest.json"),
                state_root=state_root,
                default_benchmarks=("stream",),
                benchmarks={name: ItemSettings(enabled=True, native=native_programs(name, environ)) for name in BUILT_IN},
                configured=False,
            )
        return cls(
            enabled=section.enabled,
            web_enabled=section.web_enabled,
            script_path=section.script_path,
            report_path=section.report_path,
            state_root=state_root,
            default_benchmarks=section.default_benchmarks,
            benchmarks={
                name: ItemSettings(
                    enabled=item.enabled,
                    timeout_s=item.timeout_s if item.timeout_s > 0 else DEFAULT_TIMEOUT_S,
                    result_dir=item.result_dir,
                    adapter="script" if section.script_path else item.adapter,
                    native=native_programs(name, environ),
                )
                for name, item in section.benchmarks.items()
            },
        )


def native_programs(name: str, environ: Mapping[str, str]) -> NativePrograms:
    """Native settings of benchmark ``name`` out of the variables that the reference's dispatcher has (stress.md 1.3)."""
    prefix = name.upper()

    def text(suffix: str) -> str:
        return environ.get(f"{prefix}_{suffix}", "").strip()

    def count(suffix: str) -> int:
        value = text(suffix)
        return int(value) if value.isascii() and value.isdigit() else 0

    return NativePrograms(
        executable=text("EXECUTABLE"),
        workdir=text("WORKDIR"),
        launcher=text("MPI_LAUNCHER"),
        numactl=text("NUMACTL"),
        library_dir=text("LIBRARY_DIR"),
        processes=count("MPI_PROCESSES"),
        threads=count("THREADS") or count("THREADS_PER_PROCESS"),
        grid=(count("NX"), count("NY"), count("NZ")),
        runtime_s=count("RUNTIME_SECONDS"),
    )
