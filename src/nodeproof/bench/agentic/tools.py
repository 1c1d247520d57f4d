"""The three tools that a model is given, and what each call of one did."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeproof.host.sandbox import Sandbox

__all__ = ["TOOLS", "Act", "Workbench"]

_SHOWN_BYTES = 16 << 10
_MAX_FILE_BYTES = 4 << 20


def _tool(name: str, description: str, **fields: str) -> dict[str, object]:
    properties = {key: {"type": "string", "description": text} for key, text in fields.items()}
    parameters = {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS: tuple[dict[str, object], ...] = (
    _tool(
        "bash",
        "Run a shell command in the project directory and get its output and exit status. Commands that go on must be put into "
        "the background with & and their output sent to a file.",
        command="the command",
    ),
    _tool("read_file", "Get the content of a file of the project.", path="path below the project directory"),
    _tool(
        "write_file",
        "Make or replace a file of the project.",
        path="path below the project directory",
        content="all of its content",
    ),
)
"""As a request offers them."""


class Act(msgspec.Struct, frozen=True):
    """One call."""

    tool: str
    command: str = ""
    """Of ``bash``; for the others the path."""
    exit_code: int = 0
    timed_out: bool = False
    problem: str = ""
    """Why the call could not be carried out."""
    shown: str = ""
    """What the model was told."""


class Workbench:
    """Carries calls out in a sandbox."""

    def __init__(self, sandbox: Sandbox, command_timeout_s: float) -> None:
        self.acts: list[Act] = []
        """Every call so far."""
        self._sandbox = sandbox
        self._command_timeout_s = command_timeout_s

    def call(self, name: str, arguments: str) -> str:
        """Do it; what the model is told. Raises SandboxError when the sandbox is lost, RunCancelled."""
        try:
            fields = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            act = Act(name, problem=f"the arguments are no JSON object: {error}")
        else:
            act = self._do(name, fields)
        act = msgspec.structs.replace(act, shown=act.shown or f"error: {act.problem}")
        self.acts.append(act)
        return act.shown

    def _do(self, name: str, fields: Mapping[str, Any]) -> Act:
        if name == "bash":
            return self._bash(str(fields.get("command", "")))
        path = str(fields.get("path", ""))
        try:
            if name == "read_file":
                data = self._sandbox.read(path, _SHOWN_BYTES)
                return Act(name, path, shown=data.decode("utf-8", "replace") or "(the file is empty)")
            if name == "write_file":
                data = str(fields.get("content", "")).encode()[:_MAX_FILE_BYTES]
                self._sandbox.write(path, data)
                return Act(name, path, shown=f"{len(data)} bytes were written to {path}")
        except OSError as error:
            return Act(name, path, problem=str(error))
        names = ", ".join(str(tool["function"]["name"]) for tool in TOOLS)  # type: ignore[index]  # as _tool makes them
        return Act(name, problem=f"there is no tool {name[:40]!r}; there are {names}")

    def _bash(self, command: str) -> Act:
        if not command.strip():
            return Act("bash", problem="command is empty")
        done = self._sandbox.run(command, timeout_s=self._command_timeout_s, limit_bytes=_SHOWN_BYTES)
        output = done.output.decode("utf-8", "replace")
        if done.timed_out:
            shown = f"{output}\n(ended after {self._command_timeout_s:g} s: it was still running)"
        else:
            shown = f"{output}\n(exit status {done.exit_code})"
        return Act("bash", command, done.exit_code, done.timed_out, shown=shown.strip())
