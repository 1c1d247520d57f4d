"""``deploy plan|up|status|down``: the containers of a deployment, on Docker or Podman.

What runs is what the generated files say. A container is known again by its labels: one that is as it should be is left alone,
one that is stopped is started, one of an older deployment is made anew, and one of somebody else's is never touched. The
administrator's NPU container is none of these.
"""

import os
import shlex
import time
from collections.abc import Callable, Sequence

import msgspec

from nodeproof.operate.deploy import compose
from nodeproof.operate.deploy.arguments import SPEC, container_name, create_arguments, is_ours, spec_digest
from nodeproof.operate.deploy.engine import Container, Engine
from nodeproof.operate.deploy.layout import make_folders
from nodeproof.operate.deploy.manifest import Deployment, changed_inputs
from nodeproof.operate.deploy.problems import DeployError
from nodeproof.operate.deploy.services import Service

__all__ = ["PROFILES", "PlanLine", "Site", "StatusLine", "down", "plan", "rights", "services_of", "status", "up"]

PROFILES = ("monitoring", "cpu-stress", "ascend-a2", "ascend-a3")
_ORDER = {"daemon": 0, "runner": 1, "stress-owner": 2, "web": 3}
"""In which they are started: whoever asks comes after whoever answers."""
_STOP_S = 30
_LOOK_S = 0.5
_NEXT = ".next"
"""Behind the name of a container that is to take another's place."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with which deployment."""

    deployment: Deployment
    profile: str
    project: str = ""
    """Before each container's name; empty = the manifest's."""
    acknowledged_socket: bool = False
    """Root-equivalent access to the engine from a container was agreed to."""

    @property
    def prefix(self) -> str:
        """The project in force."""
        return self.project or self.deployment.manifest.project


class PlanLine(msgspec.Struct, frozen=True):
    """What ``up`` would do with one container."""

    container: str
    action: str
    """``create``, ``start``, ``keep`` or ``recreate``."""
    image: str
    why: str


class StatusLine(msgspec.Struct, frozen=True, kw_only=True):
    """How one container is."""

    container: str
    state: str
    health: str
    as_generated: bool
    message: str


def services_of(site: Site) -> tuple[Service, ...]:
    """Services of the profile, in the order of their start. Raises DeployError for one that the deployment is not made for."""
    manifest = site.deployment.manifest
    if site.profile not in PROFILES:
        raise DeployError(f"--profile {site.profile[:40]!r}: expected one of {', '.join(PROFILES)}")
    if not manifest.settings.in_containers:
        raise DeployError(f"{site.deployment.directory} is for the host, not for containers: generate it with --control-image")
    meant_for = os.path.normpath(manifest.settings.output_dir)
    if site.deployment.directory != meant_for:
        raise DeployError(
            f"{site.deployment.directory} was generated to lie in {meant_for}: put it there, or generate it anew here"
        )
    made_for = {"ascend": f"ascend-{manifest.settings.npu.generation.lower()}"}.get(manifest.profile, manifest.profile)
    if site.profile not in {"monitoring", made_for}:
        raise DeployError(f"--profile {site.profile}: {site.deployment.directory} was generated for {made_for}; generate it anew")
    files = site.deployment.files
    found = compose.read("compose.yaml", files["compose.yaml"])
    if site.profile != "monitoring":
        found = compose.merge(found, compose.read("compose.stress.yaml", files["compose.stress.yaml"]))
    return tuple(sorted(found, key=lambda service: _ORDER.get(service.name, len(_ORDER))))


def rights(site: Site) -> list[tuple[str, str]]:
    """What each container may do on this host beyond its own image, for people: container and right."""
    lines = []
    for service in services_of(site):
        name = container_name(site.prefix, service)
        lines += [(name, f"user {service.user}, {'no network' if service.network == 'none' else 'network of the host'}")]
        lines += [(name, "sees the host's processes")] if service.pid else []
        lines += [(name, f"may have {', '.join(service.cap_add)}")] if service.cap_add else []
        lines += [(name, f"device {path}") for path in service.devices]
        for volume in service.volumes:
            how = "reads" if volume.read_only else "writes"
            root = " (the engine's socket: as much as root on this host)" if _is_socket(site, volume.source) else ""
            lines.append((name, f"{how} {volume.source}{root}"))
    return lines


def plan(site: Site, engine: Engine) -> list[PlanLine]:
    """What :func:`up` would do. Raises DeployError for what stands against it."""
    return [line for line, _ in _decide(site, engine)]


def up(site: Site, engine: Engine, *, wait_s: float, say: Callable[[str], None]) -> list[PlanLine]:
    """Make it so, container by container; what was done. Raises DeployError, and then says what runs already."""
    decided = _decide(site, engine)
    _check_socket(site)
    make_folders(site.deployment.manifest)
    done: list[PlanLine] = []
    for line, service in decided:
        try:
            _do(line, service, site, engine)
        except DeployError as error:
            ran = ", ".join(one.container for one in done) or "nothing"
            raise DeployError(f"{error}; started before that and left running: {ran} (deploy down takes it down)") from None
        say(f"{line.container}: {_DONE[line.action]}")
        done.append(line)
    for service in services_of(site):
        if service.name in {"runner", "stress-owner"}:
            _await(container_name(site.prefix, service), service, engine, wait_s)
    return done


def down(site: Site, engine: Engine, *, say: Callable[[str], None]) -> int:
    """Stop and remove what :func:`up` made; how many. State and images stay. Raises DeployError."""
    removed = 0
    for service in reversed(services_of(site)):
        name = container_name(site.prefix, service)
        _remove_ours(f"{name}{_NEXT}", service, site, engine)
        if _remove_ours(name, service, site, engine):
            say(f"{name}: removed")
            removed += 1
    return removed


def status(site: Site, engine: Engine) -> list[StatusLine]:
    """How each container is. Raises DeployError when the engine does not answer."""
    lines = []
    for service in services_of(site):
        name = container_name(site.prefix, service)
        there = engine.container(name)
        if there is None:
            lines.append(StatusLine(container=name, state="absent", health="", as_generated=False, message="deploy up makes it"))
            continue
        image = engine.image(service.image)
        same = image is not None and there.labels.get(SPEC) == _digest(service, site, image.id)
        lines.append(
            StatusLine(
                container=name,
                state=there.state,
                health=there.health,
                as_generated=same,
                message=_message(there, same=same, ours=is_ours(there, site.prefix, service.name)),
            )
        )
    return lines


_DONE = {"create": "created and started", "start": "started", "keep": "runs as it should", "recreate": "made anew and started"}


def _decide(site: Site, engine: Engine) -> list[tuple[PlanLine, Service]]:
    stale = changed_inputs(site.deployment.manifest)
    if stale:
        raise DeployError("; ".join(stale))
    return [(_line(service, site, engine), service) for service in services_of(site)]


def _line(service: Service, site: Site, engine: Engine) -> PlanLine:
    name = container_name(site.prefix, service)
    image_id = _image_id(service, site, engine)
    there = engine.container(name)
    if there is None:
        return PlanLine(name, "create", service.image, "it is not there")
    if not is_ours(there, site.prefix, service.name):
        raise DeployError(_foreign(name))
    if there.labels.get(SPEC) != _digest(service, site, image_id):
        return PlanLine(name, "recreate", service.image, "it is of another deployment or image")
    if there.running:
        return PlanLine(name, "keep", service.image, "it runs as it should")
    return PlanLine(name, "start", service.image, f"it is {there.state}")


def _image_id(service: Service, site: Site, engine: Engine) -> str:
    image = engine.image(service.image)
    if image is None:
        raise DeployError(f"there is no image {service.image} here: build it with nodeproof assets image, or load it from a file")
    for record in site.deployment.manifest.images.values():
        if record.name == service.image and record.id and record.id != image.id:
            raise DeployError(
                f"image {service.image} is {image.id[:12]}, and the deployment was generated for {record.id[:12]};"
                " generate it anew"
            )
    return image.id


def _digest(service: Service, site: Site, image_id: str) -> str:
    where = site.deployment.directory
    files = {f"{where}/{name}": digest for name, digest in site.deployment.manifest.files.items()}
    return spec_digest(service, image_id, files)


def _do(line: PlanLine, service: Service, site: Site, engine: Engine) -> None:
    if line.action == "keep":
        return
    if line.action in {"create", "recreate"}:
        _make(line.container, service, site, engine)
    engine.run("start", line.container)


def _make(name: str, service: Service, site: Site, engine: Engine) -> None:
    """The new container first, under another name: while it cannot be made, the old one runs on."""
    fresh = f"{name}{_NEXT}"
    image_id = _image_id(service, site, engine)
    _remove_ours(fresh, service, site, engine)  # of a call that was killed half-way
    engine.run(*create_arguments(site.prefix, service, image_id, _digest(service, site, image_id), fresh))
    _remove_ours(name, service, site, engine)
    engine.run("rename", fresh, name)


def _remove_ours(name: str, service: Service, site: Site, engine: Engine) -> bool:
    """Remove a container, if it is there; whether it was. Raises DeployError for one of somebody else's."""
    there = engine.container(name)
    if there is None:
        return False
    if not is_ours(there, site.prefix, service.name):
        raise DeployError(_foreign(name))
    _remove(name, there, engine)
    return True


def _remove(name: str, there: Container, engine: Engine) -> None:
    if there.running:
        engine.run("stop", "-t", str(_STOP_S), name, deadline_s=_STOP_S + 60.0)
    engine.run("rm", name)


def _await(name: str, service: Service, engine: Engine, wait_s: float) -> None:
    """Until the service answers at its socket. Raises DeployError with what it printed."""
    health = service.health
    words = shlex.split(health.command) if health is not None else ["true"]
    ends_s = time.monotonic() + wait_s
    while engine.try_run("exec", name, *words, deadline_s=15.0).exit_code:
        there = engine.container(name)
        if there is None or not there.running or time.monotonic() >= ends_s:
            logs = engine.try_run("logs", "--tail", "5", name, deadline_s=15.0)
            said = (logs.stdout + logs.stderr).decode("utf-8", "replace").strip().replace("\n", " / ")[-500:]
            state = "is gone" if there is None else f"is {there.state}"
            raise DeployError(f"{name} {state} and does not answer after {wait_s:g} s; it printed: {said or 'nothing'}")
        time.sleep(_LOOK_S)


def _check_socket(site: Site) -> None:
    named = [service for service in services_of(site) if any(_is_socket(site, volume.source) for volume in service.volumes)]
    if named and not site.acknowledged_socket:
        names: Sequence[str] = [container_name(site.prefix, service) for service in named]
        raise DeployError(
            f"{', '.join(names)} gets the engine's socket, which is as much as root on this host: agree to it with"
            " --acknowledge-root-engine-socket"
        )


def _is_socket(site: Site, path: str) -> bool:
    return path == site.deployment.manifest.settings.engine_socket


def _foreign(name: str) -> str:
    return f"container {name} was not made by nodeproof deploy; rename it, or take another --project-name"


def _message(there: Container, *, same: bool, ours: bool) -> str:
    if not ours:
        return "it is somebody else's"
    if not same:
        return "it is of another deployment or image: deploy up makes it anew"
    if not there.running:
        return f"it ended with status {there.exit_code}"
    return "as generated"
