"""``deploy npu-container``: the administrator's fixed container for NPU Burn, made once and never removed (stress.md 8.2).

All accelerators are given to it under their own names, so another ``NPU_BURN_DEVICE`` needs no other container. Nothing of the
image's environment is copied: CANN's paths are the image's affair. It idles; jobs come in by ``exec``.
"""

import os
from collections.abc import Iterator

import msgspec

from nodeproof.operate.deploy.engine import Container, Engine
from nodeproof.operate.deploy.inputs import CONTAINER_NAME, check_image, check_path
from nodeproof.operate.deploy.manifest import sha256
from nodeproof.operate.deploy.npu_host import NpuHost
from nodeproof.operate.deploy.problems import DeployError

__all__ = ["IDLE", "PROFILE", "NpuContainer", "ensure"]

PROFILE = "io.nodeproof.npu-profile-sha256"
_RESULTS = "/root/.ascend_npu_burn/output"
"""Where upstream leaves its results, and only there: its own option for another place refuses a directory that exists."""
IDLE = ("-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")
"""What the shell of the container does: wait, end when told to, and bury what ended programs leave behind."""
_RESTART = ("no", "always", "on-failure", "unless-stopped")
_NETWORKS = ("none", "host")


class NpuContainer(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    image: str
    name: str
    output_dir: str
    host: NpuHost
    runtime: str = ""
    """Of the engine, such as ``ascend`` or ``runc``; empty = the engine's default."""
    restart: str = "unless-stopped"
    network: str = "none"


def ensure(wanted: NpuContainer, engine: Engine, *, only_plan: bool = False) -> str:
    """See that the container runs; what was done, in words. Raises DeployError for one of that name that is another."""
    faults = list(_faults(wanted, engine))
    if faults:
        raise DeployError(faults[0])
    image = engine.image(wanted.image)
    if image is None:
        raise DeployError(f"--image {wanted.image}: there is no such image here; build it with nodeproof assets image npu-burn")
    words = _words(wanted)
    digest = sha256(msgspec.json.encode([words, image.id]))
    there = engine.container(wanted.name)
    if there is None:
        if only_plan:
            return f"{wanted.name} would be made with {wanted.host.accelerators} accelerators"
        engine.run("create", "--label", f"{PROFILE}={digest}", *words)
        made = engine.container(wanted.name)
        if made is None or made.image_id != image.id:
            raise DeployError(
                f"{wanted.name} was made of another image than {wanted.image} was a moment ago; look at it, and remove it"
            )
        engine.run("start", wanted.name)
        return f"{wanted.name} was made with {wanted.host.accelerators} accelerators, and runs"
    _check_same(wanted, there, image.id, digest)
    if there.running:
        return f"{wanted.name} runs as it should"
    if only_plan:
        return f"{wanted.name} would be started"
    engine.run("start", wanted.name)
    return f"{wanted.name} was {there.state}, and runs again"


def _check_same(wanted: NpuContainer, there: Container, image_id: str, digest: str) -> None:
    by_hand = "nodeproof removes no container: when it may go, remove it by hand, or give another --name"
    if PROFILE not in there.labels:
        raise DeployError(f"container {wanted.name} was not made by nodeproof; {by_hand}")
    if there.image_id != image_id:
        raise DeployError(
            f"container {wanted.name} is of image {there.image_id[:12]}, not {image_id[:12]} ({wanted.image}); {by_hand}"
        )
    if there.labels[PROFILE] != digest:
        raise DeployError(
            f"container {wanted.name} was made with other devices, paths or options than are asked for or found now; {by_hand}"
        )


def _words(wanted: NpuContainer) -> list[str]:
    """Words of ``create``. The image is named, not numbered: by that name the adapter sees that it is the one that is meant."""
    words = ["--pull", "never", "--name", wanted.name, "--privileged", "--network", wanted.network]
    words += ["--security-opt", "label=disable", "--shm-size", "64m", "--workdir", "/workspace"]
    words += ["--restart", wanted.restart, "--pids-limit", "4096"]
    words += ["--runtime", wanted.runtime] if wanted.runtime else []
    for device in wanted.host.devices:
        words += ["--device", f"{device}:{device}"]
    for path in wanted.host.files:
        words += ["--mount", f"type=bind,source={path},target={path},readonly"]
    words += ["--mount", f"type=bind,source={wanted.output_dir},target={_RESULTS}"]
    return [*words, "--entrypoint", "/bin/sh", wanted.image, *IDLE]


def _faults(wanted: NpuContainer, engine: Engine) -> Iterator[str]:
    if not CONTAINER_NAME.fullmatch(wanted.name):
        yield f"--name {wanted.name[:80]!r}: expected letters, digits, _, . and -, beginning with a letter or digit"
    yield from check_image("--image", wanted.image)
    yield from check_path("--output-dir", wanted.output_dir)
    if wanted.restart not in _RESTART:
        yield f"--restart-policy {wanted.restart[:40]!r}: expected one of {', '.join(_RESTART)}"
    if wanted.network not in _NETWORKS:
        yield f"--network {wanted.network[:40]!r}: expected none or host"
    if wanted.runtime and not CONTAINER_NAME.fullmatch(wanted.runtime):
        yield f"--runtime {wanted.runtime[:40]!r}: expected the name of one of the engine's runtimes"
    if wanted.runtime and os.path.basename(engine.client).startswith("podman"):
        yield f"--runtime: podman takes it before its command: give --engine-option=--runtime={wanted.runtime} in its place"
