"""A container engine, asked through its client: Docker's or Podman's, which take the same words for all that is needed here."""

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from nodeproof.errors import CommandError
from nodeproof.host.commands import CommandResult, Commands
from nodeproof.operate.deploy.problems import DeployError

__all__ = ["Container", "Engine", "Image", "check_options"]

_ASK_S = 30.0
_CHANGE_S = 120.0
_MAX_SAID = 1000
_ARGUMENT = re.compile(r"--[a-z][a-z0-9-]*(=[A-Za-z0-9._/:@,=-]+)?", re.ASCII)


class Image(NamedTuple):
    """A local image."""

    id: str
    """Without ``sha256:``."""
    labels: dict[str, str]


class Container(NamedTuple):
    """A container that is there."""

    id: str
    running: bool
    state: str
    """``running``, ``exited``, ``created`` ..."""
    exit_code: int
    health: str
    """``healthy``, ``unhealthy``, ``starting``; empty = it has no check."""
    image_id: str
    labels: dict[str, str]


class Engine:
    """One client with the words that go before each of its commands."""

    def __init__(self, commands: Commands, client: str = "", options: Sequence[str] = ()) -> None:
        """``client``: absolute path; empty = docker or podman, whichever is installed. Raises DeployError."""
        self._commands = commands
        self.client = client or self._found()
        if not os.path.isabs(self.client):
            raise DeployError(f"--engine {self.client}: expected the absolute path of docker or podman")
        if not os.access(self.client, os.X_OK):
            raise DeployError(f"--engine {self.client}: it is not there or cannot be run; install Docker or Podman")
        check_options("--engine-option", options)
        self._before = (self.client, *options)

    def version(self) -> str:
        """What the client says of itself. Raises DeployError when it does not answer."""
        return self.ask("--version").strip()[:200]

    def ask(self, *words: str, deadline_s: float = _ASK_S) -> str:
        """What a command prints. Raises DeployError unless it ends with 0."""
        return self.run(*words, deadline_s=deadline_s).stdout.decode("utf-8", "replace")

    def run(self, *words: str, deadline_s: float = _CHANGE_S) -> CommandResult:
        """Run a command of the client. Raises DeployError unless it ends with 0."""
        result = self.try_run(*words, deadline_s=deadline_s)
        if result.exit_code:
            raise DeployError(f"{self._shown(words)}: {_said(result)}")
        return result

    def try_run(self, *words: str, deadline_s: float = _CHANGE_S) -> CommandResult:
        """The same, whatever its exit status. Raises DeployError when it could not be run to its end."""
        try:
            return self._commands.run([*self._before, *words], deadline_s=deadline_s)
        except CommandError as error:
            raise DeployError(f"{self._shown(words)}: {error.detail}") from None

    def image(self, name: str) -> Image | None:
        """A local image; None = there is none of that name. Raises DeployError when the engine does not answer."""
        tree = self._inspect("image", name)
        if tree is None:
            return None
        labels = _member(tree, "Config", "Labels")
        return Image(str(tree.get("Id", "")).removeprefix("sha256:"), dict(labels) if isinstance(labels, dict) else {})

    def container(self, name: str) -> Container | None:
        """A container; None = there is none of that name. Raises DeployError when the engine does not answer."""
        tree = self._inspect("container", name)
        if tree is None:
            return None
        told = tree.get("State")
        state: dict[str, Any] = told if isinstance(told, dict) else {}
        labels = _member(tree, "Config", "Labels")
        health = state.get("Health") or state.get("Healthcheck") or {}
        return Container(
            id=str(tree.get("Id", "")),
            running=state.get("Running") is True,
            state=str(state.get("Status", "unknown")),
            exit_code=int(state.get("ExitCode", 0)),
            health=str(health.get("Status", "")) if isinstance(health, dict) else "",
            image_id=str(tree.get("Image", "")).removeprefix("sha256:"),
            labels=dict(labels) if isinstance(labels, dict) else {},
        )

    def _inspect(self, kind: str, name: str) -> dict[str, Any] | None:
        result = self.try_run(kind, "inspect", name, deadline_s=_ASK_S)
        if result.exit_code:
            said = _said(result).lower()
            if "no such" in said or "not known" in said or "no container" in said or "does not exist" in said:
                return None
            raise DeployError(f"{self._shown((kind, 'inspect', name))}: {_said(result)}")
        try:
            tree = msgspec.json.decode(result.stdout)
            return dict(tree[0])
        except (msgspec.DecodeError, TypeError, ValueError, LookupError):
            raise DeployError(f"{self._shown((kind, 'inspect', name))}: its answer cannot be understood") from None

    def _found(self) -> str:
        for name in ("docker", "podman"):
            path = self._commands.find(name)
            if path is not None:
                return path
        raise DeployError("neither docker nor podman is installed; install one, or name it with --engine")

    def _shown(self, words: Sequence[str]) -> str:
        return f"{os.path.basename(self.client)} {' '.join(words[:3])}"


def check_options(flag: str, words: Sequence[str]) -> None:
    """Raises DeployError for what is no option of a client."""
    for word in words:
        if not _ARGUMENT.fullmatch(word):
            raise DeployError(f"{flag} {word[:80]!r}: expected --NAME or --NAME=VALUE")


def _member(tree: dict[str, Any], *keys: str) -> object:
    value: object = tree
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _said(result: CommandResult) -> str:
    text = (result.stderr or result.stdout).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-_MAX_SAID:] or f"exit status {result.exit_code}"
