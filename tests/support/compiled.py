"""Interpreters as an installed program has them: everything compiled, and nobody who traces them."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.daemon import environment

__all__ = ["compiled_environment", "cpu_of", "untraced"]


def untraced(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` without what makes a coverage tracer of each child."""
    return {name: text for name, text in env.items() if not name.startswith("COV")}


def compiled_environment(folder: Path) -> dict[str, str]:
    """An environment whose interpreters keep byte code in ``folder``, filled by one run of the whole program's imports."""
    env = environment({"PYTHONPYCACHEPREFIX": str(folder)}, without=("PYTHONDONTWRITEBYTECODE", "NODEPROOF_CONFIG"))
    env = untraced(env) | {"NODEPROOF_DATA_DIR": str(folder / "home"), "PYTHONHASHSEED": "0"}
    for command in ("check", "list"):
        subprocess.run([sys.executable, "-m", "nodeproof", command], env=env, capture_output=True, check=False, timeout=60)
    return env


def cpu_of(argv: Sequence[str], env: dict[str, str]) -> tuple[float, int]:
    """CPU seconds of one run, the system's share included, and its exit code."""
    child = os.posix_spawn(
        argv[0],
        list(argv),
        env,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(child, 0)
    return used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)
