"""``deploy doctor``: whether a deployment would start, does run and could compute, without starting any load.

Each line comes from a look made now. The last ones are those of ``nodeproof stress doctor`` inside the deployment.
"""

import os
import stat
from collections.abc import Iterator

import msgspec

from nodeproof.model.job import CheckStatus, DoctorView
from nodeproof.operate.deploy.arguments import container_name
from nodeproof.operate.deploy.engine import Engine
from nodeproof.operate.deploy.layout import folders
from nodeproof.operate.deploy.lifecycle import Site, services_of, status
from nodeproof.operate.deploy.manifest import changed_inputs
from nodeproof.operate.deploy.problems import DeployError

__all__ = ["Finding", "examine", "worst"]

_PROGRAM = "/opt/nodeproof/bin/nodeproof"
_STRESS_S = 60.0
_ORDER = (CheckStatus.FAIL, CheckStatus.WARN, CheckStatus.UNSUPPORTED, CheckStatus.PASS)


class Finding(msgspec.Struct, frozen=True):
    """One line."""

    check: str
    status: CheckStatus
    message: str
    fix: str = ""


def examine(site: Site, engine: Engine) -> list[Finding]:
    """All of it. Raises DeployError only where the deployment itself cannot be read."""
    found = [*_inputs(site), *_folders(site), *_engine(engine)]
    if any(line.check == "engine" and line.status is CheckStatus.FAIL for line in found):
        return found
    try:
        found += [*_images(site, engine), *_containers(site, engine)]
    except DeployError as error:
        return [*found, Finding("engine", CheckStatus.FAIL, str(error), "see whether its client works in a shell")]
    if site.profile != "monitoring":
        found += _stress(site, engine)
    return found


def worst(findings: list[Finding]) -> CheckStatus:
    """The gravest; fail when nothing was looked at."""
    return next((status for status in _ORDER if any(line.status is status for line in findings)), CheckStatus.FAIL)


def _inputs(site: Site) -> Iterator[Finding]:
    stale = changed_inputs(site.deployment.manifest)
    for line in stale:
        yield Finding("inputs", CheckStatus.FAIL, line, "nodeproof deploy generate --force")
    if not stale:
        yield Finding(
            "inputs", CheckStatus.PASS, f"{site.deployment.directory} is as it was generated, and so is what it was made of"
        )


def _folders(site: Site) -> Iterator[Finding]:
    bad = 0
    for folder in folders(site.deployment.manifest):
        problem = ""
        try:
            facts = os.lstat(folder.path.rstrip("/"))
            if not stat.S_ISDIR(facts.st_mode):
                problem = "is no directory"
            elif not folder.keep and (facts.st_uid, facts.st_gid) != (folder.uid, folder.gid):
                problem = f"belongs to {facts.st_uid}:{facts.st_gid}, not to {folder.uid}:{folder.gid}"
        except OSError as error:
            problem = os.strerror(error.errno or 0)
        if problem:
            bad += 1
            yield Finding("directories", CheckStatus.FAIL, f"{folder.path}: {problem}", "nodeproof deploy install, or deploy up")
    if not bad:
        yield Finding("directories", CheckStatus.PASS, "every directory is there with its owner")


def _engine(engine: Engine) -> Iterator[Finding]:
    try:
        engine.ask("info")
        yield Finding("engine", CheckStatus.PASS, engine.version())
    except DeployError as error:
        yield Finding("engine", CheckStatus.FAIL, str(error), "start the engine, and run this as a user who may ask it")


def _images(site: Site, engine: Engine) -> Iterator[Finding]:
    images = site.deployment.manifest.images
    wanted = {service.image for service in services_of(site)}
    for record in images.values():
        if record.name not in wanted:
            continue
        there = engine.image(record.name)
        if there is None:
            yield Finding(
                "image", CheckStatus.FAIL, f"{record.name} is not here", "nodeproof assets image, or load it from a file"
            )
        elif record.id and record.id != there.id:
            text = f"{record.name} is {there.id[:12]}, generated for {record.id[:12]}"
            yield Finding("image", CheckStatus.FAIL, text, "nodeproof deploy generate --force")
        elif not record.id:
            text = f"{record.name} is here ({there.id[:12]}); no manifest says which one is meant"
            yield Finding("image", CheckStatus.PASS, text)
        else:
            yield Finding("image", CheckStatus.PASS, f"{record.name} is the one that was meant ({there.id[:12]})")


def _containers(site: Site, engine: Engine) -> Iterator[Finding]:
    for line in status(site, engine):
        good = line.state == "running" and line.as_generated and line.health != "unhealthy"
        said = f"{line.container}: {line.state}{f', {line.health}' if line.health else ''}, {line.message}"
        yield Finding("container", CheckStatus.PASS if good else CheckStatus.FAIL, said, "" if good else "nodeproof deploy up")


def _stress(site: Site, engine: Engine) -> Iterator[Finding]:
    """What could be run, by the word of whoever would run it, asked as the page would ask."""
    web = next(service for service in services_of(site) if service.name == "web")
    name = container_name(site.prefix, web)
    words = ("exec", name, _PROGRAM, "stress", "doctor", "-o", "json")
    try:
        result = engine.try_run(*words, deadline_s=_STRESS_S)
        view = msgspec.json.decode(result.stdout, type=DoctorView)
    except DeployError as error:
        yield Finding("stress", CheckStatus.FAIL, str(error), "nodeproof deploy status")
        return
    except msgspec.DecodeError:
        said = (result.stderr or result.stdout).decode("utf-8", "replace").strip()[-300:]
        yield Finding("stress", CheckStatus.FAIL, f"stress doctor in {name}: {said or 'no answer'}", "nodeproof deploy status")
        return
    for item in view.benchmarks:
        if item.enabled:
            yield Finding(item.name, item.status, item.message, "" if item.available else "see the message")
