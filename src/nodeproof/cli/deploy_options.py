"""Options of ``nodeproof deploy``, of each thing that it does, and of ``nodeproof dispatch``."""

import argparse
from collections.abc import Callable

from nodeproof.cli.operate_options import Output, add_output

__all__ = ["DEPLOY_ACTIONS", "Add", "Options", "add_deploy", "add_dispatch", "add_engine"]

Options = argparse.Namespace
Add = Callable[[argparse.ArgumentParser], None]
_DIRECTORY = "/etc/nodeproof/deployment"


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Which engine is asked, and how."""
    parser.add_argument(
        "--engine",
        "--docker-bin",
        default="",
        metavar="FILE",
        help="client of Docker or Podman (default: the one that is installed)",
    )
    parser.add_argument(
        "--engine-option",
        action="append",
        default=[],
        metavar="OPTION",
        help="a word of the client's own before its command, such as --runtime=runc; may be given again",
    )


def _generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output-dir", default=_DIRECTORY, metavar="DIR", help=f"a directory of its own (default: {_DIRECTORY})")
    parser.add_argument("--force", action="store_true", help="replace the deployment that is there")
    _places(parser.add_argument_group("places"))
    _cpu(parser.add_argument_group("CPU items"))
    _npu(parser.add_argument_group("NPU Burn; without NPUs leave all of these out"))
    add_output(parser)


def _places(group: Output) -> None:
    group.add_argument(
        "--program", default="/opt/nodeproof/bin/nodeproof", metavar="FILE", help="the nodeproof that the adapter calls"
    )
    group.add_argument("--control-image", default="", metavar="NAME", help="daemon and page run in containers of this image")
    group.add_argument("--plugin-root", default="/opt/nodeproof-stress", metavar="DIR", help="(default: /opt/nodeproof-stress)")
    group.add_argument("--state-dir", default="/var/lib/nodeproof", metavar="DIR", help="(default: /var/lib/nodeproof)")
    group.add_argument("--run-dir", default="/run/nodeproof-deploy", metavar="DIR", help="(default: /run/nodeproof-deploy)")
    group.add_argument(
        "--report-path", default="", metavar="FILE", help="newest report, on the host (default: below --state-dir)"
    )
    group.add_argument(
        "--engine-socket",
        "--docker-socket",
        default="/var/run/docker.sock",
        metavar="FILE",
        help="of the engine, for NPU Burn from a container (default: /var/run/docker.sock)",
    )
    group.add_argument(
        "--web-address", default="127.0.0.1:9527", metavar="HOST:PORT", help="on loopback (default: 127.0.0.1:9527)"
    )
    group.add_argument(
        "--exporter-address", default="127.0.0.1:19320", metavar="HOST:PORT", help="on loopback (default: 127.0.0.1:19320)"
    )
    group.add_argument("--enable-web", action="store_true", help="let the page start stress jobs")


def _cpu(group: Output) -> None:
    group.add_argument(
        "--cpu-backend",
        choices=("local", "unix"),
        default="local",
        help="on the host, or in the runner's container (default: local)",
    )
    group.add_argument("--cpu-manifest", default="", metavar="FILE", help="local: what nodeproof assets build wrote")
    group.add_argument("--cpu-runner-image", default="", metavar="NAME", help="unix: image of the runner")
    group.add_argument(
        "--cpu-runner-manifest", default="", metavar="FILE", help="unix: what nodeproof assets image cpu-runner wrote"
    )
    group.add_argument("--mpi-launcher", default="/usr/bin/mpirun", metavar="FILE", help="(default: /usr/bin/mpirun)")
    group.add_argument("--numactl", default="", metavar="FILE", help="interleave the memory of STREAM with it")
    group.add_argument("--stream-threads", type=int, default=0, metavar="N", help="(default: one a processor)")
    group.add_argument("--hpl-processes", type=int, metavar="N", help="(default: those of the first grid in HPL.dat)")
    group.add_argument("--hpl-threads", type=int, metavar="N", help="of each process (default: what fills the box)")
    group.add_argument("--hpl-library-dir", default="", metavar="DIR", help="goes before LD_LIBRARY_PATH")
    group.add_argument("--hpcg-processes", type=int, metavar="N", help="(default: one a processor)")
    group.add_argument("--hpcg-threads", type=int, metavar="N", help="of each process (default: what fills the box)")
    for axis in "xyz":
        group.add_argument(f"--hpcg-n{axis}", type=int, default=32, metavar="N", help="edge of the local grid (default: 32)")
    group.add_argument("--hpcg-runtime", type=int, default=60, metavar="N", help="seconds (default: 60; official runs take 1800)")


def _npu(group: Output) -> None:
    group.add_argument("--npu-manifest", default="", metavar="FILE", help="what nodeproof assets image npu-burn wrote")
    group.add_argument(
        "--npu-runtime",
        default="/usr/bin/docker",
        metavar="FILE",
        help="the engine's client, where the adapter runs (default: /usr/bin/docker)",
    )
    group.add_argument("--npu-container", default="", metavar="NAME", help="the fixed container")
    group.add_argument("--npu-image", default="", metavar="NAME", help="the image that it runs")
    group.add_argument("--npu-device", default="", metavar="IDS", help="all, or logical ids such as 0,1")
    group.add_argument("--npu-run-case", default="", metavar="NAME", help="verified: matmul on A2, quant_matmul on A3")
    group.add_argument("--npu-group", default="", metavar="NAME", help="a group in place of a case")
    group.add_argument("--npu-chip-generation", default="", metavar="GEN", help="A2, A3 or A5")
    group.add_argument("--npu-cann", default="", metavar="VERSION", help="of the image, for the record")
    group.add_argument("--npu-torch-npu", default="", metavar="VERSION", help="of the image, for the record")
    group.add_argument("--npu-soc", default="", metavar="NAME", help="kind of chip, for the record")
    group.add_argument(
        "--npu-executable",
        default="/usr/local/bin/catmonitor-npu-burn",
        metavar="FILE",
        help="the program in the container (default: /usr/local/bin/catmonitor-npu-burn)",
    )
    group.add_argument("--npu-output-dir", default="", metavar="DIR", help="results, on the host")
    group.add_argument("--npu-internal-timeout", type=int, default=300, metavar="N", help="seconds of a case (default: 300)")
    _npu_host(group)


def _npu_host(group: Output) -> None:
    group.add_argument("--npu-host-root", default="/", metavar="DIR", help="where the driver is looked for (default: /)")
    group.add_argument(
        "--npu-device-root", default="/dev", metavar="DIR", help="where device nodes are looked for (default: /dev)"
    )


def _deployment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deployment", default=_DIRECTORY, metavar="DIR", help=f"what deploy generate wrote (default: {_DIRECTORY})"
    )


def _install(parser: argparse.ArgumentParser) -> None:
    _deployment(parser)
    parser.add_argument("--runtime-source", default="", metavar="DIR", help="built assets to copy below the plugin's root")
    parser.add_argument("--into", default="", metavar="DIR", help="a staging directory in place of /")
    parser.add_argument("--force", action="store_true", help="replace files that are there and are others")
    parser.add_argument("--plan", action="store_true", help="say what would be changed, and change nothing")
    add_output(parser)


def _site(parser: argparse.ArgumentParser) -> None:
    _deployment(parser)
    parser.add_argument(
        "--profile",
        choices=("monitoring", "cpu-stress", "ascend-a2", "ascend-a3"),
        default="monitoring",
        help="which containers (default: monitoring)",
    )
    parser.add_argument("--project-name", default="", metavar="NAME", help="before each container's name (default: nodeproof)")
    add_engine(parser)
    add_output(parser)


def _up(parser: argparse.ArgumentParser) -> None:
    _site(parser)
    parser.add_argument(
        "--acknowledge-root-engine-socket",
        "--acknowledge-root-docker-socket",
        action="store_true",
        dest="acknowledged_socket",
        help="agree that one container gets the engine's socket, which is as much as root on this host",
    )
    parser.add_argument(
        "--runner-wait", type=int, default=60, metavar="N", help="seconds until it must answer, 1 to 600 (default: 60)"
    )
    parser.add_argument("--skip-doctor", action="store_true", help="do not look at the result")


def _npu_container(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--image", required=True, metavar="NAME", help="what nodeproof assets image npu-burn built")
    parser.add_argument("--name", default="nodeproof-npuburn", metavar="NAME", help="(default: nodeproof-npuburn)")
    parser.add_argument(
        "--output-dir",
        default="/var/lib/nodeproof/npu-burn-output",
        metavar="DIR",
        help="(default: /var/lib/nodeproof/npu-burn-output)",
    )
    parser.add_argument("--runtime", default="", metavar="NAME", help="of the engine, such as ascend (default: the engine's)")
    parser.add_argument(
        "--restart-policy", default="unless-stopped", metavar="NAME", help="no, always, on-failure, unless-stopped (the default)"
    )
    parser.add_argument("--network", default="none", metavar="NAME", help="none (the default) or host")
    parser.add_argument("--plan", action="store_true", help="say what would be done, and do nothing")
    _npu_host(parser)
    add_engine(parser)


DEPLOY_ACTIONS: dict[str, tuple[str, Add, str]] = {
    "generate": (
        "write adapter, configuration, compose files and manifest of this node; all of them or nothing",
        _generate,
        "nodeproof deploy generate --cpu-manifest /opt/nodeproof-stress/manifests/cpu-build-manifest.json",
    ),
    "install": (
        "make directories with their owners, and put the adapter in its place; starts nothing",
        _install,
        "nodeproof deploy install --plan",
    ),
    "plan": (
        "say what up would do, and what each container may do on this host",
        _site,
        "nodeproof deploy plan --profile cpu-stress",
    ),
    "up": ("start the containers of a profile, and look at the result", _up, "nodeproof deploy up --profile cpu-stress"),
    "status": (
        "how each container is; exit 1 unless all run as generated",
        _site,
        "nodeproof deploy status --profile cpu-stress",
    ),
    "doctor": (
        "whether the deployment runs and could compute, without load",
        _site,
        "nodeproof deploy doctor --profile cpu-stress",
    ),
    "down": (
        "stop and remove what up made; state, images and the NPU container stay",
        _site,
        "nodeproof deploy down --profile cpu-stress",
    ),
    "npu-container": (
        "see that the fixed container of NPU Burn runs; never removes one",
        _npu_container,
        "nodeproof deploy npu-container --image nodeproof/npu-burn:a2 --plan",
    ),
}
"""Help, options and an example of each."""


def add_deploy(
    parser: argparse.ArgumentParser,
    common: Callable[[argparse.ArgumentParser], None],
    run: Callable[[str], Callable[[Options], int]],
) -> None:
    """Put the actions below ``parser``; ``common`` adds what all commands have, ``run`` gives the function of an action."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, (text, add, example) in DEPLOY_ACTIONS.items():
        action = actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=f"Example: {example}", allow_abbrev=False
        )
        common(action)
        add(action)
        action.set_defaults(run=run(name.replace("-", "_")), command="deploy", action=name, parser=action)


def add_dispatch(parser: argparse.ArgumentParser) -> None:
    """``dispatch``."""
    parser.add_argument("action", choices=("describe", "run"), help="describe: tell what a run would be; run: run it")
    parser.add_argument("name", choices=("stream", "hpl", "hpcg", "npu_burn"), help="which item; its settings are variables")
