"""Being somebody else, for tests that run as root."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec

__all__ = ["ENVIRONMENT", "User", "nobody"]

TESTS = Path(__file__).parents[1]
_PATHS = (TESTS.parent / "src", TESTS, Path(msgspec.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(str(path) for path in _PATHS)}
"""With the way to what a Python of another place does not find by itself."""
_UID = 65534


class User(NamedTuple):
    """Another user, and a Python that this user may run."""

    uid: int
    prefix: tuple[str, ...]
    """Put before a command, it runs as that user."""
    python: str


def nobody(folder: Path) -> User | None:
    """The user nobody, with ``folder`` given to it; None when this process cannot become another user."""
    prefix = ("setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups")
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    for python in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        # Through a shell: what setpriv itself starts is found with the rights that it had before.
        check = [*prefix, "sh", "-c", f"{python} -c 'import nodeproof.host.containment'"]
        if subprocess.run(check, env=ENVIRONMENT, check=False, capture_output=True).returncode == 0:
            os.chown(folder, _UID, _UID)
            for parent in folder.parents:
                if not parent.stat().st_mode & stat.S_IXOTH:
                    parent.chmod(0o711)
            return User(_UID, prefix, python)
    return None
