"""``nodeproof deploy npu-container``: see that the fixed container of NPU Burn runs."""

import argparse

from nodeproof.cli.table import printable_lines
from nodeproof.host.atomic import make_directory
from nodeproof.host.commands import HostCommands
from nodeproof.operate.deploy.engine import Engine
from nodeproof.operate.deploy.npu_container import NpuContainer, ensure
from nodeproof.operate.deploy.npu_host import discover

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Make or start it, or say what would be done."""
    wanted = NpuContainer(
        image=options.image,
        name=options.name,
        output_dir=options.output_dir,
        host=discover(options.npu_host_root, options.npu_device_root),
        runtime=options.runtime,
        restart=options.restart_policy,
        network=options.network,
    )
    commands = HostCommands()
    try:
        engine = Engine(commands, options.engine, options.engine_option)
        if not options.plan:
            make_directory(options.output_dir)
        print(printable_lines(ensure(wanted, engine, only_plan=options.plan)))
    finally:
        commands.close()
    return 0
