"""Services as compose files, for people and ``docker compose``, and back: ``nodeproof deploy up`` starts what is written.

Only what is written by :func:`render` is understood by :func:`read`: a key that is not known is refused rather than ignored.
"""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from nodeproof.operate.deploy.problems import DeployError
from nodeproof.operate.deploy.services import Health, Service, Volume

__all__ = ["merge", "read", "render"]

_KEYS = {
    "image", "command", "user", "network_mode", "pid", "cap_drop", "cap_add", "security_opt", "group_add", "read_only", "tmpfs",
    "shm_size", "pids_limit", "mem_limit", "ulimits", "devices", "volumes", "environment", "healthcheck", "restart",
    "container_name",
}  # fmt: skip
_WIDTH = 118
_SECONDS = re.compile(r"(\d{1,5})s", re.ASCII)


def render(title: str, project: str, services: Sequence[Service]) -> str:
    """The file. Each service has its reason before it."""
    lines = [f"# {line}" for line in title.split("\n")] + ["services:"]
    for service in services:
        text = yaml.safe_dump({service.name: _plain(service, project)}, sort_keys=False, default_flow_style=False, width=1000)
        lines += [
            *(f"  # {line}" for line in textwrap.wrap(service.why, _WIDTH)),
            *(f"  {line}" for line in text.rstrip("\n").split("\n")),
        ]
    return "\n".join(lines) + "\n"


def read(name: str, text: bytes) -> tuple[Service, ...]:
    """What :func:`render` wrote. Raises DeployError for anything else."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DeployError(f"{name}: this is no YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(tree, dict) or set(tree) != {"services"} or not isinstance(tree["services"], dict):
        raise DeployError(f"{name}: expected one key, services, with a service a name")
    return tuple(_service(name, str(key), value) for key, value in tree["services"].items())


def merge(services: Sequence[Service], more: Sequence[Service]) -> tuple[Service, ...]:
    """As compose does it: lists are added to, single values replaced, new services put behind."""
    merged = {service.name: service for service in services}
    for service in more:
        merged[service.name] = _merged(merged[service.name], service) if service.name in merged else service
    return tuple(merged.values())


def _merged(one: Service, other: Service) -> Service:
    changes: dict[str, object] = {}
    for field in Service.__struct_fields__:
        value, before = getattr(other, field), getattr(one, field)
        if not value or field == "why":
            continue
        if field in {"environment", "limits"}:
            changes[field] = tuple({**dict(before), **dict(value)}.items())
        else:
            changes[field] = (*before, *value) if isinstance(value, tuple) and field != "command" else value
    return msgspec.structs.replace(one, **changes)


def _plain(service: Service, project: str) -> dict[str, object]:
    """In compose's words, without what is not set."""
    health = service.health
    tree: dict[str, object] = {
        "container_name": f"{project}-{service.name}" if service.image else "",
        "image": service.image,
        "command": list(service.command),
        "user": service.user,
        "network_mode": service.network,
        "pid": service.pid,
        "read_only": service.read_only,
        "cap_drop": list(service.cap_drop),
        "cap_add": list(service.cap_add),
        "security_opt": list(service.security),
        "group_add": list(service.groups),
        "tmpfs": list(service.scratch),
        "shm_size": service.shm,
        "pids_limit": service.pids,
        "mem_limit": service.memory,
        "ulimits": {name: {"soft": count, "hard": count} for name, count in service.limits},
        "devices": [f"{path}:{path}" for path in service.devices],
        "volumes": [_volume(volume) for volume in service.volumes],
        "environment": dict(service.environment),
        "healthcheck": {
            "test": ["CMD-SHELL", health.command.replace("$", "$$")],
            "interval": f"{health.interval_s}s",
            "timeout": f"{health.timeout_s}s",
            "retries": health.retries,
            "start_period": f"{health.start_s}s",
        }
        if health is not None
        else {},
        "restart": service.restart,
    }
    return {key: value for key, value in tree.items() if value}


def _volume(volume: Volume) -> str:
    options = ",".join(word for word in ("ro" if volume.read_only else "rw", volume.propagation) if word)
    return f"{volume.source}:{volume.target}:{options}"


def _service(name: str, key: str, tree: Any) -> Service:  # noqa: ANN401 - out of a file
    if not isinstance(tree, dict):
        raise DeployError(f"{name}: services.{key}: expected keys and values")
    unknown = sorted(map(str, set(tree) - _KEYS))
    if unknown:
        raise DeployError(
            f"{name}: services.{key}.{unknown[0][:80]}: nodeproof deploy does not know this key;"
            " start the deployment with compose, or take it out"
        )
    try:
        return _understood(key, tree)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DeployError(f"{name}: services.{key}: {error!s:.200}; generate it anew") from None


def _understood(key: str, tree: dict[str, Any]) -> Service:
    """Raises ValueError, TypeError, KeyError or AttributeError for what :func:`render` would not write."""
    return Service(
        name=key,
        image=_word(tree, "image"),
        command=_words(tree, "command"),
        user=_word(tree, "user"),
        network=_word(tree, "network_mode"),
        pid=_word(tree, "pid"),
        cap_drop=_words(tree, "cap_drop"),
        cap_add=_words(tree, "cap_add"),
        security=_words(tree, "security_opt"),
        groups=_words(tree, "group_add"),
        read_only=_flag(tree, "read_only"),
        scratch=_words(tree, "tmpfs"),
        shm=_word(tree, "shm_size"),
        pids=int(tree.get("pids_limit", 0)),
        memory=_word(tree, "mem_limit"),
        limits=tuple((str(name), int(pair["soft"])) for name, pair in tree.get("ulimits", {}).items()),
        devices=tuple(entry.split(":")[0] for entry in _words(tree, "devices")),
        volumes=tuple(map(_volume_of, _words(tree, "volumes"))),
        environment=tuple((str(name), str(value)) for name, value in tree.get("environment", {}).items()),
        health=_health(tree["healthcheck"]) if "healthcheck" in tree else None,
        restart=_word(tree, "restart"),
    )


def _health(tree: dict[str, Any]) -> Health:
    kind, command = tree["test"]
    if kind != "CMD-SHELL":
        raise ValueError(f"healthcheck.test: {kind!r}, expected CMD-SHELL")
    return Health(
        command=str(command).replace("$$", "$"),
        interval_s=_seconds(tree["interval"]),
        timeout_s=_seconds(tree["timeout"]),
        retries=int(tree["retries"]),
        start_s=_seconds(tree["start_period"]),
    )


def _seconds(text: object) -> int:
    found = _SECONDS.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is no number of seconds, such as 30s")
    return int(found[1])


def _volume_of(text: str) -> Volume:
    source, target, options = text.split(":")
    words = options.split(",")
    if words[0] not in {"ro", "rw"} or len(words) > 2:
        raise ValueError(f"volume {text!r}: expected SOURCE:TARGET:ro or rw")
    return Volume(source, target, words[0] == "ro", words[1] if len(words) == 2 else "")


def _word(tree: dict[str, Any], key: str) -> str:
    value = tree.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key}: {value!r} is no text")
    return value


def _words(tree: dict[str, Any], key: str) -> tuple[str, ...]:
    value = tree.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ValueError(f"{key}: expected a list of texts")
    return tuple(value)


def _flag(tree: dict[str, Any], key: str) -> bool:
    value = tree.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{key}: {value!r} is neither true nor false")
    return value
