"""Containers of a deployment: which there are, what each may do, and why it may do that much.

::

    monitoring    daemon, web
    cpu-stress    and runner: CPU items, owner of their jobs
    ascend-a2/a3  and stress-owner, the one container with the engine's socket: it owns all jobs, runs NPU Burn in the
                  administrator's fixed container, and has the runner, where there is one, run the CPU items

Users are numbers that need no account on the host. Nobody but the daemon sees the host's files, nobody but the runner computes,
and the page has neither the engine's socket nor more than a client's rights at the socket of whoever owns jobs.
"""

from collections.abc import Sequence

import msgspec

from nodeproof.operate.deploy.adapter import RUNNER_SOCKET
from nodeproof.operate.deploy.inputs import Inputs
from nodeproof.operate.deploy.npu_host import NpuHost

__all__ = [
    "DAEMON_UID",
    "OWNER_SOCKET",
    "RUNNER_GID",
    "WEB_UID",
    "Health",
    "Service",
    "Volume",
    "ascend_daemon",
    "base",
    "override",
]

DAEMON_UID = 65530
WEB_UID = 65531
RUNNER_GID = 65532
OWNER_SOCKET = "/run/nodeproof-owner/runner.sock"
_CONFIG = "/etc/nodeproof/nodeproof.yaml"
_PROGRAM = "/opt/nodeproof/bin/nodeproof"
_SCRATCH = "/tmp:size=64m,mode=1777,noexec,nosuid,nodev"  # noqa: S108 - a place in memory, inside
_CONTROL_PIDS = 128
_CONTROL_ENVIRONMENT = (
    ("HOME", "/var/lib/nodeproof"),
    ("NODEPROOF_DATA_DIR", "/var/lib/nodeproof"),
    ("NODEPROOF_RUNNER_SOCKET", "none"),
)
_RUNNER_PIDS = 4096


class Volume(msgspec.Struct, frozen=True):
    """A part of the host that a container sees."""

    source: str
    target: str
    read_only: bool = True
    propagation: str = ""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine tells that a container is well: exit status 0 of a command of a shell."""

    command: str
    interval_s: int = 30
    timeout_s: int = 10
    retries: int = 3
    start_s: int = 20


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """One container. What is not named here it does not have."""

    name: str
    why: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    user: str = ""
    network: str = ""
    """``host`` or ``none``."""
    pid: str = ""
    cap_drop: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    security: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    read_only: bool = False
    scratch: tuple[str, ...] = ()
    """Places in memory, each with its options."""
    shm: str = ""
    pids: int = 0
    memory: str = ""
    limits: tuple[tuple[str, int], ...] = ()
    devices: tuple[str, ...] = ()
    volumes: tuple[Volume, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    health: Health | None = None
    restart: str = ""


def base(inputs: Inputs, directory: str) -> tuple[Service, ...]:
    """Daemon and page. ``directory``: where the generated files lie on the host."""
    snapshot = f"{inputs.run_dir}/snapshot"
    config = Volume(f"{directory}/nodeproof.yaml", _CONFIG)
    daemon = _control(
        inputs,
        name="daemon",
        why="Observes the host: sees its processes, network and files, writes none of them, and has no capability.",
        command=("daemon", "--config", _CONFIG, "--root", "/host"),
        user=f"{DAEMON_UID}:{DAEMON_UID}",
        network="host",
        pid="host",
        memory="256m",
        volumes=(
            config,
            Volume("/", "/host", propagation="rslave"),
            Volume(f"{inputs.state_dir}/daemon", "/var/lib/nodeproof", read_only=False),
            Volume(snapshot, "/run/nodeproof/snapshot", read_only=False),
        ),
        environment=_CONTROL_ENVIRONMENT,
        health=Health(command=f"{_PROGRAM} check --config {_CONFIG} >/dev/null; test $? -ne 3"),
    )
    web = _control(
        inputs,
        name="web",
        why="The page, from the daemon's snapshot files alone, on this host's loopback.",
        command=("web", "--config", _CONFIG),
        user=f"{WEB_UID}:{DAEMON_UID}",
        network="host",
        memory="256m",
        volumes=(
            config,
            Volume(f"{inputs.state_dir}/web", "/var/lib/nodeproof", read_only=False),
            Volume(snapshot, "/run/nodeproof/snapshot"),
        ),
        environment=_CONTROL_ENVIRONMENT,
    )
    return (daemon, web)


def override(inputs: Inputs, directory: str, items: Sequence[str]) -> tuple[Service, ...]:
    """What stress items add; an entry of ``base`` that stands here again is completed by it."""
    with_npu = "npu_burn" in items
    cpu = [name for name in items if name != "npu_burn"]
    services = [_runner(inputs, directory)] if cpu else []
    if with_npu:
        services.append(_owner(inputs, directory, bool(cpu)))
    owner, folder, socket = (
        ("owner", "nodeproof-owner", OWNER_SOCKET) if with_npu else ("runner", "nodeproof-runner", RUNNER_SOCKET)
    )
    services.append(
        Service(
            name="web",
            why="May ask the owner of stress jobs at its socket, and read the records that it keeps.",
            groups=(str(RUNNER_GID),),
            volumes=(
                Volume(f"{inputs.run_dir}/{owner}", f"/run/{folder}"),
                Volume(f"{inputs.state_dir}/{owner}", f"/var/lib/{folder}"),
            ),
            environment=(("NODEPROOF_RUNNER_SOCKET", socket),),
        )
    )
    return tuple(services)


def ascend_daemon(host: NpuHost) -> Service:
    """What the daemon needs to ask the Ascend driver."""
    return Service(
        name="daemon",
        why="Asks the Ascend driver: its device nodes, and its own libraries and tool, read-only.",
        groups=tuple(map(str, host.groups)),
        devices=host.devices,
        volumes=tuple(Volume(path, path) for path in host.files),
    )


def _control(inputs: Inputs, **more: object) -> Service:
    plain: dict[str, object] = {
        "image": inputs.images.control,
        "cap_drop": ("ALL",),
        "security": ("no-new-privileges",),
        "read_only": True,
        "scratch": (_SCRATCH,),
        "pids": _CONTROL_PIDS,
        "limits": (("nofile", 4096), ("nproc", 4096)),
        "restart": "unless-stopped",
    }
    return Service(**{**plain, **more})  # type: ignore[arg-type]  # the keys are the fields


def _runner(inputs: Inputs, directory: str) -> Service:
    folder = "/var/lib/nodeproof-runner"
    operators = f"{WEB_UID},0"
    return _control(
        inputs,
        name="runner",
        why="Computes: programs of its own image, as a user without rights, without network and without a writable root.",
        image=inputs.images.runner,
        command=("runner", "serve", "--config", _CONFIG, "--socket", RUNNER_SOCKET, "--operators", operators),
        user=f"{RUNNER_GID}:{RUNNER_GID}",
        network="none",
        # Engines let numactl set a memory policy only where this capability is; Docker's user does not get it, Podman's does.
        cap_add=("SYS_NICE",) if inputs.cpu.numactl else (),
        shm="2g",
        pids=_RUNNER_PIDS,
        limits=(("nofile", 16384), ("nproc", _RUNNER_PIDS)),
        volumes=(
            Volume(f"{directory}/nodeproof-runner.yaml", _CONFIG),
            Volume(f"{inputs.run_dir}/runner", "/run/nodeproof-runner", read_only=False),
            Volume(f"{inputs.state_dir}/runner", folder, read_only=False),
        ),
        environment=(
            ("CPU_EXECUTION_PROFILE", "container_runner"),
            ("HOME", folder),
            ("NODEPROOF_DATA_DIR", folder),
        ),
        health=Health(command=f"{_PROGRAM} runner health --socket {RUNNER_SOCKET}"),
    )


def _owner(inputs: Inputs, directory: str, with_cpu: bool) -> Service:  # noqa: FBT001 - a part of what is owned
    folder = "/var/lib/nodeproof-owner"
    npu = inputs.npu
    runner = (
        (
            Volume(f"{inputs.run_dir}/runner", "/run/nodeproof-runner"),
            Volume(f"{inputs.state_dir}/runner", "/var/lib/nodeproof-runner"),
        )
        if with_cpu
        else ()
    )
    return _control(
        inputs,
        name="stress-owner",
        why=(
            "Owns stress jobs, and starts NPU Burn in its fixed container: the one that has the engine's socket, which is as"
            " much as root on this host. No network, and it takes names from a fixed list only."
        ),
        command=("runner", "serve", "--config", _CONFIG, "--socket", OWNER_SOCKET, "--operators", str(WEB_UID)),
        user=f"0:{RUNNER_GID}",
        network="none",
        pids=_RUNNER_PIDS // 8,
        volumes=(
            Volume(f"{directory}/nodeproof-owner.yaml", _CONFIG),
            Volume(f"{directory}/benchmark_check.sh", f"{inputs.plugin_root}/benchmark_check.sh"),
            Volume(inputs.engine_socket, inputs.engine_socket),
            Volume(npu.output_dir, npu.output_dir),
            Volume(f"{inputs.run_dir}/owner", "/run/nodeproof-owner", read_only=False),
            Volume(f"{inputs.state_dir}/owner", folder, read_only=False),
            *runner,
        ),
        environment=(
            ("DOCKER_HOST", f"unix://{inputs.engine_socket}"),
            ("HOME", folder),
            ("NODEPROOF_DATA_DIR", folder),
        ),
        health=Health(command=f"{_PROGRAM} runner health --socket {OWNER_SOCKET}"),
    )
