"""Runs of the built-in workloads: as children with their real command line, and their lines taken apart."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nodeproof.stress.workloads import heartbeat, launch
from nodeproof.stress.workloads.heartbeat import RESULT_PREFIX, Heartbeat

__all__ = ["ARRANGED", "Child", "arrange", "beats", "environment", "result", "run_child", "team_of"]

_CACHE = os.path.join(tempfile.gettempdir(), f"nodeproof-test-kernels-{os.getuid()}")


def arrange() -> bool:
    """Set what must stand before numpy and numba are loaded; kernels are kept from one test run to the next."""
    os.environ["NODEPROOF_KERNEL_CACHE"] = _CACHE
    launch.prepare_environment()
    return True


ARRANGED = arrange()
"""Importing this module before numba is enough."""


class Child(NamedTuple):
    """A workload that has ended."""

    status: int
    output: str
    errors: str


def environment(**changes: str) -> dict[str, str]:
    """Of a child: this one's, with the kernels of earlier tests."""
    return {**os.environ, "NODEPROOF_KERNEL_CACHE": _CACHE, **changes}


def run_child(
    name: str, *arguments: str, changes: dict[str, str] | None = None, before: Callable[[], None] | None = None
) -> Child:
    """Run a workload to its end."""
    done = subprocess.run(
        [sys.executable, "-m", f"nodeproof.stress.workloads.{name}", *arguments],
        capture_output=True,
        text=True,
        env=environment(**(changes or {})),
        preexec_fn=before,
        check=False,
    )
    return Child(done.returncode, done.stdout, done.stderr)


def result(output: str) -> dict[str, Any]:
    """The one result line."""
    lines = [line for line in output.splitlines() if line.startswith(RESULT_PREFIX)]
    assert len(lines) == 1, output
    fields = json.loads(lines[0][len(RESULT_PREFIX) :])
    assert isinstance(fields, dict)
    return fields


def beats(output: str) -> list[Heartbeat]:
    """All heartbeats."""
    return [beat for line in output.splitlines() if (beat := heartbeat.parse(line)) is not None]


def team_of(threads: int) -> Sequence[int]:
    """CPUs for so many threads, the same ones again where the machine has fewer."""
    allowed = sorted(os.sched_getaffinity(0))
    return [allowed[rank % len(allowed)] for rank in range(threads)]
