"""``nodeproof deploy generate``: all files of a deployment, or none."""

import argparse
import os

from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.clock import SystemClock
from nodeproof.host.commands import HostCommands
from nodeproof.operate.deploy.generate import generate
from nodeproof.operate.deploy.inputs import CpuInputs, Images, Inputs, NpuInputs

__all__ = ["inputs_of", "run"]


def run(options: argparse.Namespace) -> int:
    """Write it, and say what was written."""
    commands = HostCommands()
    try:
        made = generate(inputs_of(options), commands, SystemClock(), len(os.sched_getaffinity(0)), options.environ)
    finally:
        commands.close()
    if options.output == "json":
        print_json(made.manifest, indent=2)
        return 0
    rows = [(os.path.join(made.directory, name), digest[:16]) for name, digest in made.manifest.files.items()]
    print_table(("file", "sha256"), rows)
    items = ", ".join(made.manifest.items) or "none"
    print(printable_lines(f"for: {made.manifest.profile}; stress items: {items}"))
    print(printable_lines(f"next: {_next(made.manifest.profile, made.directory, options.npu_chip_generation)}"))
    return 0


def inputs_of(options: argparse.Namespace) -> Inputs:
    """What was said on the command line."""
    return Inputs(
        output_dir=options.output_dir,
        backend=options.cpu_backend,
        program=options.program,
        plugin_root=options.plugin_root,
        state_dir=options.state_dir,
        run_dir=options.run_dir,
        report_path=options.report_path,
        engine_socket=options.engine_socket,
        web_address=options.web_address,
        exporter_address=options.exporter_address,
        enable_web=options.enable_web,
        images=Images(
            control=options.control_image, runner=options.cpu_runner_image, runner_manifest=options.cpu_runner_manifest
        ),
        cpu=_cpu(options),
        npu=_npu(options),
        npu_host_root=options.npu_host_root,
        npu_device_root=options.npu_device_root,
        force=options.force,
    )


def _cpu(options: argparse.Namespace) -> CpuInputs:
    return CpuInputs(
        manifest=options.cpu_manifest,
        mpi_launcher=options.mpi_launcher,
        numactl=options.numactl,
        stream_threads=options.stream_threads,
        hpl_processes=options.hpl_processes,
        hpl_threads=options.hpl_threads,
        hpl_library_dir=options.hpl_library_dir,
        hpcg_processes=options.hpcg_processes,
        hpcg_threads=options.hpcg_threads,
        hpcg_nx=options.hpcg_nx,
        hpcg_ny=options.hpcg_ny,
        hpcg_nz=options.hpcg_nz,
        hpcg_runtime_s=options.hpcg_runtime,
    )


def _npu(options: argparse.Namespace) -> NpuInputs:
    return NpuInputs(
        manifest=options.npu_manifest,
        runtime=options.npu_runtime,
        container=options.npu_container,
        image=options.npu_image,
        device=options.npu_device,
        run_case=options.npu_run_case,
        group=options.npu_group,
        generation=options.npu_chip_generation,
        cann=options.npu_cann,
        torch_npu=options.npu_torch_npu,
        soc=options.npu_soc,
        executable=options.npu_executable,
        output_dir=options.npu_output_dir,
        internal_timeout_s=options.npu_internal_timeout,
    )


def _next(profile: str, directory: str, generation: str) -> str:
    where = f"--deployment {directory}"
    if profile == "host":
        return f"nodeproof deploy install {where} && nodeproof stress doctor --config {directory}/nodeproof.yaml"
    chosen = f"ascend-{generation.lower()}" if profile == "ascend" else profile
    return f"nodeproof deploy plan {where} --profile {chosen}"
