"""What holds for stress jobs here: the ``stress`` section of the configuration, or what holds without one.

Without the section the built-in workloads are on, the default list is ``stream``, and everything lies in the state directory.
With one, the reference's defaults hold: everything is off that is not switched on (stress.md 1.1).
"""

import os
from collections.abc import Mapping

import msgspec

from nodeproof.config.places import state_directory
from nodeproof.config.schema import Config, NativeConfig
from nodeproof.model.job import OWN_BENCHMARKS, REFERENCE_BENCHMARKS

__all__ = ["BENCHMARKS", "BUILT_IN", "DEFAULT_TIMEOUT_S", "ItemSettings", "NativePrograms", "StressSettings", "native_programs"]

BENCHMARKS = (*REFERENCE_BENCHMARKS, *OWN_BENCHMARKS)
"""Every name that a job may hold."""
BUILT_IN = ("stream", "hpl", "hpcg", "cpu_sdc", "memory_pattern", "gpu_burn")
"""Those for which a workload is built in."""
DEFAULT_TIMEOUT_S = 3600.0


class NativePrograms(msgspec.Struct, frozen=True, kw_only=True):
    """Programs of the administrator's for the native adapter.

    Empty = looked for on the search path; 0 = chosen for this box.
    """

    executable: str = ""
    workdir: str = ""
    launcher: str = ""
    launcher_arguments: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
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
    """Working directories, records of trees and baselines."""
    node_root: str = ""
    """State directory of the whole node, for what is not of stress jobs alone; empty = the same."""
    default_benchmarks: tuple[str, ...]
    benchmarks: dict[str, ItemSettings]
    configured: bool = True
    """False when there is no ``stress`` section."""

    @property
    def home(self) -> str:
        """Run store, artifacts, key of the node, and the lock of the whole machine: shared with benchmark runs."""
        return self.node_root or self.state_root

    @classmethod
    def of(cls, config: Config, environ: Mapping[str, str]) -> "StressSettings":
        """From the configuration in force. Raises ConfigError for a state directory that is no absolute path."""
        node_root = state_directory(environ)
        state_root = os.path.join(node_root, "stress")
        section = config.stress
        if section is None:
            return cls(
                enabled=True,
                web_enabled=True,
                report_path=os.path.join(state_root, "stress-latest.json"),
                state_root=state_root,
                node_root=node_root,
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
            node_root=node_root,
            default_benchmarks=section.default_benchmarks,
            benchmarks={
                name: ItemSettings(
                    enabled=item.enabled,
                    timeout_s=item.timeout_s if item.timeout_s > 0 else DEFAULT_TIMEOUT_S,
                    result_dir=item.result_dir,
                    adapter="script" if section.script_path else item.adapter,
                    native=native_programs(name, environ, item.native),
                )
                for name, item in section.benchmarks.items()
            },
        )


def native_programs(name: str, environ: Mapping[str, str], told: NativeConfig | None = None) -> NativePrograms:
    """Programs of benchmark ``name``: as configured, else from the variables of the reference's dispatcher (stress.md 1.3)."""
    config = told or NativeConfig()
    prefix = name.upper()

    def text(suffix: str) -> str:
        return environ.get(f"{prefix}_{suffix}", "").strip()

    def count(suffix: str) -> int:
        value = text(suffix)
        return int(value) if value.isascii() and value.isdigit() else 0

    return NativePrograms(
        executable=config.executable or text("EXECUTABLE"),
        workdir=config.workdir or text("WORKDIR"),
        launcher=config.launcher or text("MPI_LAUNCHER"),
        launcher_arguments=config.launcher_arguments,
        arguments=config.arguments,
        numactl=config.numactl or text("NUMACTL"),
        library_dir=config.library_dir or text("LIBRARY_DIR"),
        processes=config.processes or count("MPI_PROCESSES"),
        threads=config.threads or count("THREADS") or count("THREADS_PER_PROCESS"),
        grid=(*config.grid,) if len(config.grid) == 3 else (count("NX"), count("NY"), count("NZ")),
        runtime_s=round(config.runtime_s) or count("RUNTIME_SECONDS"),
    )
