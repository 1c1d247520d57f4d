"""Configuration files of a deployment, in the format of every nodeproof (docs/config.md)."""

import io
from collections.abc import Sequence

import yaml

from nodeproof.operate.deploy.chosen import ChosenSizes
from nodeproof.operate.deploy.inputs import CPU_ITEMS, Inputs

__all__ = ["RUNNER_HPCG", "TIMEOUTS", "control_config", "host_config", "owner_config", "runner_config"]

TIMEOUTS = {"stream": "1m", "hpl": "2h", "hpcg": "10m", "npu_burn": "30m"}
"""Limits of items; one that is cut off has proved nothing, so they are generous."""
_SNAPSHOT = "/run/nodeproof/snapshot"
_CONTROL_STATE = "/var/lib/nodeproof"
_IMAGE_RUNTIME = "/opt/nodeproof-stress/runtime"
_HPCG_SLACK_S = 600
RUNNER_HPCG = "/var/lib/nodeproof-runner/work/hpcg"
"""Where HPCG runs when somebody outside the runner must find its result file."""


def control_config(inputs: Inputs) -> str:
    """Of daemon and page in containers. Stress jobs are not theirs: a page asks whoever owns them."""
    return _text(
        "Daemon and page of this node, in containers. Made by nodeproof deploy generate.",
        {
            "storage": {"data_dir": f"{_CONTROL_STATE}/data"},
            "snapshot": {"dir": _SNAPSHOT},
            "exporter": {"address": inputs.exporter_address},
            "web": {"address": inputs.web_address},
            "stress": {"enabled": False},
        },
    )


def runner_config(inputs: Inputs, items: Sequence[str], sizes: ChosenSizes, *, with_hpl_dat: bool) -> str:
    """Of the CPU runner: programs of its image, run without an adapter between.

    Without an ``HPL.dat`` in the image, one for this box is made for each run.
    """
    cpu = inputs.cpu
    native: dict[str, dict[str, object]] = {
        "stream": {
            "executable": f"{_IMAGE_RUNTIME}/stream/stream_omp",
            **({"numactl": cpu.numactl} if cpu.numactl else {}),
            "threads": cpu.stream_threads,
        },
        "hpl": {
            "executable": f"{_IMAGE_RUNTIME}/hpl/xhpl",
            # HPL.dat of the image: no copy of it lives on in a volume when the image changes.
            **({"workdir": f"{_IMAGE_RUNTIME}/hpl"} if with_hpl_dat else {}),
            "launcher": cpu.mpi_launcher,
            "processes": sizes.hpl_processes,
            "threads": sizes.hpl_threads,
            **({"library_dir": cpu.hpl_library_dir} if cpu.hpl_library_dir else {}),
        },
        "hpcg": {
            "executable": f"{_IMAGE_RUNTIME}/hpcg/xhpcg",
            **({"workdir": RUNNER_HPCG} if inputs.npu.is_given else {}),
            "launcher": cpu.mpi_launcher,
            "processes": sizes.hpcg_processes,
            "threads": sizes.hpcg_threads,
            "grid": [cpu.hpcg_nx, cpu.hpcg_ny, cpu.hpcg_nz],
            "runtime": f"{cpu.hpcg_runtime_s}s",
        },
    }
    benchmarks = {
        name: {"enabled": True, "timeout": _timeout(inputs, name), "adapter": "native", "native": native[name]} for name in items
    }
    return _text(
        "CPU items of this node, in the runner's container. Made by nodeproof deploy generate.",
        {"stress": _stress(inputs, items, benchmarks, {"report_path": "/var/lib/nodeproof-runner/stress/stress-latest.json"})},
    )


def owner_config(inputs: Inputs, items: Sequence[str]) -> str:
    """Of the one that owns all stress jobs where NPU Burn is among them; it runs everything through the adapter."""
    where = {
        "script_path": f"{inputs.plugin_root}/benchmark_check.sh",
        "report_path": "/var/lib/nodeproof-owner/stress/stress-latest.json",
    }
    benchmarks: dict[str, dict[str, object]] = {
        name: {"enabled": True, "timeout": _timeout(inputs, name), **({"result_dir": RUNNER_HPCG} if name == "hpcg" else {})}
        for name in items
    }
    return _text(
        "Stress items of this node, all through the adapter. Made by nodeproof deploy generate.",
        {"stress": _stress(inputs, items, benchmarks, where)},
    )


def host_config(inputs: Inputs, items: Sequence[str], report_path: str, hpcg_workdir: str) -> str:
    """Of a nodeproof on the host: the one section that a configuration there takes over."""
    benchmarks: dict[str, dict[str, object]] = {}
    for name in items:
        benchmarks[name] = {"enabled": True, "timeout": _timeout(inputs, name)}
        if name == "hpcg":
            benchmarks[name]["result_dir"] = hpcg_workdir
    where = {"script_path": f"{inputs.plugin_root}/benchmark_check.sh", "report_path": report_path}
    return _text(
        "Stress items of this node, on the host. Made by nodeproof deploy generate: take the section over into\n"
        "# /etc/nodeproof/nodeproof.yaml, or name this file with --config.",
        {"stress": _stress(inputs, items, benchmarks, where)},
    )


def _stress(
    inputs: Inputs, items: Sequence[str], benchmarks: dict[str, dict[str, object]], where: dict[str, str]
) -> dict[str, object]:
    return {
        "enabled": True,
        "web_enabled": inputs.enable_web,
        **where,
        "default_benchmarks": [next((name for name in (*CPU_ITEMS, *items) if name in items), "stream")],
        "benchmarks": benchmarks,
    }


def _timeout(inputs: Inputs, name: str) -> str:
    """A little more than the item itself is told to take."""
    if name == "hpcg" and inputs.cpu.hpcg_runtime_s > _HPCG_SLACK_S // 2:
        return f"{2 * inputs.cpu.hpcg_runtime_s + _HPCG_SLACK_S}s"
    if name == "npu_burn" and inputs.npu.internal_timeout_s >= 1800:
        return f"{2 * inputs.npu.internal_timeout_s}s"
    return TIMEOUTS[name]


def _text(title: str, tree: dict[str, object]) -> str:
    out = io.StringIO()
    yaml.safe_dump(tree, out, sort_keys=False, default_flow_style=False, width=120)
    return f"# {title}\n{out.getvalue()}"
