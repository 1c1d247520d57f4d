"""``nodeproof assets image``: images for a deployment."""

import argparse

from nodeproof.cli.output import print_json
from nodeproof.cli.table import printable_lines
from nodeproof.clock import SystemClock
from nodeproof.errors import UsageError
from nodeproof.host.commands import HostCommands
from nodeproof.operate.deploy.engine import Engine, check_options
from nodeproof.operate.images.build import BuildOrder, Recipe, build
from nodeproof.operate.images.npu_burn import BurnOrder, npu_burn
from nodeproof.operate.images.recipes import RunnerSources, control, cpu_runner

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Build one, and say which it is."""
    check_options("--build-option", options.build_option)
    order, recipe = _wanted(options)
    commands = HostCommands()
    try:
        made = build(order, recipe, Engine(commands, options.engine, options.engine_option), SystemClock(), options.environ)
    finally:
        commands.close()
    if options.output == "json":
        print_json(made, indent=2)
    else:
        print(printable_lines(f"{made.image} is {made.image_id}"))
        print(printable_lines(f"manifest: {order.manifest}"))
    return 0


def _wanted(options: argparse.Namespace) -> tuple[BuildOrder, Recipe]:
    match options.kind:
        case "control":
            return _order(options, {"BASE": options.base_image}), control(options.wheels, options.engine_client)
        case "cpu-runner":
            return _order(options, {"BASE": options.base_image}), cpu_runner(options.wheels, _runner_sources(options))
        case _:
            return _order(options, _burn_bases(options)), npu_burn(_burn(options))


def _order(options: argparse.Namespace, bases: dict[str, str]) -> BuildOrder:
    return BuildOrder(
        image=options.image,
        bases=bases,
        build_root=options.build_root,
        manifest=options.manifest,
        network=options.build_network,
        build_options=tuple(options.build_option),
        force=options.force,
    )


def _runner_sources(options: argparse.Namespace) -> RunnerSources:
    return RunnerSources(
        sources={name: value for name in ("stream", "hpl", "hpcg") if (value := getattr(options, f"{name}_src"))},
        configs={name: value for name in ("hpl", "hpcg") if (value := getattr(options, f"{name}_dat"))},
        stream_array_size=options.stream_array_size,
        stream_ntimes=options.stream_ntimes,
        jobs=options.jobs,
    )


def _burn_bases(options: argparse.Namespace) -> dict[str, str]:
    """Raises UsageError unless there is one image, or one of each kind."""
    one, builder, runtime = options.base_image, options.builder_base_image, options.runtime_base_image
    if bool(one) == bool(builder or runtime) or bool(builder) != bool(runtime):
        raise UsageError("give --base-image, or both --builder-base-image and --runtime-base-image")
    return {"BUILDER": builder or one, "RUNTIME": runtime or one}


def _burn(options: argparse.Namespace) -> BurnOrder:
    return BurnOrder(
        source=options.source,
        metadata=options.source_metadata,
        profile=options.compat_profile,
        patch=options.patch,
        builder_env=options.builder_ascend_env_script or options.ascend_env_script,
        runtime_env=options.runtime_ascend_env_script or options.ascend_env_script,
        driver_lib_dir=options.build_driver_lib_dir,
        packages=tuple(options.pciutils_package),
    )
