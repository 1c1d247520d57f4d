"""What a model's work is worth: whether its server serves, which we see for ourselves, and which steps it went."""

import re
import time
from collections.abc import Sequence

import msgspec

from nodeproof.bench.agentic.tools import Act
from nodeproof.host.sandbox import Sandbox

__all__ = ["STEPS", "Outcome", "judge_steps", "left_running", "serve_and_ask"]

_CLIENTS = re.compile(r"\b(curl|wget|http\.client|urllib|requests|httpie|nc|fetch|Invoke-WebRequest)\b|/dev/tcp/")
_TESTS = re.compile(r"test\.sh|\b(pytest|unittest|cargo test|go test|npm (run )?test|node --test|make test|ctest|prove|rspec)\b")
_START = re.compile(r"run\.sh")
_LOG_BYTES = 4096
_SETTLE_S = 1.0
STEPS = ("wrote_project", "wrote_tests", "ran_tests", "ran_server", "curled", "tore_down")
"""Of the process axis, in their order."""


class Outcome(msgspec.Struct, kw_only=True):
    """What came of serving."""

    served: bool = False
    detail: str = ""
    """Why it does not serve; empty when it does."""
    log: str = ""
    """What building and server printed, its end."""


def judge_steps(acts: Sequence[Act], files: dict[str, int], left_running: int) -> dict[str, bool]:
    """Which steps are evidenced by the commands, by the files that are there, and by what still runs."""
    commands = [act for act in acts if act.tool == "bash" and not act.problem]
    ran_server = any(_START.search(act.command) for act in commands)
    return {
        "wrote_project": files.get("run.sh", 0) > 0,
        "wrote_tests": any("test" in path.lower() and size > 0 for path, size in files.items()),
        "ran_tests": any(_TESTS.search(act.command) and act.exit_code == 0 and not act.timed_out for act in commands),
        "ran_server": ran_server,
        "curled": any(_CLIENTS.search(act.command) and "ping" in act.command and act.exit_code == 0 for act in commands),
        "tore_down": ran_server and left_running == 0,
    }


def left_running(sandbox: Sandbox) -> int:
    """Processes that go on after the last command; those that are about to end are waited for."""
    ends_s = time.monotonic() + _SETTLE_S
    while (left := sandbox.processes()) and time.monotonic() < ends_s:
        time.sleep(_SETTLE_S / 20)
    return left


def serve_and_ask(sandbox: Sandbox, files: dict[str, int], *, build_timeout_s: float, serve_timeout_s: float) -> Outcome:
    """Build it, start it on a port that nobody else could take, and ask it for pong. Raises SandboxError, RunCancelled."""
    if "run.sh" not in files:
        return Outcome(detail="there is no run.sh")
    port = sandbox.reserve_port()
    log = ""
    if "build.sh" in files:
        built = sandbox.run("bash build.sh", timeout_s=build_timeout_s, limit_bytes=_LOG_BYTES)
        log = built.output.decode("utf-8", "replace")
        if built.timed_out or built.exit_code != 0:
            state = f"did not end within {build_timeout_s:g} s" if built.timed_out else f"ended with status {built.exit_code}"
            return Outcome(detail=f"build.sh {state}", log=log)
    sandbox.free_port(port)
    server = sandbox.begin("exec bash run.sh", {"PORT": str(port)})
    status, body = sandbox.get(port, "/ping", timeout_s=serve_timeout_s)
    ended = sandbox.end(server, _LOG_BYTES)
    sandbox.processes(end=True)
    log += ended.output.decode("utf-8", "replace")
    if status == 0:
        return Outcome(detail=body.decode("utf-8", "replace"), log=log)
    if status != 200 or body.strip() != b"pong":
        return Outcome(detail=f"/ping is answered with status {status} and {body[:40]!r} where 200 and pong are wanted", log=log)
    return Outcome(served=True, log=log)
