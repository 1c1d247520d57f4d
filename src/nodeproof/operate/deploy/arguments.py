"""A service as the words of ``create``, which Docker and Podman take alike; and labels by which it is known again."""

from collections.abc import Iterator, Mapping

import msgspec

from nodeproof.operate.deploy.engine import Container
from nodeproof.operate.deploy.manifest import sha256
from nodeproof.operate.deploy.services import Service, Volume

__all__ = ["PROJECT", "SERVICE", "SPEC", "container_name", "create_arguments", "is_ours", "spec_digest"]

PROJECT = "io.nodeproof.project"
SERVICE = "io.nodeproof.service"
SPEC = "io.nodeproof.spec-sha256"


def container_name(project: str, service: Service) -> str:
    """As compose has it, too."""
    return f"{project}-{service.name}"


def spec_digest(service: Service, image_id: str, files: Mapping[str, str]) -> str:
    """Of all that decides what a container is: another one means that it must be made anew.

    ``files``: digests of files by their paths; those that it sees count, for a container goes on with the file that it was given.
    """
    plain = msgspec.structs.replace(service, why="")
    seen = sorted((volume.target, files[volume.source]) for volume in service.volumes if volume.source in files)
    return sha256(msgspec.json.encode([plain, image_id, seen]))


def is_ours(container: Container, project: str, service: str) -> bool:
    """Whether ``deploy up`` made it."""
    return container.labels.get(PROJECT) == project and container.labels.get(SERVICE) == service


def create_arguments(project: str, service: Service, image_id: str, digest: str, name: str) -> list[str]:
    """Everything behind the client's own words. The image is named by its id: it is the one that was checked."""
    return [*_words(project, service, digest, name), image_id, *service.command]


def _words(project: str, service: Service, digest: str, name: str) -> Iterator[str]:
    yield from ("create", "--pull", "never", "--name", name)
    for key, value in ((PROJECT, project), (SERVICE, service.name), (SPEC, digest)):
        yield from ("--label", f"{key}={value}")
    yield from ("--network", service.network or "none")
    for flag, word in (
        ("--user", service.user),
        ("--pid", service.pid),
        ("--shm-size", service.shm),
        ("--memory", service.memory),
        ("--restart", service.restart),
        ("--pids-limit", str(service.pids) if service.pids else ""),
    ):
        yield from (flag, word) if word else ()
    yield from ("--read-only",) if service.read_only else ()
    for flag, words in (
        ("--cap-drop", service.cap_drop),
        ("--cap-add", service.cap_add),
        ("--security-opt", service.security),
        ("--group-add", service.groups),
        ("--tmpfs", service.scratch),
        ("--device", tuple(f"{path}:{path}" for path in service.devices)),
        ("--mount", tuple(map(_mount, service.volumes))),
        ("--ulimit", tuple(f"{name}={count}:{count}" for name, count in service.limits)),
        ("--env", tuple(f"{name}={value}" for name, value in service.environment)),
    ):
        for word in words:
            yield from (flag, word)
    if service.health is not None:
        health = service.health
        yield from ("--health-cmd", health.command, "--health-interval", f"{health.interval_s}s")
        yield from ("--health-timeout", f"{health.timeout_s}s", "--health-retries", str(health.retries))
        yield from ("--health-start-period", f"{health.start_s}s")


def _mount(volume: Volume) -> str:
    words = ["type=bind", f"source={volume.source}", f"target={volume.target}"]
    words += ["readonly"] if volume.read_only else []
    words += [f"bind-propagation={volume.propagation}"] if volume.propagation else []
    return ",".join(words)
